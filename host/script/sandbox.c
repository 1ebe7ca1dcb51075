/* The environment of scripts, an allow-list: no io, os, debug, coroutine, load, print,
 * collectgarbage. Reading or setting a global that does not exist raises, so that a misspelt name
 * is found at once. load.c opens it in each new state. */
#include <lualib.h>

#include "script/internal.h"
#include "script/reads.h"

ML_RAISES void script_hide_metatable(lua_State *L)
{
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
}

ML_RAISES int script_push_field(lua_State *L, int index, const char *field)
{
    index = lua_absindex(L, index);
    lua_pushstring(L, field);
    return lua_rawget(L, index);
}

ML_RAISES void script_move_fields(lua_State *L, int to, const char *const *fields)
{
    to = lua_absindex(L, to);
    for (; *fields; fields++) {
        lua_getfield(L, -1, *fields);
        lua_setfield(L, to, *fields);
    }
    lua_pop(L, 1);
}

ML_RAISES void script_register_metatable(lua_State *L, const char *key)
{
    script_hide_metatable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

bool script_has_metatable(lua_State *L, int index, const char *key)
{
    if (!lua_getmetatable(L, index))
        return false;
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    bool has = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return has;
}

void *script_to_userdata(lua_State *L, int index, const char *key)
{
    if (lua_type(L, index) != LUA_TUSERDATA || !script_has_metatable(L, index, key))
        return NULL;
    return lua_touserdata(L, index);
}

ML_RAISES void *script_push_userdata(lua_State *L, size_t size, const char *key)
{
    void *userdata = lua_newuserdatauv(L, size, 0);
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_setmetatable(L, -2);
    return userdata;
}

/* [-0, +1] As the stock tostring, but without addresses. */
ML_RAISES const char *script_tolstring(lua_State *L, int index, size_t *len)
{
    index = lua_absindex(L, index);
    if (luaL_getmetafield(L, index, "__tostring") != LUA_TNIL) {
        lua_pushvalue(L, index);
        lua_call(L, 1, 1);
        if (!lua_isstring(L, -1))
            luaL_error(L, "'__tostring' must return a string");
        return lua_tolstring(L, -1, len);
    }
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
    case LUA_TSTRING:
    case LUA_TNIL:
    case LUA_TBOOLEAN:
        return luaL_tolstring(L, index, len);
    default:
        lua_pushstring(L, script_is_null(L, index) ? "null" : luaL_typename(L, index));
        return lua_tolstring(L, -1, len);
    }
}

ML_RAISES static int base_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    script_tolstring(L, 1, NULL);
    return 1;
}

/* Passes on what must end the whole run: the deadline and the memory limit. */
ML_RAISES static int pcall_done(lua_State *L, int status, lua_KContext context ML_UNUSED)
{
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L);
    script_cpu_check(L);
    if (status == LUA_ERRMEM)
        return lua_error(L);
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

ML_RAISES static int base_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, pcall_done);
    return pcall_done(L, status, 0);
}

/* Refuses __gc, as a finalizer would run outside any deadline (one that is added later has no
 * effect: Lua marks objects for finalization only here), and __mode, as the collector would change
 * a weak table while C reads it. false, which getmetatable gives for a protected metatable, is no
 * metatable, so that `setmetatable(copy, getmetatable(object))` makes the copy a plain table. */
ML_RAISES static int base_setmetatable(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    if (lua_isboolean(L, 2) && !lua_toboolean(L, 2)) {
        lua_pushnil(L);
        lua_replace(L, 2);
    }
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (luaL_getmetafield(L, 1, "__metatable") != LUA_TNIL)
        return luaL_error(L, "setmetatable: the metatable of this table is protected");
    if (lua_istable(L, 2)) { /* Lua looks into a metatable without asking metamethods */
        lazy_complete(L, 2);
        if (script_push_field(L, 2, "__gc") != LUA_TNIL)
            return luaL_error(L, "setmetatable: __gc is not available");
        if (script_push_field(L, 2, "__mode") != LUA_TNIL)
            return luaL_error(L, "setmetatable: __mode is not available: no table is weak here");
    }
    lua_settop(L, 2);
    lua_setmetatable(L, 1);
    return 1;
}

ML_RAISES static int base_getmetatable(lua_State *L)
{
    luaL_checkany(L, 1);
    if (!lua_getmetatable(L, 1)) {
        lua_pushnil(L);
        return 1;
    }
    luaL_getmetafield(L, 1, "__metatable"); /* pushes nothing when there is none */
    return 1;
}

