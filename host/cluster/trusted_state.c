/* The state of the server's Lua as bindings see it: the protected call into it, threads that wait
 * and go on, types of userdata, callbacks that the registry holds, and errors with their traceback.
 */
#include "cluster/trusted_internal.h"

#include <errno.h>
#include <math.h>

#include "net/tls_authority.h"

#define SECONDS_MAX 1e9 /* 31 years */

/* Message handler: turns the error value into text with a traceback. */
ML_RAISES static int add_traceback(lua_State *L)
{
    const char *message = luaL_tolstring(L, 1, NULL);
    luaL_traceback(L, L, message, 1);
    return 1;
}

/* [-1] Keeps the message on top. */
static void keep_traceback(struct ml_trusted *trusted)
{
    const char *message = lua_tostring(trusted->running, -1);
    ml_buf_clear(&trusted->traceback);
    ml_buf_puts(&trusted->traceback, message ? message : "an error in the error handler");
    lua_pop(trusted->running, 1);
}

static void call_interrupt(lua_State *L, lua_Debug *activation)
{
    struct ml_trusted *trusted = host_of(L);
    (void)activation;
    lua_sethook(L, NULL, 0, 0);
    if (trusted->interrupt)
        trusted->interrupt(trusted->interrupt_context);
}

/* lua_sethook may be called from a signal handler (lua.c does so on ^C). */
void ml_trusted_interrupt(struct ml_trusted *trusted, void (*fn)(void *context), void *context)
{
    trusted->interrupt_context = context;
    trusted->interrupt = fn;
    if (fn)
        lua_sethook(trusted->running, call_interrupt, LUA_MASKCOUNT, 1);
}

int host_call(struct ml_trusted *trusted, int arguments, int results)
{
    lua_State *L = trusted->running;
    int function = lua_gettop(L) - arguments;
    lua_pushcfunction(L, add_traceback);
    lua_insert(L, function);
    int status = lua_pcall(L, arguments, results, function);
    lua_remove(L, function);
    if (status == LUA_OK)
        return 0;
    keep_traceback(trusted);
    return ML_ESCRIPT;
}

int host_resume(struct ml_trusted *trusted, lua_State *thread, int arguments)
{
    lua_State *before = trusted->running;
    int results = 0;
    if (before == trusted->L)
        trusted->turn_began = ml_clock_monotonic(trusted->options.clock);
    trusted->running = thread;
    if (trusted->interrupt)
        lua_sethook(thread, call_interrupt, LUA_MASKCOUNT, 1);
    int status = lua_resume(thread, before, arguments, &results);
    trusted->running = before;
    if (status == LUA_OK || status == LUA_YIELD) {
        lua_pop(thread, results);
        return 0;
    }
    const char *message = lua_tostring(thread, -1);
    luaL_traceback(before, thread, message ? message : "an error without a text", 0);
    keep_traceback(trusted);
    return ML_ESCRIPT;
}

int host_run(struct ml_trusted *trusted, int arguments)
{
    lua_State *L = trusted->running, *thread = lua_newthread(L);
    lua_insert(L, -(arguments + 2));
    lua_xmove(L, thread, arguments + 1);
    int r = host_resume(trusted, thread, arguments);
    lua_pop(L, 1); /* the thread: who makes it wait holds it */
    return r;
}

void host_tell_failure(struct ml_trusted *trusted)
{
    if (trusted->options.failed)
        trusted->options.failed(trusted->options.context, ml_trusted_traceback(trusted));
}

void host_call_back(struct ml_trusted *trusted, int arguments)
{
    if (host_run(trusted, arguments) < 0)
        host_tell_failure(trusted);
}

lua_State *host_enter(lua_State *L)
{
    struct ml_trusted *trusted = host_of(L);
    lua_State *before = trusted->running;
    bool room = lua_checkstack(L, LUA_MINSTACK); /* all entry points count on it */
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

int ml_trusted_run(struct ml_trusted *trusted, const char *chunk, struct ml_str text,
                   struct ml_err *err)
{
    lua_State *L = trusted->running;
    lua_pushfstring(L, "@%s", chunk);
    int status = luaL_loadbufferx(L, text.ptr, text.len, lua_tostring(L, -1), "t");
    lua_remove(L, -2);
    if (status != LUA_OK)
        keep_traceback(trusted);
    else if (host_call(trusted, 0, 0) == 0)
        return 0;
    return host_fail(trusted, err);
}

struct ml_tls_authority *ml_trusted_authority(struct ml_trusted *trusted, struct ml_err *err)
{
    if (!trusted->authority &&
        ml_tls_authority_new(trusted->options.clock, &trusted->authority, err) < 0)
        return NULL;
    return trusted->authority;
}

void ml_trusted_set_authority(struct ml_trusted *trusted, struct ml_tls_authority *authority)
{
    ml_assert(!trusted->authority);
    trusted->authority = authority;
}

int host_push_error(lua_State *L, const char *message)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    return 2;
}

int host_push_done(lua_State *L, bool done, const char *path)
{
    const char *why = strerror(errno);
    if (!done && path)
        return host_push_error(L, lua_pushfstring(L, "%s: %s", path, why));
    if (!done)
        return host_push_error(L, why);
    lua_pushboolean(L, true);
    return 1;
}

void host_new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction gc)
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

void host_hold(lua_State *L, const void *userdata)
{
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, userdata);
}

void host_release(lua_State *L, const void *userdata)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, userdata);
}

void host_push_callback(lua_State *L, const void *userdata, int which)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, userdata);
    lua_getiuservalue(L, -1, which);
    lua_remove(L, -2);
}

int64_t host_check_seconds(lua_State *L, int argument)
{
    double seconds = luaL_checknumber(L, argument);
    if (!(seconds > 0))
        return 0;
    /* Rounded up: a timer that fires too early would be started again for less than a ns. */
    return (int64_t)ceil(fmin(seconds, SECONDS_MAX) * (double)ML_NS_PER_S);
}
