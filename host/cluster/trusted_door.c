/* The doors of the trusted state: the one protected call into it, functions of its modules called
 * from C (JSON in, JSON out), and functions of C given to its Lua. */
#include "cluster/host.h"
#include "cluster/trusted.h"

/* Turns what was raised into text with a traceback. */
ML_RAISES
static int describe(lua_State *L)
{
    const char *message = luaL_tolstring(L, 1, NULL);
    luaL_traceback(L, L, message, 1);
    return 1;
}

int host_call(struct ml_trusted *trusted, int arguments, int results)
{
    lua_State *L = trusted->running;
    int function = lua_gettop(L) - arguments;
    lua_pushcfunction(L, describe);
    lua_insert(L, function);
    int status = lua_pcall(L, arguments, results, function);
    lua_remove(L, function);
    if (status == LUA_OK)
        return 0;
    ml_buf_clear(&trusted->traceback);
    const char *message = lua_tostring(L, -1);
    ml_buf_puts(&trusted->traceback, message ? message : "an error while an error was told of");
    lua_pop(L, 1);
    return ML_ESCRIPT;
}

void host_call_back(struct ml_trusted *trusted, int arguments)
{
    if (host_call(trusted, arguments, 0) < 0 && trusted->options.failed)
        trusted->options.failed(trusted->options.context, ml_trusted_traceback(trusted));
}

lua_State *host_enter(lua_State *L)
{
    struct ml_trusted *trusted = host_of(L);
    lua_State *before = trusted->running;
    bool room = lua_checkstack(L, LUA_MINSTACK); /* what each of the doors may count on */
    ml_assert(room);
    trusted->running = L;
    return before;
}

void host_leave(lua_State *L, lua_State *before)
{
    host_of(L)->running = before;
}

int host_fail(struct ml_trusted *trusted, struct ml_err *err)
{
    struct ml_str rest = ml_buf_str(&trusted->traceback);
    struct ml_str line = ml_str_cut(&rest, '\n');
    return ml_err_set(err, ML_ESCRIPT, ML_STR_FMT, ML_STR_ARG(line));
}

const char *ml_trusted_traceback(const struct ml_trusted *trusted)
{
    return ml_buf_cstr((struct ml_buf *)&trusted->traceback);
}

struct call {
    const char *module;
    const char *function;
    struct ml_str argument;
    struct ml_buf *result; /* NULL: not wanted */
};

/* call -> nothing. Whatever goes wrong is raised. */
ML_RAISES
static int run_call(lua_State *L)
{
    const struct call *call = lua_touserdata(L, 1);
    struct ml_err err = ML_ERR_INIT;
    lua_getglobal(L, "require");
    lua_pushstring(L, call->module);
    lua_call(L, 1, 1);
    lua_getfield(L, -1, call->function);
    if (call->argument.len == 0)
        lua_pushnil(L);
    else if (host_decode(L, call->argument, false, &err) < 0)
        return luaL_error(L, "%s.%s: argument: %s", call->module, call->function, err.message);
    lua_call(L, 1, 1);
    if (!call->result || lua_isnil(L, -1))
        return 0;
    if (host_encode(L, -1, &err) < 0)
        return luaL_error(L, "%s.%s: result: %s", call->module, call->function, err.message);
    ml_buf_append_str(call->result, ml_buf_str(&host_of(L)->encoder.out));
    return 0;
}

int ml_trusted_call(struct ml_trusted *trusted, const char *module, const char *function,
                    struct ml_str argument, struct ml_buf *result, struct ml_err *err)
{
    struct call call = {module, function, argument, result};
    lua_State *L = trusted->running;
    lua_pushcfunction(L, run_call);
    lua_pushlightuserdata(L, &call);
    if (host_call(trusted, 1, 0) == 0)
        return 0;
    return host_fail(trusted, err);
}

struct defined {
    ml_trusted_function *function;
    void *context;
};

/* [-0, +1] Makes the call; on failure nothing pushed and `err` filled. */
static int call_defined(lua_State *L, const struct defined *defined, struct ml_str argument,
                        struct ml_err *err)
{
    struct ml_buf result;
    ml_buf_init(&result, HOST_JSON_MAX);
    lua_State *before = host_enter(L);
    int r = defined->function(defined->context, argument, &result, err);
    host_leave(L, before);
    if (r == 0 && result.len == 0)
        lua_pushboolean(L, 1);
    else if (r == 0)
        r = host_decode(L, ml_buf_str(&result), false, err);
    ml_buf_fini(&result);
    return r;
}

/* fn(value?) -> value | nil, message */
ML_RAISES
static int run_defined(lua_State *L)
{
    const struct defined *defined = lua_touserdata(L, lua_upvalueindex(1));
    struct ml_err err = ML_ERR_INIT;
    struct ml_str argument = {NULL, 0};
    lua_settop(L, 1);
    if (!lua_isnil(L, 1)) {
        if (host_encode(L, 1, &err) < 0)
            return luaL_argerror(L, 1, err.message);
        const struct ml_buf *text = &host_of(L)->encoder.out;
        argument.ptr = lua_pushlstring(L, text->ptr, text->len); /* others encode meanwhile */
        argument.len = text->len;
    }
    if (call_defined(L, defined, argument, &err) == 0)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    return 2;
}

void ml_trusted_define(struct ml_trusted *trusted, const char *module, const char *name,
                       ml_trusted_function *function, void *context)
{
    lua_State *L = trusted->running;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    luaL_getsubtable(L, -1, module);
    struct defined *defined = lua_newuserdatauv(L, sizeof *defined, 0);
    *defined = (struct defined){function, context};
    lua_pushcclosure(L, run_defined, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 2);
}
