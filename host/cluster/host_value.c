/* The values of the trusted state. An object is a plain table; an array carries a shared, empty
 * metatable as its mark; null is a light userdata. */
#include "cluster/host.h"

static const char null_address, mark_key;

void host_push_null(lua_State *L)
{
    lua_pushlightuserdata(L, (void *)&null_address);
}

bool host_is_null(lua_State *L, int index)
{
    return lua_touserdata(L, index) == &null_address;
}

void host_make_array_mark(lua_State *L)
{
    lua_newtable(L);
    host_of(L)->array_mark = lua_topointer(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &mark_key);
}

void host_push_array_mark(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &mark_key);
}

void host_mark_array(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    host_push_array_mark(L);
    lua_setmetatable(L, index);
}

static bool is_marked(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    bool marked = lua_topointer(L, -1) == host_of(L)->array_mark;
    lua_pop(L, 1);
    return marked;
}

bool host_is_array(lua_State *L, int index)
{
    if (is_marked(L, index))
        return true;
    bool has_first = lua_rawgeti(L, index, 1) != LUA_TNIL;
    lua_pop(L, 1);
    return has_first;
}
