/* The state of the server's Lua as bindings see it: the protected call into it, threads that wait
 * and go on, types of userdata, callbacks that the registry holds, and errors with their traceback.
 */
#include "cluster/host/server_lua_internal.h"

#include <errno.h>
#include <math.h>

#include "net/tls.h"

#define SECONDS_MAX 1e9 /* 31 years */

/* Message handler: turns the error value into text with a traceback. */
ML_RAISES static int add_traceback(lua_State *L)
{
    const char *message = luaL_tolstring(L, 1, NULL);
    luaL_traceback(L, L, message, 1);
    return 1;
}

/* [-1] Keeps the message on top. */
static void keep_traceback(struct ml_server_lua *lua)
{
    const char *message = lua_tostring(lua->running, -1);
    ml_buf_clear(&lua->traceback);
    ml_buf_puts(&lua->traceback, message ? message : "an error in the error handler");
    lua_pop(lua->running, 1);
}

static void call_interrupt(lua_State *L, lua_Debug *activation)
{
    struct ml_server_lua *lua = server_lua_of(L);
    (void)activation;
    lua_sethook(L, NULL, 0, 0);
    if (lua->interrupt)
        lua->interrupt(lua->interrupt_context);
}

/* lua_sethook may be called from a signal handler (lua.c does so on ^C). */
void ml_server_lua_interrupt(struct ml_server_lua *lua, void (*fn)(void *context), void *context)
{
    lua->interrupt_context = context;
    lua->interrupt = fn;
    if (fn)
        lua_sethook(lua->running, call_interrupt, LUA_MASKCOUNT, 1);
}

int binding_call(struct ml_server_lua *lua, int arguments, int results)
{
    lua_State *L = lua->running;
    int function = lua_gettop(L) - arguments;
    lua_pushcfunction(L, add_traceback);
    lua_insert(L, function);
    int status = lua_pcall(L, arguments, results, function);
    lua_remove(L, function);
    if (status == LUA_OK)
        return 0;
    keep_traceback(lua);
    return ML_ESCRIPT;
}

int binding_resume(struct ml_server_lua *lua, lua_State *thread, int arguments)
{
    lua_State *before = lua->running;
    int results = 0;
    if (before == lua->L)
        lua->turn_began = ml_clock_monotonic(lua->options.clock);
    lua->running = thread;
    if (lua->interrupt)
        lua_sethook(thread, call_interrupt, LUA_MASKCOUNT, 1);
    int status = lua_resume(thread, before, arguments, &results);
    lua->running = before;
    if (status == LUA_OK || status == LUA_YIELD) {
        lua_pop(thread, results);
        return 0;
    }
    const char *message = lua_tostring(thread, -1);
    luaL_traceback(before, thread, message ? message : "an error without a text", 0);
    keep_traceback(lua);
    return ML_ESCRIPT;
}

int binding_run(struct ml_server_lua *lua, int arguments)
{
    lua_State *L = lua->running, *thread = lua_newthread(L);
    lua_insert(L, -(arguments + 2));
    lua_xmove(L, thread, arguments + 1);
    int r = binding_resume(lua, thread, arguments);
    lua_pop(L, 1); /* the thread: who makes it wait holds it */
    return r;
}

void binding_report_failure(struct ml_server_lua *lua)
{
    if (lua->options.failed)
        lua->options.failed(lua->options.context, ml_server_lua_traceback(lua));
}

void binding_call_back(struct ml_server_lua *lua, int arguments)
{
    if (binding_run(lua, arguments) < 0)
        binding_report_failure(lua);
}

int binding_fail(struct ml_server_lua *lua, struct ml_err *err)
{
    struct ml_str rest = ml_buf_str(&lua->traceback);
    struct ml_str line = ml_str_cut(&rest, '\n');
    return ml_err_set(err, ML_ESCRIPT, ML_STR_FMT, ML_STR_ARG(line));
}

const char *ml_server_lua_traceback(const struct ml_server_lua *lua)
{
    return ml_buf_cstr((struct ml_buf *)&lua->traceback);
}

int ml_server_lua_run(struct ml_server_lua *lua, const char *chunk, struct ml_str text,
                      struct ml_err *err)
{
    lua_State *L = lua->running;
    lua_pushfstring(L, "@%s", chunk);
    int status = luaL_loadbufferx(L, text.ptr, text.len, lua_tostring(L, -1), "t");
    lua_remove(L, -2);
    if (status != LUA_OK)
        keep_traceback(lua);
    else if (binding_call(lua, 0, 0) == 0)
        return 0;
    return binding_fail(lua, err);
}

struct ml_tls_authority *ml_server_lua_authority(struct ml_server_lua *lua, struct ml_err *err)
{
    if (!lua->authority && ml_tls_authority_new(lua->options.clock, &lua->authority, err) < 0)
        return NULL;
    return lua->authority;
}

void ml_server_lua_set_authority(struct ml_server_lua *lua, struct ml_tls_authority *authority)
{
    ml_assert(!lua->authority);
    lua->authority = authority;
}

int binding_push_error(lua_State *L, const char *message)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    return 2;
}

int binding_push_done(lua_State *L, bool done, const char *path)
{
    const char *why = strerror(errno);
    if (!done && path)
        return binding_push_error(L, lua_pushfstring(L, "%s: %s", path, why));
    if (!done)
        return binding_push_error(L, why);
    lua_pushboolean(L, true);
    return 1;
}

void binding_new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction gc)
{
    luaL_newmetatable(L, name);
    if (methods) {
        lua_newtable(L);
        luaL_setfuncs(L, methods, 0);
        lua_setfield(L, -2, "__index");
    }
    lua_pushcfunction(L, gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

void binding_add_module(struct ml_server_lua *lua, const char *name, const luaL_Reg *functions,
                        const void *library, size_t size)
{
    lua_State *L = lua->running;
    ml_assert(lua->options.loop != NULL);
    lua_newtable(L);
    memcpy(lua_newuserdatauv(L, size, 0), library, size);
    luaL_setfuncs(L, functions, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, name);
    lua_pop(L, 2);
}

void binding_hold(lua_State *L, const void *userdata)
{
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, userdata);
}

void binding_release(lua_State *L, const void *userdata)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, userdata);
}

void binding_push_callback(lua_State *L, const void *userdata, int which)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, userdata);
    lua_getiuservalue(L, -1, which);
    lua_remove(L, -2);
}

int64_t binding_check_seconds(lua_State *L, int argument)
{
    double seconds = luaL_checknumber(L, argument);
    if (!(seconds > 0))
        return 0;
    /* Rounded up: a timer that fires too early would be started again for less than a ns. */
    return (int64_t)ceil(fmin(seconds, SECONDS_MAX) * (double)ML_NS_PER_S);
}
