/* host.after and host.defer: Lua functions that the loop calls. */
#include <math.h>

#include "cluster/host.h"

#define TIMER "moonloop.timer"

static const char queue_key; /* registry: the functions of host.defer, by number */

/* A full userdata; its user value is the function. While it waits the registry holds it, under
 * its own address. */
struct timer {
    struct ml_list node;
    struct ml_trusted *trusted;
    struct ml_timer timer;
};

ML_RAISES
static void check_loop(lua_State *L)
{
    if (!host_of(L)->options.loop)
        luaL_error(L, "there is no event loop to wait on");
}

static void timer_fire(void *context)
{
    struct timer *timer = context;
    lua_State *L = timer->trusted->running;
    lua_rawgetp(L, LUA_REGISTRYINDEX, timer);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, timer);
    lua_getiuservalue(L, -1, 1);
    lua_remove(L, -2);
    host_call_back(timer->trusted, 0);
}

/* after(seconds, fn) -> timer */
ML_RAISES
static int host_after(lua_State *L)
{
    double seconds = luaL_checknumber(L, 1);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    check_loop(L);
    luaL_argcheck(L, seconds >= 0 && seconds < 1e9, 1, "seconds, from 0 on");
    struct timer *timer = lua_newuserdatauv(L, sizeof *timer, 1);
    timer->trusted = host_of(L);
    ml_timer_init(&timer->timer, timer->trusted->options.loop, timer_fire, timer);
    ml_list_push(&timer->trusted->timers, &timer->node);
    luaL_setmetatable(L, TIMER);
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, timer);
    /* Up: one that came early would be started again for what is left, which is less than a ns. */
    ml_timer_start(&timer->timer, (int64_t)ceil(seconds * (double)ML_NS_PER_S));
    return 1;
}

static void stop(struct timer *timer)
{
    lua_State *L = timer->trusted->running;
    ml_timer_stop(&timer->timer);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, timer);
}

/* timer:stop(): the function will not be called any more; safe at any time */
ML_RAISES
static int timer_stop(lua_State *L)
{
    stop(luaL_checkudata(L, 1, TIMER));
    return 0;
}

static int timer_gc(lua_State *L)
{
    struct timer *timer = lua_touserdata(L, 1);
    ml_timer_stop(&timer->timer);
    ml_list_remove(&timer->node);
    return 0;
}

static void empty_queue(struct ml_trusted *trusted)
{
    lua_State *L = trusted->running;
    trusted->deferred_first = trusted->deferred_last = 0;
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &queue_key);
}

/* Calls what waits now; what that defers waits for the next turn of the loop. */
static void run_deferred(void *context)
{
    struct ml_trusted *trusted = context;
    lua_State *L = trusted->running;
    lua_Integer end = trusted->deferred_last;
    while (trusted->deferred_first < end) {
        lua_Integer place = ++trusted->deferred_first;
        lua_rawgetp(L, LUA_REGISTRYINDEX, &queue_key);
        lua_rawgeti(L, -1, place);
        lua_pushnil(L);
        lua_rawseti(L, -3, place);
        lua_remove(L, -2);
        host_call_back(trusted, 0);
    }
    if (trusted->deferred_first == trusted->deferred_last)
        empty_queue(trusted); /* a table of its first size, and places from 1 again */
}

void host_forget(struct ml_trusted *trusted)
{
    ml_list_each (node, &trusted->timers)
        stop(ml_container_of(node, struct timer, node));
    ml_task_cancel(&trusted->deferred);
    empty_queue(trusted);
}

/* defer(fn) */
ML_RAISES
static int host_defer(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    check_loop(L);
    struct ml_trusted *trusted = host_of(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &queue_key);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, ++trusted->deferred_last);
    ml_task_defer(&trusted->deferred, trusted->options.loop);
    return 0;
}

void host_add_timers(lua_State *L)
{
    static const luaL_Reg methods[] = {{"stop", timer_stop}, {NULL, NULL}};
    struct ml_trusted *trusted = host_of(L);
    ml_list_init(&trusted->timers);
    ml_task_init(&trusted->deferred, run_deferred, trusted);
    empty_queue(trusted);
    luaL_newmetatable(L, TIMER);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, timer_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    lua_pushcfunction(L, host_after);
    lua_setfield(L, -2, "after");
    lua_pushcfunction(L, host_defer);
    lua_setfield(L, -2, "defer");
}
