/* The way from C to a function of a module in the trusted state: JSON in, JSON out. */
#include "script/host.h"

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
    struct ml_str rest = ml_buf_str(&trusted->traceback);
    struct ml_str line = ml_str_cut(&rest, '\n');
    return ml_err_set(err, ML_ESCRIPT, ML_STR_FMT, ML_STR_ARG(line));
}
