/* The ownership of an existing object: ctx.ensure, ctx.apply, children and ctx.once ask here before
 * they write one of an owned kind. An object that the reconciled one controls is written. One that
 * another controls is refused, whatever the script says: an object has one controller. About one
 * that nobody controls the server is asked: if this controller has made it, it has lost its owner
 * (--cascade=orphan, a restore) and gets it again; any other is taken over only by the word
 * `adopt`.
 *
 * Control is the owner reference with controller: true, or the mark of a child that cannot have one
 * (kube/tracked_children.h). The managedFields of an object say who made it; the cache does not
 * have them. docs/decisions/0024. */
#include "kube/managed_fields.h"
#include "kube/tracked_children.h"
#include "script/ctx_target.h"

enum holder {
    HELD_BY_US,
    HELD_BY_NOBODY,
    HELD_BY_EARLIER, /* an object of our kind and name that is gone: it goes, too, or has gone */
    HELD_BY_ANOTHER,
};

/* Is the mark one of the reconciled object: of this controller or one that it was formerly, and of
 * an object of its name, which is itself or has been there before it? */
static bool is_our_mark(const struct ml_run *run, struct ml_str mark)
{
    struct ml_str controller = ml_str_cut(&mark, ' '), key = ml_str_cut(&mark, ' ');
    return ml_str_eq(key, ml_object_key(run->thread.object)) &&
           ml_declaration_is_called(&run->thread.script->declaration, controller);
}

/* `who`: the holder, for messages. */
static enum holder find_holder(const struct ml_run *run, const struct write_target *target,
                               const struct ml_owner *controller, struct ml_str mark,
                               char who[OWNER_TEXT_MAX])
{
    const struct ml_object *us = run->thread.object;
    ctx_owner_text(controller, who);
    if (controller->kind.ptr && !target->tracked && ml_str_eq(controller->uid, ml_object_uid(us)))
        return HELD_BY_US;
    if (controller->kind.ptr && ml_str_eq(controller->name, ml_object_name(us)) &&
        ml_str_is(controller->kind, run->thread.script->binding.kinds[0]->kind))
        return HELD_BY_EARLIER;
    if (controller->kind.ptr)
        return HELD_BY_ANOTHER;
    if (mark.len == 0)
        return HELD_BY_NOBODY;
    snprintf(who, OWNER_TEXT_MAX, ML_STR_FMT, ML_STR_ARG(ml_str_head(mark, 150)));
    if (!is_our_mark(run, mark))
        return HELD_BY_ANOTHER;
    return target->tracked ? HELD_BY_US : HELD_BY_NOBODY;
}

static enum holder find_holder_of_cached(const struct ml_run *run,
                                         const struct write_target *target,
                                         const struct ml_object *object, char who[OWNER_TEXT_MAX])
{
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    struct ml_owner controller = {.kind = {NULL, 0}};
    struct ml_str mark = {"", 0};
    if (!ml_object_controller(object, &controller)) {
        ml_object_json(object, &json);
        mark = ml_tracked_annotation(ml_buf_str(&json), ML_TRACKED_OWNER);
    }
    return find_holder(run, target, &controller, mark, who);
}

bool ctx_controls(const struct ml_run *run, const struct write_target *target,
                  const struct ml_object *object)
{
    char who[OWNER_TEXT_MAX];
    return find_holder_of_cached(run, target, object, who) == HELD_BY_US;
}

bool ctx_is_anothers(const struct ml_run *run, const struct write_target *target,
                     const struct ml_object *object)
{
    char who[OWNER_TEXT_MAX];
    return find_holder_of_cached(run, target, object, who) >= HELD_BY_EARLIER;
}

ML_RAISES static int refuse_foreign(lua_State *L, const struct write_target *target,
                                    enum holder holder, const char *who)
{
    struct ml_run *run = script_thread_of(L)->run;
    const char *kind = target->kind.kind->kind;
    struct ml_err err = ML_ERR_INIT;
    if (holder == HELD_BY_EARLIER)
        ml_err_set(
            &err, ML_EALREADY_EXISTS,
            "%s %s exists and is controlled by an earlier %s, with which it is to be deleted", kind,
            target->key, who);
    else if (holder == HELD_BY_ANOTHER)
        ml_err_set(&err, ML_EALREADY_EXISTS,
                   "%s %s exists and is controlled by %s; an object has one controller: give yours "
                   "another name",
                   kind, target->key, who);
    else
        ml_err_set(&err, ML_EALREADY_EXISTS,
                   "%s %s exists and is controlled by nothing, and controller %s has not made it; "
                   "give yours another name, delete this one, or take it over with adopt = true "
                   "in the call or in owns, { kind = %s, adopt = true }",
                   kind, target->key, run->thread.script->declaration.name, kind);
    err.http = 409;
    ctx_note_request(run, "create", &target->kind, target->key);
    return ctx_refuse_write(L, &err);
}

ML_RAISES enum claim ctx_claim_cached(lua_State *L, struct write_target *target,
                                      const struct ml_object *object)
{
    char who[OWNER_TEXT_MAX];
    if (!target->owned)
        return CLAIM_WRITE;
    enum holder holder = find_holder_of_cached(script_thread_of(L)->run, target, object, who);
    if (holder == HELD_BY_NOBODY || holder == HELD_BY_EARLIER)
        return CLAIM_ASK_SERVER;
    if (holder == HELD_BY_ANOTHER) {
        refuse_foreign(L, target, holder, who);
        return CLAIM_REFUSED;
    }
    target->guard_uid = ml_object_uid(object);
    return CLAIM_WRITE;
}

