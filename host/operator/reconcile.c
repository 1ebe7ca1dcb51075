/* One reconcile: the script runs, the object's status and finalizer are written, and failures are
 * reported in the log, by an Event and by the condition Reconciled. */
#include "operator/reconcile.h"

#include "codec/json.h"
#include "kube/object.h"
#include "operator/status.h"
#include "state/writer.h"

#include <stdio.h>

/* Of the Event and the condition on an object whose finalize is not done. */
#define REASON_UNFINISHED "Finalizing"

/* Likewise, on a paused object. */
#define REASON_PAUSED "Paused"
#define NOTE_PAUSED                                                                                \
    "the annotation " ML_PAUSED_ANNOTATION                                                         \
    " is \"true\": it is neither reconciled nor finalized, and nothing is written for it"

struct ml_reconcile {
    struct ml_services *services; /* the revision's */
    const char *id;               /* the caller's */
    struct ml_revision *revision; /* live, or it was when this began */
    struct ml_object *object;
    enum ml_reconcile_call call;
    struct ml_run *run;
    struct ml_writer_call *writing;
    enum { WRITES_STATUS, ADDS_FINALIZER, ENDS_FINALIZER } write; /* `writing`, or the last one */
    struct ml_result result; /* of the script, then of the reconcile */
    /* Of the write of the status that is under way: */
    bool sends_condition;    /* with the condition Reconciled */
    size_t condition_place;  /* in the list of conditions, then */
    bool condition_alone;    /* it has nothing that the script returned */
    bool returns_conditions; /* the script returned some */
    char *sent;              /* the status in the patch, charged to the script; or NULL */
    bool takes_back; /* the object said that an earlier reconcile failed, and does no more */
    enum { LASTS_UNASKED, LASTS_YES, LASTS_NO } lasts;
    char *traceback;  /* of a Lua error, or NULL */
    char *invalid;    /* the field, and what is wrong with it; or NULL */
    char *unfinished; /* why finalize is called again, or NULL */
    char *version;    /* the object's resourceVersion after the finalizer was added, or NULL */
    char *held;       /* the patch of the status, while the finalizer is added; or NULL */
    struct ml_slice start;
    const struct ml_reconcile_handler *handler;
    void *context;
};

/* Frees the copy of the status that was sent. */
static void drop_sent(struct ml_reconcile *self)
{
    if (!self->sent)
        return;
    ml_budget_give(ml_script_budget(self->revision->script), strlen(self->sent) + 1);
    free(ml_take(&self->sent));
}

void ml_reconcile_free(struct ml_reconcile *self)
{
    if (!self)
        return;
    if (self->run)
        ml_script_cancel(self->run);
    if (self->writing)
        ml_writer_cancel(self->writing);
    ml_slice_cancel(&self->start);
    ml_result_fini(&self->result);
    drop_sent(self);
    ml_object_unref(self->object);
    ml_revision_unref(self->revision);
    free(self->traceback);
    free(self->invalid);
    free(self->unfinished);
    free(self->version);
    free(self->held);
    free(self);
}

/* ---- the finalizer ---- */

enum ml_finalizer ml_finalizer_of(const struct ml_revision *revision,
                                  const struct ml_object *object)
{
    const struct ml_declaration *declaration = revision->declaration;
    if (!ml_object_has_finalizers(object))
        return ML_FINALIZER_NONE;
    if (ml_finalizers_have_any(object, declaration->former_finalizers))
        return ML_FINALIZER_FORMER;
    bool own = ml_finalizers_have(object, ml_str_of(declaration->finalizer));
    return own ? ML_FINALIZER_OWN : ML_FINALIZER_NONE;
}

