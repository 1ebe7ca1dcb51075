/* ctx.ensure, create, patch, delete; apply is in ctx_apply.c. Each checks, sends, and yields; what
 * comes next stands in the continuation that the yield names. */
#include "codec/json_diff.h"
#include "script/ctx.h"

#define ENSURE_CALL "ctx.ensure(object)"
#define CREATE_CALL "ctx.create(object)"
#define PATCH_CALL  "ctx.patch(object, changes)"
#define DELETE_CALL "ctx.delete(object)"

static int ensure_existing(lua_State *L, int status, lua_KContext context);

static void say(struct ml_operator *run, const char *verb, const struct ctx_target *target)
{
    ctx_say(run, verb, &target->kind, target->ns, target->name);
}

void ctx_send(struct ml_operator *run, const struct ctx_target *target,
              struct ml_client_request request, bool wait_for_cache)
{
    const struct ml_script *script = run->thread.script;
    request.kind = target->kind.kind;
    request.ns = target->ns;
    request.name = target->name;
    request.field_manager = script->field_manager;
    request.flow = script->field_manager;
    const struct ml_write write = {
        .request = request,
        .expectations = script->binding.expectations,
        .informer = target->kind.informer,
        .key = ml_object_key(run->thread.object),
        .owner_uid = target->owned ? ml_object_uid(run->thread.object) : ML_STR(""),
        .wait_for_cache = wait_for_cache && target->kind.informer,
    };
    run_write(run, &target->kind, &write);
}

static void send_create(struct ml_operator *run, const struct ctx_target *target)
{
    const struct ml_client_request request = {.verb = ML_VERB_CREATE,
                                              .body = ml_buf_str(&run->thread.script->body)};
    say(run, "create", target);
    ctx_send(run, target, request, true);
}

static void send_get(struct ml_operator *run, const struct ctx_target *target)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = target->kind.kind, .ns = target->ns, .name = target->name};
    say(run, "get", target);
    run_read(run, &request);
}

ML_RAISES
int ctx_written(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    script_push_json(L, run->body, true);
    return 1;
}

/* An object that is there when we wanted to make it: ours, or in the way? */
ML_RAISES
static int judge(lua_State *L, const struct ctx_target *target, struct ml_str uid,
                 const char *owner)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (!target->owned || ml_str_eq(uid, ml_object_uid(run->thread.object)))
        return 0;
    char key[2 * 256];
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, ML_EALREADY_EXISTS, "%s %s exists and is controlled by %s",
               target->kind.kind->kind, ctx_key(target->ns, target->name, key).ptr, owner);
    err.http = 409;
    say(run, "create", target);
    return ctx_fail(L, &err);
}

ML_RAISES
static int ensure_created(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (run->err.kind != ML_EALREADY_EXISTS)
        return ctx_written(L, LUA_OK, 0);
    struct ctx_target target;
    ctx_check_object(L, ENSURE_CALL, &target);
    send_get(run, &target);
    return lua_yieldk(L, 0, 0, ensure_existing);
}

/* The answer to a GET of what should be there. `context` 1: it may be missing, then create. */
ML_RAISES
static int ensure_existing(lua_State *L, int status ML_UNUSED, lua_KContext context)
{
    struct ml_operator *run = script_thread_of(L)->run;
    struct ctx_target target;
    ctx_check_object(L, ENSURE_CALL, &target);
    if (run->err.kind == ML_ENOT_FOUND && context == 1) {
        ctx_count_write(L);
        ctx_complete(L, &target);
        send_create(run, &target);
        return lua_yieldk(L, 0, 0, ensure_created);
    }
    if (run->err.kind == ML_ENOT_FOUND) { /* there a moment ago, gone now */
        struct ml_err err = ML_ERR_INIT;
        ml_err_set(&err, ML_ECONFLICT, "%s: it was deleted meanwhile", run->what);
        return ctx_abandon(L, &err);
    }
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    char owner[ML_ERR_REASON_MAX * 4];
    struct ml_str uid = ctx_controller_of(run->body, owner, sizeof(owner));
    int results = judge(L, &target, uid, owner);
    if (results > 0)
        return results;
    script_push_json(L, run->body, true);
    return 1;
}

/* Found in the cache: ours, or in the way? */
ML_RAISES
static int ensure_cached(lua_State *L, const struct ctx_target *target, struct ml_object *object)
{
    struct ml_owner owner = {.uid = {"", 0}};
    char text[ML_ERR_REASON_MAX * 4] = "nothing";
    if (ml_object_controller(object, &owner))
        snprintf(text, sizeof(text), ML_STR_FMT " " ML_STR_FMT, ML_STR_ARG(owner.kind),
                 ML_STR_ARG(owner.name));
    int results = judge(L, target, owner.uid, text);
    if (results > 0)
        return results;
    script_push_object(L, object);
    return 1;
}

ML_RAISES
static int ensure_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_operator *run = ctx_may_wait(L, ENSURE_CALL);
    struct ctx_target target;
    ctx_check_object(L, ENSURE_CALL, &target);
    say(run, "ensure", &target);
    if (ctx_must_wait(L, ENSURE_CALL, &target.kind))
        return lua_yieldk(L, 0, 0, ensure_now);
    ctx_complete(L, &target); /* says what is wrong with it even when it is there */
    struct ml_object *object = ctx_cached(&target.kind, target.ns, target.name);
    bool has_metadata_only = object && target.kind.selection->metadata_only;
    if (!target.kind.informer || has_metadata_only) { /* it gives the whole object, each time */
        send_get(run, &target);
        return lua_yieldk(L, 0, 1, ensure_existing);
    }
    if (object)
        return ensure_cached(L, &target, object);
    ctx_count_write(L);
    send_create(run, &target);
    return lua_yieldk(L, 0, 0, ensure_created);
}

