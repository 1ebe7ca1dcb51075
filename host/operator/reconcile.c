/* One reconcile: the script runs, its status is written, and what went wrong is reported in the log
 * and as an Event. Called by controller_work.c. */
#include "operator/reconcile.h"

#include "operator/status.h"
#include "state/writer.h"

#include <stdio.h>

void ml_object_warning(struct ml_cluster *cluster, const char *controller,
                       const struct ml_kind *kind, const struct ml_object *object,
                       const char *reason, const char *note)
{
    struct ml_event event = ml_event_about(kind, object);
    event.controller = ml_str_of(controller);
    event.warning = true;
    event.reason = ml_str_of(reason);
    event.note = ml_str_of(note);
    ml_recorder_event(cluster->recorder, &event);
}

#define ID_LEN 8 /* hex digits */

struct ml_reconcile {
    struct ml_cluster *cluster; /* the revision's */
    char id[ID_LEN + 1];
    struct ml_revision *revision; /* live, or it was when this began */
    struct ml_object *object;
    struct ml_run *run;
    struct ml_writer_call *writing;
    struct ml_result result; /* of the script, then of the reconcile */
    bool wrote_status;
    char *traceback; /* of a Lua error, or NULL */
    char *invalid;   /* the field, and what is wrong with it; or NULL */
    struct ml_turn start;
    ml_reconcile_done *done;
    void *context;
};

static void reconcile_free(struct ml_reconcile *self)
{
    ml_turn_cancel(&self->start);
    ml_read_set_unref(self->result.reads);
    ml_object_unref(self->object);
    ml_revision_unref(self->revision);
    free(self->traceback);
    free(self->invalid);
    free(self);
}

static void finish_reconcile(struct ml_reconcile *self)
{
    self->done(self->context, &self->result, self->wrote_status);
    reconcile_free(self);
}

static void record_warning(const struct ml_reconcile *self, const char *reason, const char *note)
{
    ml_object_warning(self->cluster, self->revision->declaration->name,
                      ml_revision_kind(self->revision), self->object, reason, note);
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

/* What is invalid, or what went wrong. */
static const char *failure_text(const struct ml_reconcile *self)
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
        ML_S("reconcileID", self->id), ML_S("error", failure_text(self)),
        ML_S("errorKind", ml_err_name(self->result.err.kind)), ML_REVISION_FIELDS(self->revision),
        ML_I(line > 0 ? "line" : "", line), ML_REPEAT_FIELDS(repeat, retry_ns),
        ML_LINES(self->traceback && repeat->failures == 1 ? "traceback" : "", self->traceback));
}

/* A conflict, or a key that is another replica's now: the host's business, which the debug line of
 * each run has. */
static bool failure_is_of_host(const struct ml_result *result)
{
    return result->outcome == ML_OUTCOME_ERROR &&
           (result->err.kind == ML_ECANCELED || result->err.kind == ML_ECONFLICT);
}

void ml_reconcile_log_failure(const struct ml_reconcile *self, struct ml_repeats *failures,
                              int64_t retry_ns)
{
    struct ml_str key = ml_object_key(self->object);
    if (self->result.outcome == ML_OUTCOME_OK) {
        ml_repeats_over(failures, key);
        return;
    }
    struct ml_repeat *repeat = ml_repeats_get(failures, key);
    if (failure_is_of_host(&self->result) ||
        !ml_repeat_failed(repeat, ml_str_of(failure_text(self)),
                          ml_clock_monotonic(self->cluster->clock)))
        return;
    if (self->result.outcome == ML_OUTCOME_INVALID)
        log_failure(self, repeat, retry_ns, "object is invalid; waiting for its correction");
    else if (self->result.outcome == ML_OUTCOME_TERMINAL)
        log_failure(self, repeat, retry_ns, "reconcile failed for good; waiting for a change");
    else
        log_failure(self, repeat, retry_ns, "reconcile failed; trying again");
}

/* Tells of a failure in an Event, where a person looks. A conflict or a passing fault of the
 * network gets none. */
static void record_failure(const struct ml_reconcile *self)
{
    int kind = self->result.err.kind;
    if (self->result.outcome == ML_OUTCOME_INVALID)
        record_warning(self, "Invalid", failure_text(self));
    else if (self->result.outcome == ML_OUTCOME_TERMINAL)
        record_warning(self, "Failed", failure_text(self));
    else if (self->result.outcome == ML_OUTCOME_ERROR && !failure_is_of_host(&self->result) &&
             (kind == ML_ESCRIPT || !ml_err_retriable(kind)))
        record_warning(self, "ReconcileFailed", failure_text(self));
}

/* A failed status write turns a good outcome into one that is tried again. An object that is
 * gone needs no status. */
static void on_status_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_reconcile *self = context;
    (void)body;
    self->writing = NULL;
    if (err && err->kind != ML_ENOT_FOUND) {
        self->result.err = *err;
        ml_err_wrap(&self->result.err, "write status");
        self->result.outcome = ML_OUTCOME_ERROR;
        free(ml_take(&self->invalid));
        record_failure(self);
    }
    finish_reconcile(self);
}

static void write_status(struct ml_reconcile *self, struct ml_str patch)
{
    const struct ml_kind *kind = ml_revision_kind(self->revision);
    const struct ml_write write = {
        .request =
            {
                .verb = ML_VERB_PATCH_MERGE,
                .kind = kind,
                .ns = ml_object_namespace(self->object),
                .name = ml_object_name(self->object),
                .subresource = kind->has_status ? ML_STR("status") : ML_STR(""),
                .body = patch,
                .yields = true,
                .budget = ml_script_budget(self->revision->script),
            },
        .expectations = self->revision->expectations,
        .informer = self->revision->informers[0],
        .key = ml_object_key(self->object),
    };
    self->result.writes++;
    self->wrote_status = true;
    self->writing = ml_writer_send(self->cluster, &write, on_status_written, self);
}

static void on_script_result(void *context, const struct ml_result *result)
{
    struct ml_reconcile *self = context;
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    self->run = NULL;
    self->result = *result;
    self->result.status = self->result.field = (struct ml_str){NULL, 0};
    self->result.traceback = NULL;
    if (result->reads)
        ml_read_set_ref(result->reads);
    struct ml_err err = ML_ERR_INIT;
    if (ml_status_patch(self->object, result, ml_clock_wall(self->cluster->clock), &patch, &err) <
        0) {
        self->result.outcome = ML_OUTCOME_ERROR;
        self->result.err = err;
    }
    self->traceback = ml_strdup(result->traceback);
    if (self->result.outcome == ML_OUTCOME_INVALID)
        self->invalid = ml_asprintf(ML_STR_FMT ": %s", ML_STR_ARG(result->field),
                                    result->err.message);
    record_failure(self);
    if (patch.len)
        write_status(self, ml_buf_str(&patch));
    else
        finish_reconcile(self);
}

static void start_script(void *context)
{
    struct ml_reconcile *self = context;
    struct ml_run *run = ml_script_reconcile(self->revision->script, self->object, self->id,
                                             on_script_result, self);
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

struct ml_reconcile *ml_reconcile_start(struct ml_revision *revision, struct ml_object *object,
                                        ml_reconcile_done *done, void *context)
{
    struct ml_reconcile *self = ml_new(struct ml_reconcile);
    self->cluster = revision->cluster;
    name_run(self);
    self->revision = ml_revision_ref(revision);
    self->object = ml_object_ref(object);
    self->done = done;
    self->context = context;
    ml_turn_init(&self->start, start_script, self);
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