ML_RAISES static int base_rawget(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    lazy_complete(L, 1);
    lua_rawget(L, 1);
    return 1;
}

ML_RAISES static int base_rawset(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checkany(L, 2);
    luaL_checkany(L, 3);
    lua_settop(L, 3);
    lazy_complete(L, 1);
    lua_rawset(L, 1);
    return 1;
}

ML_RAISES static int global_missing(lua_State *L)
{
    return luaL_error(L, "there is no variable '%s' here", script_tolstring(L, 2, NULL));
}

ML_RAISES static int global_set(lua_State *L)
{
    return luaL_error(L, "a script sets no globals: write 'local %s = …'",
                      script_tolstring(L, 2, NULL));
}

/* random(), random(m), random(m, n) by the host's generator, so that a seed replays a run. */
ML_RAISES static int math_random(lua_State *L)
{
    struct ml_random *random = &script_of(L)->random;
    lua_Integer low = 1, high;
    reads_give_up(script_reads_now(L), "it draws random numbers");
    if (lua_gettop(L) == 0) {
        lua_pushnumber(L, (double)(ml_random_u64(random) >> 11) * 0x1p-53);
        return 1;
    }
    if (lua_gettop(L) >= 2)
        low = luaL_checkinteger(L, 1);
    high = luaL_checkinteger(L, lua_gettop(L) >= 2 ? 2 : 1);
    luaL_argcheck(L, low <= high, lua_gettop(L) >= 2 ? 2 : 1, "interval is empty");
    uint64_t span = (uint64_t)high - (uint64_t)low, mask = span, draw;
    for (int shift = 1; shift < 64; shift *= 2)
        mask |= mask >> shift;
    do /* draws beyond the span are discarded: all numbers are equally likely */
        draw = ml_random_u64(random) & mask;
    while (draw > span);
    lua_pushinteger(L, (lua_Integer)((uint64_t)low + draw));
    return 1;
}

ML_RAISES static int open_math(lua_State *L)
{
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    lua_pushnil(L);
    lua_setfield(L, -2, "randomseed");
    lua_pushcfunction(L, math_random);
    lua_setfield(L, -2, "random");
    return 1;
}

/* [-0, +0] Copies the harmless functions of the stock base library, which luaopen_base puts into
 * the state's own globals. */
ML_RAISES static void open_base(lua_State *L, int environment)
{
    static const char *const stock[] = {"assert", "error",    "ipairs", "rawequal", "rawlen",
                                        "select", "tonumber", "type",   "_VERSION", NULL};
    static const luaL_Reg own[] = {
        {"getmetatable", base_getmetatable},
        {"next", script_next},
        {"pairs", script_pairs},
        {"pcall", base_pcall},
        {"rawget", base_rawget},
        {"rawset", base_rawset},
        {"require", script_require},
        {"setmetatable", base_setmetatable},
        {"tostring", base_tostring},
        {NULL, NULL},
    };
    lua_pushcfunction(L, luaopen_base);
    lua_call(L, 0, 1);
    script_move_fields(L, environment, stock);
    lua_pushvalue(L, environment);
    luaL_setfuncs(L, own, 0);
    lua_pop(L, 1);
}

/* [-0, +1] A new environment with its own library tables, so that a script's changes to its tables
 * do not reach the embedded library. */
ML_RAISES static void push_environment(lua_State *L)
{
    static const luaL_Reg libraries[] = {{"math", open_math},
                                         {"string", script_open_string},
                                         {"table", script_open_table},
                                         {"utf8", luaopen_utf8},
                                         {NULL, NULL}};
    lua_newtable(L);
    int environment = lua_gettop(L);
    open_base(L, environment);
    for (const luaL_Reg *library = libraries; library->name; library++) {
        lua_pushcfunction(L, library->func);
        lua_call(L, 0, 1);
        lua_setfield(L, environment, library->name);
    }
    static const luaL_Reg guards[] = {
        {"__index", global_missing}, {"__newindex", global_set}, {NULL, NULL}};
    luaL_newlib(L, guards);
    script_hide_metatable(L);
    lua_setmetatable(L, environment);
}

ML_RAISES void script_sandbox_open(lua_State *L)
{
    shape_open(L);
    lazy_open(L);
    script_numbers_open(L);
    push_environment(L); /* the library's, whose modules require each other there */
    lua_pushcfunction(L, script_library_require);
    lua_setfield(L, -2, "require");
    push_environment(L); /* the script's */
    script_open_string_methods(L);
    lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); /* what chunks get as _ENV */
    script_open_library(L);
}