bool ml_reconcile_choose(const struct ml_revision *revision, const struct ml_object *object,
                         bool removes, enum ml_reconcile_call *out)
{
    enum ml_finalizer finalizer = ml_finalizer_of(revision, object);
    bool carries = finalizer != ML_FINALIZER_NONE;
    bool finalizes = revision->declaration->finalizes && !removes;
    if (carries && !finalizes)
        *out = ML_CALL_RELEASE;
    else if (!ml_object_deleting(object) && finalizer == ML_FINALIZER_FORMER)
        *out = ML_CALL_TAKE_OVER;
    else if (ml_object_deleting(object))
        *out = ML_CALL_FINALIZE;
    else
        *out = ML_CALL_RECONCILE;
    if (ml_object_paused(object))
        *out = ML_CALL_PAUSE;
    bool begins = *out == ML_CALL_RECONCILE || *out == ML_CALL_PAUSE;
    return carries || (begins && !removes);
}

/* The object has to carry it before something is written for it, and does not. */
static bool lacks_finalizer(const struct ml_revision *revision, const struct ml_object *object)
{
    return revision->declaration->finalizes && !ml_object_deleting(object) &&
           ml_finalizer_of(revision, object) == ML_FINALIZER_NONE;
}

/* Adds or removes it, by a patch that fails with Conflict when the object has changed. */
static void write_finalizer(struct ml_reconcile *self, bool add)
{
    struct ml_revision *revision = self->revision;
    const struct ml_object *object = self->object;
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    ml_finalizers_patch(object, ml_object_rv(object), ml_str_of(revision->declaration->finalizer),
                        revision->declaration->former_finalizers, add, &patch);
    const struct ml_write write = {
        .request =
            {
                .verb = ML_VERB_PATCH_MERGE,
                .kind = ml_revision_kind(revision),
                .ns = ml_object_namespace(object),
                .name = ml_object_name(object),
                .body = ml_buf_str(&patch),
                .yields = true,
                .budget = ml_script_budget(revision->script),
            },
        .expectations = revision->expectations,
        .check = &revision->check,
        .informer = revision->informers[0],
        .key = ml_object_key(object),
    };
    self->writing = ml_writer_send(self->services, &write, self->handler->written, self->context);
}

/* The version of the object in the answer. The caller frees it. */
static char *version_of_answer(const struct ml_object *object, struct ml_str answer)
{
    char *version = ml_json_find_string(answer, "metadata", "resourceVersion", NULL);
    return version ? version : ml_str_dup(ml_object_rv(object));
}

/* ---- reporting ---- */

