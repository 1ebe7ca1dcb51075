/* ctx.apply, and the applies of what reconcile returns as children: sent only when the object or
 * the fields that are given have changed since the last time. */
#include "base/map.h"
#include "script/ctx_calls.h"
#include "script/ctx_target.h"

#define APPLIED_MAX 10000 /* objects of one script; when it is full, all are forgotten */

static char *applied_key(const struct write_target *target)
{
    const struct ml_kind *kind = target->kind.kind;
    return ml_asprintf("%s %s %s", kind->api_version, kind->kind, target->key);
}

static void remember_apply(struct ml_script *script, const struct write_target *target,
                           uint64_t hash, struct ml_str rv)
{
    ML_AUTO_FREE char *key = applied_key(target);
    struct script_applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    if (rv.len >= sizeof(applied->rv))
        return;
    if (!applied) {
        if (script->applied.len >= APPLIED_MAX)
            script_forget_applied(script);
        size_t size = strlen(key) + 1;
        applied = ml_zalloc(sizeof(*applied) + size);
        memcpy(applied->key, key, size);
        if (!ml_budget_take(&script->memory,
                            script_applied_bytes(applied))) { /* then it is sent again */
            free(applied);
            script_forget_applied(script);
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
    const struct script_applied *applied = ml_map_get(&script->applied, ml_str_of(key));
    struct ml_object *object = ctx_cached(&target->kind, target->key);
    if (!applied || !object || applied->hash != hash ||
        !ml_str_is(ml_object_rv(object), applied->rv))
        return NULL;
    return object;
}

/* ---- one apply ----
 *
 * ctx.apply(object [, options]) and apply_child(child, label) go the same way: to the object in the
 * cache, or to the server's where the cache cannot tell whose it is; then the apply, guarded by
 * what was found; and, when its answer shows fields of this controller that its applies do not
 * manage yet, these are joined and it is sent again. */

static bool is_child(lua_State *L)
{
    return lua_type(L, 2) == LUA_TSTRING;
}

ML_RAISES static struct write_target check_applied(lua_State *L)
{
    struct write_target target;
    bool child = is_child(L);
    ctx_check_object(L, child ? lua_tostring(L, 2) : APPLY_CALL, &target);
    if (child)
        target.tracked = ctx_is_tracked(L, &target);
    else
        ctx_read_write_options(L, &target);
    return target;
}

ML_RAISES static int child_is(lua_State *L, const char *state)
{
    lua_pushstring(L, state);
    return 1;
}

/* A refused child takes no write of the run: the children behind it get theirs in this run. */
ML_RAISES static int fail_apply(lua_State *L)
{
    struct ml_run *run = script_thread_of(L)->run;
    run->writes -= is_child(L);
    return ctx_refuse_write(L, &run->err);
}

/* `hash`: of the body that was sent, without guards: what changes nothing is the same with any. */
ML_RAISES static int finish_apply(lua_State *L, int status, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind)
        return fail_apply(L);
    struct write_target target = check_applied(L);
    remember_apply(run->thread.script, &target, (uint64_t)hash,
                   ctx_plain_field(ctx_json_field(run->body, "metadata"), "resourceVersion"));
    if (!is_child(L))
        return ctx_write_answered(L, status, hash);
    ctx_accept_write(run);
    return child_is(L, "applied");
}

ML_RAISES static void send_apply(lua_State *L, const struct write_target *target)
{
    ctx_complete_object(L, target);
    const struct ml_client_request request = {
        .verb = ML_VERB_APPLY, .body = ml_buf_str(&script_of(L)->body), .force = true};
    ctx_send_write(L, "apply", target, request, false);
}

ML_RAISES static int fields_joined(lua_State *L, int status ML_UNUSED, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err.kind)
        return fail_apply(L);
    struct write_target target = check_applied(L);
    target.guard_uid = ctx_plain_field(ctx_json_field(run->body, "metadata"), "uid");
    run->writes--; /* it was counted when it was sent first */
    send_apply(L, &target);
    return lua_yieldk(L, 0, hash, finish_apply);
}

ML_RAISES static int apply_answered(lua_State *L, int status, lua_KContext hash)
{
    if (script_thread_of(L)->run->err.kind)
        return fail_apply(L);
    struct write_target target = check_applied(L);
    if (ctx_send_joined_fields(L, &target))
        return lua_yieldk(L, 0, hash, fields_joined);
    return finish_apply(L, status, hash);
}

