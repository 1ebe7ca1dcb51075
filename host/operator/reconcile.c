/* One reconcile: the script runs, its status is written, and what went wrong is reported in the log
 * and as an Event. Called by controller_work.c. */
#include "operator/reconcile.h"

#include "operator/finalizer.h"
#include "operator/reconcile_internal.h"

#include <stdio.h>

void ml_object_warning(struct ml_cluster *cluster, const char *controller,
                       const struct ml_kind *kind, const struct ml_object *object,
                       const char *reason, const char *note)
{
    struct ml_event event = ml_event_about(kind, object);
    event.controller = ml_str_of(controller);
    event.warning = true;
    event.numbers_vary = true;
    event.reason = ml_str_of(reason);
    event.note = ml_str_of(note);
    ml_recorder_event(cluster->recorder, &event);
}

static void reconcile_free(struct ml_reconcile *self)
{
    ml_turn_cancel(&self->start);
    ml_result_fini(&self->result);
    reconcile_drop_sent(self);
    ml_object_unref(self->object);
    ml_revision_unref(self->revision);
    free(self->traceback);
    free(self->invalid);
    free(self->unfinished);
    free(self->version);
    free(self->held);
    free(self);
}

void reconcile_finish(struct ml_reconcile *self)
{
    self->handler->done(self->context, &self->result, self->wrote_status);
    reconcile_free(self);
}

static struct ml_event event_of(const struct ml_reconcile *self, bool warning)
{
    struct ml_event event = ml_event_about(ml_revision_kind(self->revision), self->object);
    event.controller = ml_str_of(self->revision->declaration->name);
    event.warning = warning;
    event.numbers_vary = true;
    return event;
}

static void record_event(const struct ml_reconcile *self, bool warning, const char *reason,
                         const char *note)
{
    struct ml_event event = event_of(self, warning);
    event.passing = !warning || self->lasts == LASTS_YES;
    event.reason = ml_str_of(reason);
    event.note = ml_str_of(note);
    ml_recorder_event(self->cluster->recorder, &event);
}

/* The line of the script in "cnat.lua:12: message"; 0: the message names none. */
static int64_t line_of_error(const struct ml_reconcile *self, const char *message)
{
    const char *file = self->revision->declaration->file;
    size_t len = strlen(file);
    if (strncmp(message, file, len) != 0 || message[len] != ':')
        return 0;
    return strtoll(message + len + 1, NULL, 10);
}

const char *reconcile_failure_text(const struct ml_reconcile *self)
{
    return self->invalid ? self->invalid : self->result.err.message;
}

/* The traceback only once: it is the same each time. */
static void log_failure(const struct ml_reconcile *self, const struct ml_repeat *repeat,
                        int64_t retry_ns, const char *message)
{
    const char *controller = self->revision->declaration->name;
    int64_t line = line_of_error(self, self->result.err.message);
    ml_error(
        self->cluster->log, controller, message,
        ML_OBJECT_FIELDS(controller, ml_revision_kind(self->revision)->kind,
                         ml_object_key(self->object)),
        ML_S("reconcileID", self->id), ML_ERROR_TEXT(reconcile_failure_text(self)),
        ML_S("errorKind", ml_err_name(self->result.err.kind)), ML_REVISION_FIELDS(self->revision),
        ML_I(line > 0 ? "line" : "", line), ML_REPEAT_FIELDS(repeat, retry_ns),
        ML_LINES(self->traceback && repeat->failures == 1 ? "traceback" : "", self->traceback));
}

/* Asked once: all that is told of this run says the same. */
static bool failure_lasts(struct ml_reconcile *self)
{
    if (self->lasts == LASTS_UNASKED)
        self->lasts = self->handler->lasts(self->context) ? LASTS_YES : LASTS_NO;
    return self->lasts == LASTS_YES;
}

/* A conflict, or a key that is another replica's now: the host's business, which the debug line of
 * each run has. */