ML_RAISES
static int ctx_ensure(lua_State *L)
{
    ctx_count_read(L);
    lua_settop(L, 1);
    return ensure_now(L, LUA_OK, 0);
}

ML_RAISES
static int ctx_create(lua_State *L)
{
    struct ml_operator *run = ctx_may_wait(L, CREATE_CALL);
    struct ctx_target target;
    lua_settop(L, 1);
    ctx_check_object(L, CREATE_CALL, &target);
    ctx_complete(L, &target);
    ctx_count_write(L);
    send_create(run, &target);
    return lua_yieldk(L, 0, 0, ctx_written);
}

/* The changes, encoded in script->overlay, guarded by uid and resourceVersion into
 * script->body. */
ML_RAISES
static void guard_changes(lua_State *L, const struct ctx_target *target)
{
    struct ml_script *script = script_of(L);
    struct ml_buf *guard = &script->opened;
    struct ml_json_writer writer;
    struct ml_err err = ML_ERR_INIT;
    ml_buf_clear(guard);
    ml_json_writer_init(&writer, guard);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("metadata"));
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "uid", target->uid);
    ml_json_put_string(&writer, "resourceVersion", target->rv);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ml_buf_clear(&script->body);
    if (ml_json_merge(ml_buf_str(&script->overlay), ml_buf_str(guard), &script->body, &err) < 0)
        luaL_error(L, PATCH_CALL ": %s", err.message);
}

/* Would the changes, in script->overlay, leave the object in script->outgoing as it is? What was
 * read without its spec cannot tell. */
ML_RAISES
static bool changes_nothing(lua_State *L, const struct ctx_target *target)
{
    if (target->kind.selection->metadata_only)
        return false;
    struct ml_script *script = script_of(L);
    struct ml_err err = ML_ERR_INIT;
    ml_buf_clear(&script->body);
    if (ml_json_merge(ml_buf_str(&script->outgoing), ml_buf_str(&script->overlay), &script->body,
                      &err) < 0)
        luaL_error(L, PATCH_CALL ": %s", err.message);
    script_cpu_check(L);
    return ml_json_equal(ml_buf_str(&script->outgoing), ml_buf_str(&script->body));
}

/* A JSON merge patch of what was read: it fails with Conflict when the object is not that one
 * any more. */
ML_RAISES
static int ctx_patch(lua_State *L)
{
    struct ml_operator *run = ctx_may_wait(L, PATCH_CALL);
    struct ml_script *script = script_of(L);
    struct ctx_target target;
    struct ml_str raw;
    lua_settop(L, 2);
    if (!lua_istable(L, 2))
        return ctx_misuse(L, PATCH_CALL, "changes: expected a table");
    ctx_check_object(L, PATCH_CALL, &target);
    if (target.uid.len == 0 || target.rv.len == 0)
        return ctx_misuse(L, PATCH_CALL,
                          "the object was not read from the server: it has no metadata.uid and "
                          "resourceVersion");
    script_encode(L, 2, "changes", &script->overlay);
    script_cpu_check(L);
    if (script->overlay.ptr[0] != '{')
        return ctx_misuse(L, PATCH_CALL, "changes: expected an object, not a list");
    if (target.kind.kind->has_status &&
        ml_json_find(ml_buf_str(&script->overlay), &raw, "status", NULL))
        return ctx_misuse(L, PATCH_CALL, "changes: status is what reconcile returns");
    if (changes_nothing(L, &target)) {
        lua_settop(L, 1);
        return 1;
    }
    guard_changes(L, &target);
    ctx_count_write(L);
    const struct ml_client_request request = {.verb = ML_VERB_PATCH_MERGE,
                                              .body = ml_buf_str(&script->body)};
    say(run, "patch", &target);
    ctx_send(run, &target, request, false);
    return lua_yieldk(L, 0, 0, ctx_written);
}

ML_RAISES
static int delete_answered(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (run->err.kind && run->err.kind != ML_ENOT_FOUND)
        return ctx_fail(L, &run->err);
    lua_pushboolean(L, 1);
    return 1;
}

ML_RAISES
static int ctx_delete(lua_State *L)
{
    struct ml_operator *run = ctx_may_wait(L, DELETE_CALL);
    struct ctx_target target;
    lua_settop(L, 1);
    ctx_check_object(L, DELETE_CALL, &target);
    if (target.uid.len == 0)
        return ctx_misuse(L, DELETE_CALL,
                          "the object was not read from the server: it has no metadata.uid");
    ctx_count_write(L);
    lua_pushlstring(L, target.uid.ptr, target.uid.len);
    lua_pushlstring(L, target.rv.ptr, target.rv.len);
    const struct ml_client_request request = {
        .verb = ML_VERB_DELETE,
        .uid = lua_tostring(L, -2),
        .resource_version = target.rv.len > 0 ? lua_tostring(L, -1) : NULL,
    };
    say(run, "delete", &target);
    ctx_send(run, &target, request, false);
    return lua_yieldk(L, 0, 0, delete_answered);
}

const luaL_Reg script_ctx_write[] = {{"apply", script_ctx_apply}, {"create", ctx_create},
                                     {"delete", ctx_delete},      {"ensure", ctx_ensure},
                                     {"patch", ctx_patch},        {NULL, NULL}};