/* The target is claimed: writes it, if the run has a write left. */
ML_RAISES static int apply_claimed(lua_State *L, const struct write_target *target, uint64_t hash)
{
    const struct ml_run *run = script_thread_of(L)->run;
    if (is_child(L) && run->writes >= run->thread.script->limits.writes_max)
        return child_is(L, "full");
    send_apply(L, target);
    return lua_yieldk(L, 0, (lua_KContext)hash, apply_answered);
}

/* The answer to a GET of the object. */
ML_RAISES static int object_found(lua_State *L, int status ML_UNUSED, lua_KContext hash)
{
    struct ml_run *run = script_thread_of(L)->run;
    struct write_target target = check_applied(L);
    if (run->err.kind && run->err.kind != ML_ENOT_FOUND)
        return ctx_fail(L, &run->err);
    target.guard_absent = run->err.kind == ML_ENOT_FOUND;
    if (!target.guard_absent && ctx_claim_answer(L, &target) == CLAIM_REFUSED)
        return 2;
    if (is_child(L) && !target.guard_absent &&
        ctx_json_field(ctx_json_field(run->body, "metadata"), "deletionTimestamp").len > 0) {
        ml_err_set(&run->err, ML_EALREADY_EXISTS, "%s %s is being deleted", target.kind.kind->kind,
                   target.key);
        return ctx_fail(L, &run->err); /* perhaps no watch tells when it is gone */
    }
    return apply_claimed(L, &target, (uint64_t)hash);
}

ML_RAISES static int ask_server(lua_State *L, const struct write_target *target, uint64_t hash)
{
    ctx_send_get(script_thread_of(L)->run, target);
    return lua_yieldk(L, 0, (lua_KContext)hash, object_found);
}

/* `object`: the cached one, or NULL. */
ML_RAISES static int claim_and_apply(lua_State *L, struct write_target *target,
                                     const struct ml_object *object, uint64_t hash)
{
    const struct ml_selection *selection = target->kind.selection;
    if (!object && target->owned && (selection->labels.len > 0 || selection->fields.len > 0))
        return ask_server(L, target, hash); /* the watch may leave it out */
    target->guard_absent = !object && target->owned;
    switch (object ? ctx_claim_cached(L, target, object) : CLAIM_WRITE) {
    case CLAIM_REFUSED:
        ctx_note_written(script_thread_of(L)->run, target);
        return 2;
    case CLAIM_ASK_SERVER:
        return ask_server(L, target, hash);
    case CLAIM_WRITE:
    case CLAIM_ADOPT:
        break;
    }
    return apply_claimed(L, target, hash);
}

ML_RAISES static uint64_t hash_of_body(lua_State *L, const struct write_target *target)
{
    ctx_complete_object(L, target);
    return ml_hash(ml_buf_str(&script_of(L)->body));
}

ML_RAISES static int apply_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_run *run = ctx_may_wait(L, APPLY_CALL);
    struct write_target target = check_applied(L);
    /* An object that this run has made is absent in the cache until the watch has shown it. */
    if (target.owned && children_is_wanted(run, target.kind.index, ml_str_of(target.key)) &&
        ctx_must_wait(L, APPLY_CALL, &target.kind))
        return lua_yieldk(L, 0, 0, apply_now);
    uint64_t hash = hash_of_body(L, &target);
    struct ml_object *object = find_unchanged(run->thread.script, &target, hash);
    if (object && !target.kind.selection->metadata_only) { /* apply returns the whole object */
        ctx_note_written(run, &target);
        script_push_object(L, object, 0);
        return 1;
    }
    return claim_and_apply(L, &target, ctx_cached(&target.kind, target.key), hash);
}

ML_RAISES int ctx_apply(lua_State *L)
{
    lua_settop(L, 2);
    if (is_child(L))
        luaL_error(L, APPLY_CALL ": expected options as in { adopt = true }, got a string");
    return apply_now(L, LUA_OK, 0);
}

ML_RAISES int ctx_apply_child(lua_State *L)
{
    struct ml_run *run = ctx_may_wait(L, "children");
    lua_settop(L, 2);
    luaL_checkstring(L, 2);
    struct write_target target = check_applied(L);
    uint64_t hash = hash_of_body(L, &target);
    struct ml_object *object = ctx_cached(&target.kind, target.key);
    if (!object ||
        !(ml_object_deleting(object) || find_unchanged(run->thread.script, &target, hash)))
        return claim_and_apply(L, &target, object, hash);
    if (ctx_claim_cached(L, &target, object) == CLAIM_REFUSED)
        return 2;
    ctx_note_written(run, &target);
    return child_is(L, ml_object_deleting(object) ? "leaving" : "kept");
}