void ml_object_warning(struct ml_services *services, const char *controller,
                       const struct ml_kind *kind, const struct ml_object *object,
                       const char *reason, const char *note)
{
    struct ml_event event = ml_event_about(kind, object);
    event.controller = ml_str_of(controller);
    event.warning = true;
    event.numbers_vary = true;
    event.reason = ml_str_of(reason);
    event.note = ml_str_of(note);
    ml_recorder_event(services->recorder, &event);
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
    ml_recorder_event(self->services->recorder, &event);
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

/* The text of the failure, with the field if one is invalid; "" without a failure. */
static const char *failure_text(const struct ml_reconcile *self)
{
    if (self->invalid)
        return self->invalid;
    return self->result.err ? self->result.err->message : "";
}

/* The traceback only once: it is the same each time. */
static void log_failure(const struct ml_reconcile *self, const struct ml_repeat *repeat,
                        int64_t retry_ns, const char *message)
{
    const char *controller = self->revision->declaration->name;
    int64_t line = line_of_error(self, self->result.err->message);
    ml_error(
        self->services->log, controller, message,
        ML_OBJECT_FIELDS(controller, ml_revision_kind(self->revision)->kind,
                         ml_object_key(self->object)),
        ML_S("reconcileID", self->id), ML_ERROR_TEXT(failure_text(self)),
        ML_S("errorKind", ml_err_name(self->result.err->kind)), ML_REVISION_FIELDS(self->revision),
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
           (result->err->kind == ML_ECANCELED ||
            (result->err->kind == ML_ECONFLICT && !failure_lasts(self)));
}

/* The reason in the Event and in the condition that tell of a failure. NULL: nobody is told, as of
 * a conflict or a fault of the network that has not lasted long. */
static const char *failure_reason(struct ml_reconcile *self)
{
    const struct ml_err *err = self->result.err;
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

/* `was`: how it failed until now; zeros: it did not, as far as this process knows. */
static void tell_recovery(const struct ml_reconcile *self, const struct ml_repeat *was)
{
    const char *controller = self->revision->declaration->name;
    if (was->failures > 0 || self->takes_back)
        ml_info(self->services->log, controller, "reconciled again after a failure",
                ML_OBJECT_FIELDS(controller, ml_revision_kind(self->revision)->kind,
                                 ml_object_key(self->object)),
                ML_S("reconcileID", self->id), ML_REPEAT_FIELDS(was, -1));
    /* Only a failure that the server has an Event of is taken back: else an outage would end in an
     * Event for each object. */
    const struct ml_event warning = event_of(self, true);
    bool is_told = self->takes_back ||
                   (was->is_reported && ml_recorder_shows(self->services->recorder, &warning));
    if (is_told && !self->result.finalized && !self->unfinished)
        record_event(self, false, "Reconciled", "the reconcile that failed before has succeeded");
}

void ml_reconcile_log_failure(struct ml_reconcile *self, struct ml_keys *keys, int64_t retry_ns)
{
    struct ml_str key = ml_object_key(self->object);
    if (self->call == ML_CALL_PAUSE)
        return;
    if (self->result.outcome == ML_OUTCOME_OK) {
        const struct ml_repeat was = ml_keys_reconciled(keys, key);
        tell_recovery(self, &was);
        return;
    }
    struct ml_repeat *repeat = &ml_keys_failures(keys, key)->reconcile;
    repeat->is_reported = repeat->is_reported || failure_reason(self);
    if (failure_is_of_host(self) || !ml_repeat_failed(repeat, ml_str_of(failure_text(self)),
                                                      ml_clock_monotonic(self->services->clock)))
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

/* Tells of a failure in an Event, where a person looks. */
static void tell_failure(struct ml_reconcile *self)
{
    const char *reason = failure_reason(self);
    if (reason)
        record_event(self, true, reason, failure_text(self));
}

/* ---- the status ---- */

/* A write of the host failed: makes the outcome an error, which is tried again, and tells of it.
 * `what` was tried: "write status"; NULL: `err` says it. */
static void fail_write(struct ml_reconcile *self, const struct ml_err *err, const char *what)
{
    free(self->result.err);
    self->result.err = ml_err_dup(err);
    if (what)
        ml_err_wrap(self->result.err, "%s", what);
    self->result.outcome = ML_OUTCOME_ERROR;
    self->result.finalized = false;
    free(ml_take(&self->invalid));
    tell_failure(self);
}

/* The outcome of this reconcile, for the condition in the status. False: the status does not show
 * it. The status of a built-in kind belongs to Kubernetes' own controllers. */
static bool says_reconciled(struct ml_reconcile *self, struct ml_reconciled *out)
{
    const struct ml_kind *kind = ml_revision_kind(self->revision);
    bool good = self->result.outcome == ML_OUTCOME_OK;
    *out = (struct ml_reconciled){
        .controller = self->revision->declaration->name,
        .formerly = self->revision->declaration->formerly,
        .failure = good && self->unfinished ? REASON_UNFINISHED : failure_reason(self),
        .message = good && self->unfinished ? self->unfinished : failure_text(self),
    };
    if (good && self->call == ML_CALL_PAUSE) {
        out->failure = REASON_PAUSED;
        out->message = NOTE_PAUSED;
    }
    return kind->has_status && !ml_group_is_built_in(ml_str_of(kind->group)) &&
           !self->revision->without_condition && (out->failure || good);
}

/* The condition Reconciled in an object, or in a patch of one; or nothing. */
static struct ml_str find_condition(struct ml_str object)
{
    struct ml_str conditions = {NULL, 0};
    ml_json_find(object, &conditions, "status", "conditions", NULL);
    return ml_conditions_find(conditions, ML_STR(ML_CONDITION_RECONCILED));
}

/* Its place in the list, which has it. */
static size_t place_of_condition(struct ml_str patch, struct ml_str condition)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct ml_str conditions = {NULL, 0};
    size_t place = 0;
    ml_json_find(patch, &conditions, "status", "conditions", NULL);
    ml_json_reader_init(&reader, conditions, 0);
    ml_json_next(&reader);
    for (struct ml_str raw; (raw = ml_json_skip(&reader)).len > 0 && raw.ptr != condition.ptr;)
        place++;
    return place;
}

/* Does the object say that a reconcile of this controller failed? */
static bool said_failure(const struct ml_reconcile *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    struct ml_str conditions = {NULL, 0};
    ml_object_json(self->object, &json);
    ml_json_find(ml_buf_str(&json), &conditions, "status", "conditions", NULL);
    const struct ml_declaration *declaration = self->revision->declaration;
    struct ml_str condition = ml_conditions_find(conditions, ML_STR(ML_CONDITION_RECONCILED));
    ML_AUTO_FREE char *reason = ml_json_find_string(condition, "reason", NULL);
    return ml_reconciled_failed(conditions, declaration->name, declaration->formerly) &&
           !(reason && strcmp(reason, REASON_PAUSED) == 0);
}

/* True: the object has to carry the finalizer first, and the patch waits for that. */
static bool hold_status(struct ml_reconcile *self, struct ml_str patch)
{
    if (self->condition_alone || self->version || !lacks_finalizer(self->revision, self->object))
        return false;
    self->held = ml_str_dup(patch);
    self->write = ADDS_FINALIZER;
    write_finalizer(self, true);
    return true;
}

/* ---- what the server does not keep ---- */

static struct ml_unkept_patch patch_of_status(const struct ml_reconcile *self, struct ml_str kept,
                                              struct ml_str sent)
{
    return (struct ml_unkept_patch){
        .root = "status",
        .kept = kept,
        .sent = sent,
        .built_in = ml_group_is_built_in(ml_str_of(ml_revision_kind(self->revision)->group)),
        .now_ns = ml_clock_monotonic(self->services->clock),
    };
}

/* Does the patch differ from the object only in what the server does not keep? */
static bool changes_nothing(const struct ml_reconcile *self, struct ml_str patch)
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    const struct ml_unkept *unkept = &self->revision->unkept;
    struct ml_str kept = {"", 0}, sent;
    if (unkept->fields.len == 0 || !ml_json_find(patch, &sent, "status", NULL))
        return false;
    ml_object_json(self->object, &json);
    ml_json_find(ml_buf_str(&json), &kept, "status", NULL);
    const struct ml_unkept_patch of_status = patch_of_status(self, kept, sent);
    return ml_unkept_covers(unkept, &of_status);
}

static void tell_unkept(const struct ml_reconcile *self, const char *note)
{
    const char *controller = self->revision->declaration->name;
    const struct ml_kind *kind = ml_revision_kind(self->revision);
    ml_warn(self->services->log, controller,
            "the API server does not keep what the script returned",
            ML_OBJECT_FIELDS(controller, kind->kind, ml_object_key(self->object)),
            ML_S("reconcileID", self->id), ML_REVISION_FIELDS(self->revision), ML_S("error", note));
    ml_object_warning(self->services, controller, kind, self->object, "StatusNotKept", note);
}

static void tell_names(const struct ml_reconcile *self, struct ml_unkept_names *names)
{
    const char *file = self->revision->declaration->file;
    if (names->left_out.len > 0) {
        ML_AUTO_FREE char *note = ml_asprintf(
            "the API server leaves out %s, which the schema of %s does not have; correct the name "
            "in %s, or add the field to the CRD",
            ml_buf_cstr(&names->left_out), ml_revision_kind(self->revision)->kind, file);
        tell_unkept(self, note);
    }
    if (names->changed.len > 0) {
        ML_AUTO_FREE char *note = ml_asprintf(
            "the API server keeps another value than %s returned in %s (a default of the schema, "
            "or another form of the value); return the value that it keeps",
            file, ml_buf_cstr(&names->changed));
        tell_unkept(self, note);
    }
}

static void compare_with_sent(struct ml_reconcile *self, struct ml_str body)
{
    struct ml_json_wanted found[] = {{.name = "kind"}, {.name = "status"}};
    struct ml_unkept_names names = {.except = self->returns_conditions ? NULL
                                                                       : "status.conditions"};
    if (!self->sent)
        return;
    ml_json_find_members(body, found, ML_COUNT(found));
    if (found[0].raw.len == 0)
        return;
    struct ml_str kept = found[1].raw;
    const struct ml_unkept_patch patch = patch_of_status(self, kept, ml_str_of(self->sent));
    ml_unkept_learn(&self->revision->unkept, &patch, &names);
    tell_names(self, &names);
    ml_buf_fini(&names.left_out);
    ml_buf_fini(&names.changed);
}

/* Of a status that the script has no memory for, nothing is learned. */
static void keep_sent(struct ml_reconcile *self, struct ml_str patch)
{
    struct ml_str sent;
    drop_sent(self);
    if (ml_json_find(patch, &sent, "status", NULL) &&
        ml_budget_take(ml_script_budget(self->revision->script), sent.len + 1))
        self->sent = ml_str_dup(sent);
}

/* ---- the write ---- */

static void write_status(struct ml_reconcile *self, struct ml_str patch)
{
    const struct ml_kind *kind = ml_revision_kind(self->revision);
    ML_AUTO(ml_buf_fini) struct ml_buf renewed = ML_BUF_INIT;
    if (hold_status(self, patch))
        return;
    if (self->version)
        patch = ml_status_patch_renew(self->object, self->version, patch, &renewed);
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
        .check = &self->revision->check,
        .informer = self->revision->informers[0],
        .key = ml_object_key(self->object),
        .place = self->revision->declaration->file,
    };
    self->result.writes++;
    self->result.wrote_status = true;
    struct ml_str condition = find_condition(patch);
    self->sends_condition = condition.len > 0;
    self->condition_place = condition.len > 0 ? place_of_condition(patch, condition) : 0;
    keep_sent(self, patch);
    self->write = WRITES_STATUS;
    self->writing = ml_writer_send(self->services, &write, self->handler->written, self->context);
}

/* Writes `status` with the condition that says how the reconcile ended. False: there is no
 * difference, and nothing is written; or `err` has what is wrong with the status. */
static bool write_difference(struct ml_reconcile *self, struct ml_str status, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    struct ml_reconciled reconciled;
    bool says = says_reconciled(self, &reconciled);
    if (ml_status_patch(self->object, status, says ? &reconciled : NULL,
                        ml_clock_wall(self->services->clock), &patch, err) < 0)
        return false;
    if (patch.len > 0 && changes_nothing(self, ml_buf_str(&patch)))
        return false;
    struct ml_str conditions;
    self->condition_alone = status.len == 0;
    self->returns_conditions = ml_json_find(status, &conditions, "conditions", NULL);
    self->takes_back = says && !reconciled.failure && find_condition(ml_buf_str(&patch)).len > 0 &&
                       said_failure(self);
    if (patch.len)
        write_status(self, ml_buf_str(&patch));
    return patch.len > 0;
}

static bool write_condition_alone(struct ml_reconcile *self)
{
    struct ml_err err = ML_ERR_INIT;
    return write_difference(self, (struct ml_str){NULL, 0}, &err);
}

/* ---- answers to writes. True: the reconcile has ended; false: another write has begun. ---- */

static bool on_finalizer_added(struct ml_reconcile *self, struct ml_str body,
                               const struct ml_err *err)
{
    ML_AUTO_FREE char *patch = ml_take(&self->held);
    if (!err) {
        self->version = version_of_answer(self->object, body);
        write_status(self, ml_str_of(patch));
        return false;
    }
    if (err->kind == ML_ENOT_FOUND)
        return true;
    fail_write(self, err, "add the finalizer");
    return !write_condition_alone(self);
}

/* An object that is gone has no finalizer. One that stays is reconciled by whoever has no finalizer
 * any more. */
static bool on_finalizer_ended(struct ml_reconcile *self, const struct ml_err *err)
{
    if (err && err->kind != ML_ENOT_FOUND) {
        fail_write(self, err,
                   self->call == ML_CALL_TAKE_OVER ? "take over the finalizer"
                                                   : "remove the finalizer");
        return !write_condition_alone(self);
    }
    if (!ml_object_deleting(self->object))
        self->result.requeue_after_ns = 0;
    return true;
}

/* Is the field "status.conditions", or the place of the list that has the condition Reconciled, or
 * something in it? */
static bool field_is_of_condition(const struct ml_reconcile *self, const char *field)
{
    static const char list[] = "status.conditions";
    char element[32];
    if (strncmp(field, list, sizeof list - 1) != 0)
        return false;
    const char *rest = field + sizeof list - 1;
    int len = snprintf(element, sizeof element, "[%zu]", self->condition_place);
    if (strncmp(rest, element, (size_t)len) == 0)
        rest += len;
    else if (*rest)
        return false;
    return !*rest || *rest == '.';
}

/* The causes in a Status name the fields that the schema does not take: is each of them in the
 * condition? A webhook, or a field of somebody else's that does not fit, says nothing of it. */
static bool refusal_is_of_condition(const struct ml_reconcile *self, struct ml_str body)
{
    struct ml_str causes;
    size_t count = 0;
    if (!ml_json_find(body, &causes, "details", "causes", NULL))
        return false;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, causes, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return false;
    for (struct ml_str cause; (cause = ml_json_skip(&reader)).len > 0; count++) {
        ML_AUTO_FREE char *field = ml_json_find_string(cause, "field", NULL);
        if (!field || !field_is_of_condition(self, field))
            return false;
    }
    return count > 0;
}

/* From now on no object of the kind gets the condition if the schema lacks it: the server has left
 * it out, or refused it. */
static void learn_of_condition(struct ml_reconcile *self, struct ml_str body,
                               const struct ml_err *err)
{
    bool is_pruned = !err && !find_condition(body).len;
    bool is_refused = err && err->kind == ML_EINVALID && self->condition_alone &&
                      refusal_is_of_condition(self, body);
    struct ml_revision *revision = self->revision;
    if (!is_pruned && !is_refused)
        return;
    revision->without_condition = true;
    ml_info(self->services->log, revision->declaration->name,
            "the kind has no status.conditions; failures are not shown on its objects",
            ML_S("controllerKind", ml_revision_kind(revision)->kind), ML_REVISION_FIELDS(revision),
            ML_S(err ? "error" : "", err ? err->message : NULL));
}

/* Does it change the outcome that the status was not written? An object that is gone needs none.
 * The condition alone is tried again with the reconcile, if that is tried again, or else if it may
 * come to another result. */
static bool status_is_missed(const struct ml_reconcile *self, const struct ml_err *err)
{
    if (err->kind == ML_ENOT_FOUND)
        return false;
    return !self->condition_alone ||
           (self->result.outcome != ML_OUTCOME_ERROR && ml_err_retriable(err->kind));
}

/* A failed status write turns a good outcome into one that is tried again. */
static bool on_status_written(struct ml_reconcile *self, struct ml_str body,
                              const struct ml_err *err)
{
    if (self->sends_condition)
        learn_of_condition(self, body, err);
    if (!err)
        compare_with_sent(self, body);
    drop_sent(self);
    if (!err || !status_is_missed(self, err))
        return true;
    fail_write(self, err, "write status");
    return self->condition_alone || !write_condition_alone(self);
}

static bool on_written(struct ml_reconcile *self, struct ml_str body, const struct ml_err *err)
{
    switch (self->write) {
    case WRITES_STATUS:
        return on_status_written(self, body, err);
    case ADDS_FINALIZER:
        return on_finalizer_added(self, body, err);
    case ENDS_FINALIZER:
        return on_finalizer_ended(self, err);
    }
    ML_UNREACHABLE();
}

const struct ml_result *ml_reconcile_written(struct ml_reconcile *self, struct ml_str body,
                                             const struct ml_err *err)
{
    self->writing = NULL;
    return on_written(self, body, err) ? &self->result : NULL;
}

/* ---- the run ---- */

/* Writes what the script returned, or empty, and the condition that tells of a failure. False: none
 * of it has to be written. A status that cannot be written makes the outcome an error. Tells of the
 * failure, if it was one. */
static bool write_result(struct ml_reconcile *self, struct ml_str status)
{
    struct ml_err err = ML_ERR_INIT;
    bool writes = write_difference(self, status, &err);
    if (err.kind) {
        fail_write(self, &err, NULL);
        return write_condition_alone(self);
    }
    tell_failure(self);
    if (writes && self->call == ML_CALL_PAUSE)
        record_event(self, false, REASON_PAUSED, NOTE_PAUSED);
    return writes;
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

static void end_with_finalizer(struct ml_reconcile *self, bool add)
{
    self->result.writes++;
    self->write = ENDS_FINALIZER;
    write_finalizer(self, add);
}

/* All that outlives the call. */
static void take_result(struct ml_reconcile *self, struct ml_result *result)
{
    self->version = result->version.len > 0 ? ml_str_dup(result->version) : NULL;
    self->traceback = ml_strdup(result->traceback);
    if (result->outcome == ML_OUTCOME_INVALID)
        self->invalid = ml_asprintf(ML_STR_FMT ": %s", ML_STR_ARG(result->field),
                                    result->err->message);
    self->result = ml_result_take(result);
}

const struct ml_result *ml_reconcile_ran(struct ml_reconcile *self, struct ml_result *result)
{
    self->run = NULL;
    take_result(self, result);
    if (self->result.finalized) {
        end_with_finalizer(self, false);
        return NULL;
    }
    tell_unfinished(self);
    return write_result(self, result->status) ? NULL : &self->result;
}

/* Only the condition may have to be written. */
static void end_paused(struct ml_reconcile *self)
{
    struct ml_result nothing = {
        .outcome = ML_OUTCOME_OK, .requeue_after_ns = -1, .requeue_at_ns = -1};
    self->handler->ran(self->context, &nothing);
}

static void start_script(void *context)
{
    struct ml_reconcile *self = context;
    struct ml_script *script = self->revision->script;
    if (self->call == ML_CALL_PAUSE) {
        end_paused(self);
        return;
    }
    struct ml_run *run = self->call == ML_CALL_FINALIZE
                             ? ml_script_finalize(script, self->object, self->id,
                                                  self->handler->ran, self->context)
                             : ml_script_reconcile(script, self->object, self->id,
                                                   self->handler->ran, self->context);
    /* NULL: over already, and `self` with it unless a status is being written. */
    if (run)
        self->run = run;
}

/* No code of the script runs. */
static void start_release(struct ml_reconcile *self)
{
    self->result = (struct ml_result){.outcome = ML_OUTCOME_OK,
                                      .requeue_after_ns = -1,
                                      .requeue_at_ns = -1,
                                      .finalized = self->call == ML_CALL_RELEASE};
    end_with_finalizer(self, self->call == ML_CALL_TAKE_OVER);
}

struct ml_reconcile *ml_reconcile_start(struct ml_revision *revision, struct ml_object *object,
                                        enum ml_reconcile_call call, const char *id,
                                        const struct ml_reconcile_handler *handler, void *context)
{
    struct ml_reconcile *self = ml_new(struct ml_reconcile);
    self->services = revision->services;
    self->id = id;
    self->revision = ml_revision_ref(revision);
    self->object = ml_object_ref(object);
    self->call = call;
    self->handler = handler;
    self->context = context;
    ml_slice_init(&self->start, start_script, self);
    if (call == ML_CALL_RELEASE || call == ML_CALL_TAKE_OVER)
        start_release(self);
    else
        ml_slice_wait(&self->start, revision->cpu_account);
    return self;
}

bool ml_reconcile_writes(const struct ml_reconcile *self)
{
    return self->writing || (self->run && ml_script_writes(self->run));
}
