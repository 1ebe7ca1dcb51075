/* ctx.get: from the cache for kinds that are watched, by request for the others. */
#include "script/ctx.h"

#define GET_CALL "ctx.get(Kind, name [, namespace])"

struct ml_str ctx_key(struct ml_str ns, struct ml_str name, char out[2 * 256])
{
    int len = snprintf(out, 2 * 256, ML_STR_FMT "%s" ML_STR_FMT, ML_STR_ARG(ns),
                       ns.len > 0 ? "/" : "", ML_STR_ARG(name));
    return (struct ml_str){out, (size_t)len};
}

void ctx_say(struct ml_operator *run, const char *verb, const struct ctx_kind *kind, struct ml_str ns,
             struct ml_str name)
{
    char key[2 * 256];
    if (run)
        snprintf(run->what, sizeof(run->what), "%s %.64s %s", verb, kind->kind->kind,
                 ctx_key(ns, name, key).ptr);
}

struct ml_object *ctx_cached(const struct ctx_kind *kind, struct ml_str ns, struct ml_str name)
{
    char key[2 * 256];
    if (!kind->informer)
        return NULL;
    return ml_store_get(ml_informer_store(kind->informer), ctx_key(ns, name, key));
}

ML_RAISES
static struct ml_str check_name(lua_State *L, int index)
{
    struct ml_str name = {NULL, 0};
    if (lua_type(L, index) == LUA_TSTRING)
        name.ptr = lua_tolstring(L, index, &name.len);
    if (!name.ptr || !ml_name_valid(name))
        luaL_error(L, GET_CALL ": expected %s, got %s",
                   index == 2 ? "the name of an object" : "the name of a namespace",
                   lua_type(L, index) == LUA_TSTRING ? "one that no object can have"
                                                     : luaL_typename(L, index));
    return name;
}

ML_RAISES
static int get_answered(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ml_operator *run = script_thread_of(L)->run;
    if (run->err.kind)
        return ctx_fail(L, &run->err);
    script_push_json(L, run->body, true);
    return 1;
}

ML_RAISES
static int get_cached(lua_State *L, const struct ctx_kind *kind, struct ml_str ns,
                      struct ml_str name)
{
    struct ml_object *object = ctx_cached(kind, ns, name);
    if (object) {
        script_push_object(L, object);
        return 1;
    }
    char key[2 * 256];
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, ML_ENOT_FOUND, "%s %s not found", kind->kind->kind,
               ctx_key(ns, name, key).ptr);
    err.http = 404;
    return ctx_fail(L, &err);
}

ML_RAISES
static int get_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct ctx_kind kind = ctx_check_kind(L, 1, GET_CALL);
    struct ml_str name = check_name(L, 2), given = {NULL, 0};
    if (!lua_isnoneornil(L, 3))
        given = check_name(L, 3);
    struct ml_str ns = ctx_namespace(L, GET_CALL, kind.kind, given);
    struct ml_operator *run = script_thread_of(L)->run;
    ctx_say(run, "get", &kind, ns, name);
    if (ctx_must_wait(L, GET_CALL, &kind))
        return lua_yieldk(L, 0, 0, get_now);
    if (kind.informer)
        return get_cached(L, &kind, ns, name);
    run = ctx_may_wait(L, GET_CALL);
    const struct ml_client_request request = {
        .verb = ML_VERB_GET, .kind = kind.kind, .ns = ns, .name = name};
    run_read(run, &request);
    return lua_yieldk(L, 0, 0, get_answered);
}

ML_RAISES
static int ctx_get(lua_State *L)
{
    ctx_count_read(L);
    return get_now(L, LUA_OK, 0);
}

const luaL_Reg script_ctx_read[] = {{"get", ctx_get}, {NULL, NULL}};