static bool failure_is_of_host(struct ml_reconcile *self)
{
    const struct ml_result *result = &self->result;
    return result->outcome == ML_OUTCOME_ERROR &&
           (result->err.kind == ML_ECANCELED ||
            (result->err.kind == ML_ECONFLICT && !failure_lasts(self)));
}

/* `was`: how it failed until now; zeros: it did not, as far as this process knows. */
static void tell_recovery(const struct ml_reconcile *self, const struct ml_repeat *was)
{
    const char *controller = self->revision->declaration->name;
    if (was->failures > 0 || self->takes_back)
        ml_info(self->cluster->log, controller, "reconciled again after a failure",
                ML_OBJECT_FIELDS(controller, ml_revision_kind(self->revision)->kind,
                                 ml_object_key(self->object)),
                ML_S("reconcileID", self->id), ML_REPEAT_FIELDS(was, -1));
    /* Nothing is taken back that could not be told: an outage would end in an Event per object. */
    const struct ml_event warning = event_of(self, true);
    bool is_told = self->takes_back ||
                   (was->told && ml_recorder_shows(self->cluster->recorder, &warning));
    if (is_told && !self->result.finalized && !self->unfinished)
        record_event(self, false, "Reconciled", "the reconcile that failed before has succeeded");
}

void ml_reconcile_log_failure(struct ml_reconcile *self, struct ml_keys *keys, int64_t retry_ns)
{
    struct ml_str key = ml_object_key(self->object);
    if (self->result.outcome == ML_OUTCOME_OK) {
        const struct ml_repeat was = ml_keys_reconciled(keys, key);
        tell_recovery(self, &was);
        return;
    }
    struct ml_repeat *repeat = &ml_keys_failures(keys, key)->reconcile;
    repeat->told = repeat->told || reconcile_failure_reason(self);
    if (failure_is_of_host(self) ||
        !ml_repeat_failed(repeat, ml_str_of(reconcile_failure_text(self)),
                          ml_clock_monotonic(self->cluster->clock)))
        return;
    if (self->result.outcome == ML_OUTCOME_INVALID)
        log_failure(self, repeat, retry_ns, "object is invalid; waiting for its correction");
    else if (self->result.outcome == ML_OUTCOME_TERMINAL)
        log_failure(self, repeat, retry_ns, "reconcile failed for good; waiting for a change");
    else if (self->call != ML_CALL_RECONCILE)
        log_failure(self, repeat, retry_ns, "finalize failed; trying again");
    else
        log_failure(self, repeat, retry_ns, "reconcile failed; trying again");
}

const char *reconcile_failure_reason(struct ml_reconcile *self)
{
    const struct ml_err *err = &self->result.err;
    switch (self->result.outcome) {
    case ML_OUTCOME_OK:
        return NULL;
    case ML_OUTCOME_INVALID:
        return "Invalid";
    case ML_OUTCOME_TERMINAL:
        return "Failed";
    case ML_OUTCOME_ERROR:
        if (err->kind == ML_ECANCELED ||
            (err->kind != ML_ESCRIPT && ml_err_retriable(err->kind) && !failure_lasts(self)))
            return NULL;
        return self->call == ML_CALL_RECONCILE ? "ReconcileFailed" : "FinalizeFailed";
    }
    ML_UNREACHABLE();
}

void reconcile_tell_failure(struct ml_reconcile *self)
{
    const char *reason = reconcile_failure_reason(self);
    if (reason)
        record_event(self, true, reason, reconcile_failure_text(self));
}

/* finalize is not done: why the object stays, for the Event here and for the condition. */
static void tell_unfinished(struct ml_reconcile *self)
{
    if (!self->result.finalizes || self->result.finalized || self->result.outcome != ML_OUTCOME_OK)
        return;
    self->unfinished = ml_asprintf(
        "finalize asked to be called again; %s stays until it returns nothing",
        self->revision->declaration->finalizer);
    record_event(self, false, REASON_UNFINISHED, self->unfinished);
}

/* An object that is gone has no finalizer. One that stays is reconciled by whoever has no finalizer
 * any more. */
