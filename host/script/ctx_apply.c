/* ctx.apply, and the applies of what reconcile returns as children: sent only when the object or
 * the fields that are given have changed since the last time. */
#include "base/map.h"
#include "script/ctx_calls.h"
#include "script/ctx_target.h"

#define APPLIED_MAX 10000 /* objects of one script; when it is full, all are forgotten */

/* The last apply of an object. */
struct applied {
    uint64_t hash; /* of the body that was sent */
    char rv[32];   /* resourceVersion of the answer */
    char key[];    /* "v1 Pod default/x" */
};

static size_t applied_bytes(const struct applied *applied)
{
    return sizeof(*applied) + strlen(applied->key) + 1 + 2 * sizeof(struct ml_map_slot);
}

void ctx_forget_applied(struct ml_script *script)
{
    ml_map_each (&script->applied, cursor, applied) {
        ml_budget_give(&script->memory, applied_bytes(applied));
        free(applied);
    }
    ml_map_fini(&script->applied);
}

static char *applied_key(const struct write_target *target)
{
    const struct ml_kind *kind = target->kind.kind;
    return ml_asprintf("%s %s %s", kind->api_version, kind->kind, target->key);
}

static void remember_apply(struct ml_script *script, const struct write_target *target,
                           uint64_t hash, struct ml_str rv)
{
    ML_AUTO_FREE char *key = applied_key(target);
    struct applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    if (rv.len >= sizeof(applied->rv))
        return;
    if (!applied) {
        if (script->applied.len >= APPLIED_MAX)
            ctx_forget_applied(script);
        size_t size = strlen(key) + 1;
        applied = ml_zalloc(sizeof(*applied) + size);
        memcpy(applied->key, key, size);
        if (!ml_budget_take(&script->memory, applied_bytes(applied))) { /* then it is sent again */
            free(applied);
            ctx_forget_applied(script);
            return;
        }
        ml_map_put(&script->applied, ml_str_of(applied->key), applied);
    }
    applied->hash = hash;
    memcpy(applied->rv, rv.ptr, rv.len);
    applied->rv[rv.len] = '\0';
}

/* The cached object, in full or in part, when applying changes nothing, else NULL. By the rules of
 * server-side apply nothing changes when the body is the one that was applied last, and the cache
 * shows the resourceVersion that this apply was answered with. Anything else is sent: only the
 * server knows whether a field that is left out now was ours to remove. */
static struct ml_object *find_unchanged(struct ml_script *script, const struct write_target *target,
                                        uint64_t hash)
{
    ML_AUTO_FREE char *key = applied_key(target);
    const struct applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    struct ml_object *object = ctx_cached(&target->kind, target->key);
    if (!applied || !object || applied->hash != hash ||
        !ml_str_is(ml_object_rv(object), applied->rv))
        return NULL;
    return object;
}

/* `hash`: of the body that was sent. */
ML_RAISES static int apply_answered(lua_State *L, int status, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind == 0) {
        struct write_target target;
        ctx_check_object(L, APPLY_CALL, &target);
        remember_apply(run->thread.script, &target, (uint64_t)hash,
                       ctx_plain_field(ctx_json_field(run->body, "metadata"), "resourceVersion"));
    }
    return ctx_write_answered(L, status, hash);
}

ML_RAISES int ctx_apply(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, APPLY_CALL);
    struct write_target target;
    lua_settop(L, 1);
    ctx_check_object(L, APPLY_CALL, &target);
    ctx_complete_object(L, &target);
    struct ml_str body = ml_buf_str(&run->thread.script->body);
    uint64_t hash = ml_hash(body);
    struct ml_object *object = find_unchanged(run->thread.script, &target, hash);
    if (object && !target.kind.selection->metadata_only) { /* apply returns the whole object */
        ctx_note_written(run, &target);
        script_push_object(L, object, 0);
        return 1;
    }
    const struct ml_client_request request = {.verb = ML_VERB_APPLY, .body = body, .force = true};
    ctx_send_write(L, "apply", &target, request, false);
    return lua_yieldk(L, 0, (lua_KContext)hash, apply_answered);
}

