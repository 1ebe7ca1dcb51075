/* The write of an object's status: what the script returned, and the condition Reconciled. Called
 * by reconcile.c once the script has ended. */
#include "codec/json.h"
#include "operator/conditions.h"
#include "operator/finalizer.h"
#include "operator/reconcile_internal.h"
#include "operator/status.h"
#include "state/writer.h"

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
    self->sends_condition = find_condition(patch).len > 0;
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
    self->condition_alone = status.len == 0;
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

/* Objects of a kind whose schema has no such conditions get no condition any more: the server
 * has left it out, or refused it. */
static void learn_of_condition(struct ml_reconcile *self, struct ml_str body,
                               const struct ml_err *err)
{
    bool is_pruned = !err && !find_condition(body).len;
    bool is_refused = err && err->kind == ML_EINVALID && self->condition_alone;
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
