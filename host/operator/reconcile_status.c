/* The write of an object's status: what the script returned, and the condition Reconciled. Called
 * by reconcile.c once the script has ended. */
#include "codec/json.h"
#include "operator/conditions.h"
#include "operator/finalizer.h"
#include "operator/reconcile_internal.h"
#include "operator/status.h"
#include "state/writer.h"

#include <stdio.h>

void reconcile_fail_write(struct ml_reconcile *self, const struct ml_err *err, const char *what)
{
    struct ml_err failed = *err;
    if (what)
        ml_err_wrap(&failed, "%s", what);
    self->result.err = failed;
    self->result.outcome = ML_OUTCOME_ERROR;
    self->result.finalized = false;
    free(ml_take(&self->invalid));
    reconcile_tell_failure(self);
}

/* What the status is to say of this reconcile. False: nothing. The status of a built-in kind is a
 * matter of Kubernetes' own controllers. */
static bool says_reconciled(struct ml_reconcile *self, struct ml_reconciled *out)
{
    const struct ml_kind *kind = ml_revision_kind(self->revision);
    bool good = self->result.outcome == ML_OUTCOME_OK;
    *out = (struct ml_reconciled){
        .controller = self->revision->declaration->name,
        .formerly = self->revision->declaration->formerly,
        .failure = good && self->unfinished ? REASON_UNFINISHED : reconcile_failure_reason(self),
        .message = good && self->unfinished ? self->unfinished : reconcile_failure_text(self),
    };
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
    return ml_reconciled_failed(conditions, declaration->name, declaration->formerly);
}

static void on_status_written(void *context, struct ml_str body, const struct ml_err *err);
static void on_finalizer_added(void *context, struct ml_str body, const struct ml_err *err);

/* True: the object has to carry the finalizer first, and the patch waits for that. */
static bool hold_status(struct ml_reconcile *self, struct ml_str patch)
{
    if (self->condition_alone || self->version || !ml_finalizer_lacks(self->revision, self->object))
        return false;
    self->held = ml_str_dup(patch);
    self->writing = ml_finalizer_write(self->revision, self->object, true, on_finalizer_added,
                                       self);
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
        .now_ns = ml_clock_monotonic(self->cluster->clock),
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
    ml_warn(self->cluster->log, controller, "the API server does not keep what the script returned",
            ML_OBJECT_FIELDS(controller, kind->kind, ml_object_key(self->object)),
            ML_S("reconcileID", self->id), ML_REVISION_FIELDS(self->revision), ML_S("error", note));
    ml_object_warning(self->cluster, controller, kind, self->object, "StatusNotKept", note);
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
    struct ml_str kept = {"", 0}, kind;
    struct ml_unkept_names names = {.except = self->returns_conditions ? NULL
                                                                       : "status.conditions"};
    if (!self->sent || !ml_json_find(body, &kind, "kind", NULL))
        return;
    ml_json_find(body, &kept, "status", NULL);
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
    reconcile_drop_sent(self);
    if (ml_json_find(patch, &sent, "status", NULL) &&
        ml_budget_take(ml_script_budget(self->revision->script), sent.len + 1))
        self->sent = ml_str_dup(sent);
}

void reconcile_drop_sent(struct ml_reconcile *self)
{
    if (!self->sent)
        return;
    ml_budget_give(ml_script_budget(self->revision->script), strlen(self->sent) + 1);
    free(ml_take(&self->sent));
}

/* ---- the write ---- */

static void write_status(struct ml_reconcile *self, struct ml_str patch)
{
    const struct ml_kind *kind = ml_revision_kind(self->revision);
    ML_AUTO(ml_buf_fini) struct ml_buf renewed = ML_BUF_INIT;
    if (hold_status(self, patch))
        return;
    if (self->version)
        patch = ml_finalizer_renew(self->object, self->version, patch, &renewed);
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
    struct ml_str condition = find_condition(patch);
    self->sends_condition = condition.len > 0;
    self->condition_place = condition.len > 0 ? place_of_condition(patch, condition) : 0;
    keep_sent(self, patch);
    self->writing = ml_writer_send(self->cluster, &write, on_status_written, self);
}

static void on_finalizer_added(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_reconcile *self = context;
    ML_AUTO_FREE char *patch = ml_take(&self->held);
    self->writing = NULL;
    if (!err) {
        self->version = ml_finalizer_version(self->object, body);
        write_status(self, ml_str_of(patch));
        return;
    }
    if (err->kind == ML_ENOT_FOUND) {
        reconcile_finish(self);
        return;
    }
    reconcile_fail_write(self, err, "add the finalizer");
    reconcile_write_condition(self);
}

/* Writes `status` with the condition that says how the reconcile ended. False: there is no
 * difference, and nothing is written; or `err` has what is wrong with the status. */
static bool write_difference(struct ml_reconcile *self, struct ml_str status, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    struct ml_reconciled reconciled;
    bool says = says_reconciled(self, &reconciled);
    if (ml_status_patch(self->object, status, says ? &reconciled : NULL,
                        ml_clock_wall(self->cluster->clock), &patch, err) < 0)
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

void reconcile_write_condition(struct ml_reconcile *self)
{
    if (!write_condition_alone(self))
        reconcile_finish(self);
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

/* Objects of a kind whose schema has no such conditions get no condition any more: the server
 * has left it out, or refused it. */
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
    ml_info(self->cluster->log, revision->declaration->name,
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
static void on_status_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_reconcile *self = context;
    self->writing = NULL;
    if (self->sends_condition)
        learn_of_condition(self, body, err);
    if (!err)
        compare_with_sent(self, body);
    reconcile_drop_sent(self);
    if (err && status_is_missed(self, err)) {
        reconcile_fail_write(self, err, "write status");
        if (!self->condition_alone && write_condition_alone(self))
            return;
    }
    reconcile_finish(self);
}

void reconcile_write_status(struct ml_reconcile *self, struct ml_str status)
{
    struct ml_err err = ML_ERR_INIT;
    bool writes = write_difference(self, status, &err);
    if (err.kind) {
        reconcile_fail_write(self, &err, NULL);
        writes = write_condition_alone(self);
    } else {
        reconcile_tell_failure(self);
    }
    if (!writes)
        reconcile_finish(self);
}