static void on_finalizer_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_reconcile *self = context;
    (void)body;
    self->writing = NULL;
    if (err && err->kind != ML_ENOT_FOUND) {
        reconcile_fail_write(self, err,
                             self->call == ML_CALL_TAKE_OVER ? "take over the finalizer"
                                                             : "remove the finalizer");
        reconcile_write_condition(self);
        return;
    }
    if (!ml_object_deleting(self->object))
        self->result.requeue_after_ns = 0;
    reconcile_finish(self);
}

static void write_finalizer(struct ml_reconcile *self, bool add)
{
    self->result.writes++;
    self->writing = ml_finalizer_write(self->revision, self->object, add, on_finalizer_written,
                                       self);
}

/* All that outlives the call. */
static void take_result(struct ml_reconcile *self, struct ml_result *result)
{
    self->version = result->version.len > 0 ? ml_str_dup(result->version) : NULL;
    self->traceback = ml_strdup(result->traceback);
    if (result->outcome == ML_OUTCOME_INVALID)
        self->invalid = ml_asprintf(ML_STR_FMT ": %s", ML_STR_ARG(result->field),
                                    result->err.message);
    self->result = ml_result_take(result);
}

static void on_script_result(void *context, struct ml_result *result)
{
    struct ml_reconcile *self = context;
    self->run = NULL;
    take_result(self, result);
    if (self->result.finalized) {
        write_finalizer(self, false);
        return;
    }
    tell_unfinished(self);
    reconcile_write_status(self, result->status);
}

static void start_script(void *context)
{
    struct ml_reconcile *self = context;
    struct ml_script *script = self->revision->script;
    struct ml_run *run = self->call == ML_CALL_FINALIZE
                             ? ml_script_finalize(script, self->object, self->id, on_script_result,
                                                  self)
                             : ml_script_reconcile(script, self->object, self->id, on_script_result,
                                                   self);
    /* NULL: over already, and `self` with it unless a status is being written. */
    if (run)
        self->run = run;
}

/* Unlike those of other processes, as the hash is seeded. The random seam is left alone: how many
 * runs there were must not change the jitter of what else draws from it. */
static void name_run(struct ml_reconcile *self)
{
    static uint64_t runs;
    runs++;
    snprintf(self->id, sizeof self->id, "%08x",
             (unsigned)(ml_hash((struct ml_str){(const char *)&runs, sizeof runs}) & UINT32_MAX));
}

/* No code of the script runs. */
static void start_release(struct ml_reconcile *self)
{
    self->result = (struct ml_result){.outcome = ML_OUTCOME_OK,
                                      .err = ML_ERR_INIT,
                                      .requeue_after_ns = -1,
                                      .requeue_at_ns = -1,
                                      .finalized = self->call == ML_CALL_RELEASE};
    write_finalizer(self, self->call == ML_CALL_TAKE_OVER);
}

struct ml_reconcile *ml_reconcile_start(struct ml_revision *revision, struct ml_object *object,
                                        enum ml_reconcile_call call,
                                        const struct ml_reconcile_handler *handler, void *context)
{
    struct ml_reconcile *self = ml_new(struct ml_reconcile);
    self->cluster = revision->cluster;
    name_run(self);
    self->revision = ml_revision_ref(revision);
    self->object = ml_object_ref(object);
    self->call = call;
    self->handler = handler;
    self->context = context;
    ml_turn_init(&self->start, start_script, self);
    if (!ml_call_runs_script(call))
        start_release(self);
    else
        ml_turn_wait(&self->start, revision->payer);
    return self;
}

const char *ml_reconcile_id(const struct ml_reconcile *self)
{
    return self->id;
}

bool ml_reconcile_writes(const struct ml_reconcile *self)
{
    return self->writing || (self->run && ml_script_writes(self->run));
}

void ml_reconcile_cancel(struct ml_reconcile *self)
{
    if (self->run)
        ml_script_cancel(self->run);
    if (self->writing)
        ml_writer_cancel(self->writing);
    reconcile_free(self);
}