/* ---- children ---- */

ML_RAISES static struct write_target check_child(lua_State *L)
{
    struct write_target target;
    ctx_check_object(L, luaL_checkstring(L, 2), &target);
    target.followed = followed_is(L, &target);
    return target;
}

ML_RAISES static int child_is(lua_State *L, const char *state)
{
    lua_pushstring(L, state);
    return 1;
}

/* What is refused is no write: the children behind it get theirs in this run. `hash`: as in
 * apply_answered. */
ML_RAISES static int child_answered(lua_State *L, int status ML_UNUSED, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind) {
        run->writes--;
        return ctx_refuse_write(L, &run->err);
    }
    struct write_target target = check_child(L);
    remember_apply(run->thread.script, &target, (uint64_t)hash,
                   ctx_plain_field(ctx_json_field(run->body, "metadata"), "resourceVersion"));
    ctx_accept_write(run);
    return child_is(L, "applied");
}

/* The guards are not in the hash: what changes nothing is the same with any of them. */
ML_RAISES static int send_child(lua_State *L, const struct write_target *target, uint64_t hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->writes >= run->thread.script->limits.writes_max)
        return child_is(L, "full");
    ctx_complete_object(L, target);
    const struct ml_client_request request = {
        .verb = ML_VERB_APPLY, .body = ml_buf_str(&run->thread.script->body), .force = true};
    ctx_send_write(L, "apply", target, request, false);
    return lua_yieldk(L, 0, (lua_KContext)hash, child_answered);
}

ML_RAISES static uint64_t hash_of_child(lua_State *L, const struct write_target *target)
{
    ctx_complete_object(L, target);
    return ml_hash(ml_buf_str(&script_of(L)->body));
}

/* The answer to a GET of an object that the label selector of the watch may leave out. */
ML_RAISES static int child_found(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target = check_child(L);
    struct ml_owner controller;
    if (run->err.kind && run->err.kind != ML_ENOT_FOUND)
        return ctx_fail(L, &run->err);
    struct ml_str metadata = run->err.kind ? ML_STR("{}") : ctx_json_field(run->body, "metadata");
    ctx_read_owners(metadata, &controller);
    int results = run->err.kind ? 0 : ctx_fail_if_foreign(L, &target, &controller);
    if (results > 0)
        return results;
    if (ctx_json_field(metadata, "deletionTimestamp").len >
        0) { /* no watch tells when it is gone */
        ml_err_set(&run->err, ML_EALREADY_EXISTS, "it is being deleted");
        return ctx_fail(L, &run->err);
    }
    uint64_t hash = hash_of_child(L, &target);
    target.guard_absent = run->err.kind == ML_ENOT_FOUND;
    target.guard_uid = ctx_plain_field(metadata, "uid");
    return send_child(L, &target, hash);
}

ML_RAISES static int apply_cached_child(lua_State *L, struct write_target *target,
                                        struct ml_object *object, uint64_t hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct ml_owner controller = {.uid = {"", 0}};
    ml_object_controller(object, &controller);
    int results = target->followed ? followed_fail_if_foreign(L, target, object)
                                   : ctx_fail_if_foreign(L, target, &controller);
    if (results > 0)
        return results;
    bool leaves = ml_object_deleting(object);
    if (leaves || find_unchanged(run->thread.script, target, hash)) {
        ctx_note_written(run, target);
        return child_is(L, leaves ? "leaving" : "kept");
    }
    target->guard_uid = ml_object_uid(object);
    return send_child(L, target, hash);
}

ML_RAISES int ctx_apply_child(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, "children");
    lua_settop(L, 2);
    struct write_target target = check_child(L);
    uint64_t hash = hash_of_child(L, &target);
    struct ml_object *object = ctx_cached(&target.kind, target.key);
    if (object)
        return apply_cached_child(L, &target, object, hash);
    if (target.kind.selection->labels.len > 0) { /* none of these is followed */
        ctx_send_get(run, &target);
        return lua_yieldk(L, 0, 0, child_found);
    }
    target.guard_absent = true;
    return send_child(L, &target, hash);
}