/* Has this controller, or one that it was formerly, set a field of it? Fields that
 * ctx.patch set have a manager of their own, and do not count: a script may patch foreign objects.
 */
static bool has_made(const struct ml_script *script, struct ml_str metadata)
{
    const struct ml_managers managers = {.name = script->field_manager,
                                         .applies = script->former_managers};
    return ml_managers_have(&managers, metadata);
}

static void log_adoption(const struct ml_run *run, const struct write_target *target)
{
    const struct ml_script *script = run->thread.script;
    ml_info(script->services->log, script->declaration.name,
            "an object without a controller is taken over",
            ML_OBJECT_FIELDS(script->declaration.name, script->binding.kinds[0]->kind,
                             ml_object_key(run->thread.object)),
            ML_S("reconcileID", run->id), ML_S("kind", target->kind.kind->kind),
            ML_S("target", target->key));
}

ML_RAISES enum claim ctx_claim_answer(lua_State *L, struct write_target *target)
{
    struct ml_run *run = script_thread_of(L)->run;
    char who[OWNER_TEXT_MAX];
    struct ml_owner controller;
    if (!target->owned)
        return CLAIM_WRITE;
    struct ml_str metadata = ctx_json_field(run->body, "metadata");
    struct ml_str mark = ml_tracked_annotation(run->body, ML_TRACKED_OWNER);
    ctx_read_owners(metadata, &controller);
    enum holder holder = find_holder(run, target, &controller, mark, who);
    target->guard_uid = ctx_plain_field(metadata, "uid");
    if (holder == HELD_BY_US)
        return CLAIM_WRITE;
    if (holder >= HELD_BY_EARLIER || (!target->adopt && !has_made(run->thread.script, metadata))) {
        refuse_foreign(L, target, holder, who);
        return CLAIM_REFUSED;
    }
    if (ctx_json_field(metadata, "deletionTimestamp").len > 0) {
        ml_err_set(run_make_err(run), ML_EALREADY_EXISTS, "%s %s is being deleted",
                   target->kind.kind->kind, target->key);
        ctx_fail(L, run->err);
        return CLAIM_REFUSED;
    }
    target->guard_rv = ctx_plain_field(metadata, "resourceVersion");
    log_adoption(run, target);
    return CLAIM_ADOPT;
}

ML_RAISES void ctx_send_adoption(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_json_writer writer;
    ml_buf_clear(&script->body);
    ml_json_writer_init(&writer, &script->body);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "uid", target->guard_uid);
    ml_json_put_string(&writer, "resourceVersion", target->guard_rv);
    ctx_write_references(&writer, script, run->thread.object,
                         ctx_json_field(run->body, "metadata"));
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&script->body)};
    bool shows = target->kind.selection->labels.len + target->kind.selection->fields.len == 0;
    ctx_send_write(L, "adopt", target, request, shows);
}

static size_t add_managers(const char *const *managers, const char **out)
{
    size_t count = 0;
    for (; managers[count]; count++)
        out[count] = managers[count];
    return count;
}

/* Managers whose updates no version of the script wants any more: those of creates, unless this run
 * has made the object by ctx.ensure or ctx.create, and those of patches, if it makes none. */
static void list_unwanted_updates(const struct ml_run *run, const struct write_target *target,
                                  const char **out)
{
    const struct ml_script *script = run->thread.script;
    if (!children_is_made(run, &target->kind, target->key)) {
        *out++ = script->field_manager;
        out += add_managers(script->former_managers, out);
    }
    if (!script->calls_patch) {
        *out++ = script->patch_manager;
        out += add_managers(script->former_patch_managers, out);
    }
    *out = NULL;
}

ML_RAISES bool ctx_send_joined_fields(lua_State *L, const struct write_target *target)
{
    struct ml_script *script = script_of(L);
    struct ml_run *run = script_thread_of(L)->run;
    const char *updates[2 * ML_SCRIPT_FORMERLY_MAX + 3];
    const struct ml_managers managers = {
        .name = script->field_manager, .updates = updates, .applies = script->former_managers};
    list_unwanted_updates(run, target, updates);
    struct ml_str metadata = ctx_json_field(run->body, "metadata");
    if (ctx_is_once(&script->kinds[target->kind.index].gvk, run->body))
        return false;
    ml_buf_clear(&script->overlay);
    if (!ml_managers_join(&managers, metadata, &script->overlay))
        return false;
    script_cpu_check(L);
    ml_buf_clear(&script->body);
    ml_buf_printf(&script->body,
                  "{\"metadata\":{\"uid\":\"" ML_STR_FMT "\",\"resourceVersion\":\"" ML_STR_FMT
                  "\",\"managedFields\":" ML_STR_FMT "}}",
                  ML_STR_ARG(ctx_plain_field(metadata, "uid")),
                  ML_STR_ARG(ctx_plain_field(metadata, "resourceVersion")),
                  ML_STR_ARG(ml_buf_str(&script->overlay)));
    run->writes--; /* it and the apply that follows belong to the one that was counted */
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&script->body)};
    ctx_send_write(L, "take over the fields of", target, request, false);
    return true;
}
