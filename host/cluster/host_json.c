/* host.json. */
#include "cluster/host.h"

ML_RAISES
static int push_failure(lua_State *L, const struct ml_err *err)
{
    lua_pushnil(L);
    lua_pushstring(L, err->message);
    return 2;
}

/* decode(text) -> value | nil, message */
ML_RAISES
static int json_decode(lua_State *L)
{
    struct ml_str text;
    text.ptr = luaL_checklstring(L, 1, &text.len);
    struct ml_err err;
    return host_decode(L, text, false, &err) < 0 ? push_failure(L, &err) : 1;
}

/* decode_strict(text) -> value, duplicates | nil, message */
ML_RAISES
static int json_decode_strict(lua_State *L)
{
    struct ml_str text;
    text.ptr = luaL_checklstring(L, 1, &text.len);
    struct ml_err err;
    return host_decode(L, text, true, &err) < 0 ? push_failure(L, &err) : 2;
}

/* encode(value) -> text; raises for what JSON cannot hold */
ML_RAISES
static int json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    struct ml_err err;
    if (host_encode(L, 1, &err) < 0)
        return luaL_error(L, "json.encode: %s", err.message);
    const struct ml_buf *out = &host_of(L)->encoder.out;
    lua_pushlstring(L, out->ptr, out->len);
    return 1;
}

/* array(table?) -> the table, or a new one, marked */
ML_RAISES
static int json_array(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_settop(L, 0);
        lua_newtable(L);
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    host_mark_array(L, 1);
    return 1;
}

ML_RAISES
static int json_is_array(lua_State *L)
{
    lua_pushboolean(L, lua_istable(L, 1) && host_is_array(L, 1));
    return 1;
}

/* [+1] An empty table with room for what the one at `index` has, and with its mark. */
static void push_like(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_Unsigned elements = lua_rawlen(L, index);
    int members = 0;
    if (elements == 0)
        for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
            members++;
    lua_createtable(L, (int)elements, members);
    if (lua_getmetatable(L, index))
        lua_setmetatable(L, -2);
}

/* copy(value) -> a deep copy. The stack is the only memory of the walk: each level has source,
 * copy and the key at hand on it. */
ML_RAISES
static int json_copy(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (!lua_istable(L, 1))
        return 1;
    push_like(L, 1);
    lua_pushnil(L);
    for (;;) {
        luaL_checkstack(L, 8, "a value nested too deep to be copied");
        if (!lua_next(L, -3)) {
            lua_remove(L, -2); /* the source: the copy is whole, and the value of its key */
            if (lua_gettop(L) == 1)
                return 1;
        } else if (lua_istable(L, -1)) {
            push_like(L, -1);
            lua_pushnil(L);
            continue;
        }
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

static size_t count_members(lua_State *L, int index)
{
    size_t count = 0;
    index = lua_absindex(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        count++;
    return count;
}

/* The two tables on top: can they be equal, as far as can be told from outside? */
static bool look_alike(lua_State *L)
{
    return host_is_array(L, -2) == host_is_array(L, -1) &&
           count_members(L, -2) == count_members(L, -1);
}

/* [-2, +0, or +0 when `below`] Compares the two values on top; tables that may be equal stay
 * there, for their members to be looked at. */
static bool equal_so_far(lua_State *L, bool *below)
{
    *below = false;
    if (lua_rawequal(L, -1, -2)) {
        lua_pop(L, 2);
        return true;
    }
    *below = lua_istable(L, -1) && lua_istable(L, -2) && look_alike(L);
    return *below;
}

/* Walks the two tables on top of the stack, which then are gone. Each level has both tables and
 * the key at hand on the stack. */
ML_RAISES
static bool equal_tables(lua_State *L)
{
    int bottom = lua_gettop(L) - 2;
    lua_pushnil(L);
    for (bool below;;) {
        luaL_checkstack(L, 8, "values nested too deep to be compared");
        if (!lua_next(L, -3)) {
            lua_pop(L, 2);
            if (lua_gettop(L) == bottom)
                return true;
            continue;
        }
        lua_pushvalue(L, -2);
        lua_rawget(L, -4);
        if (!equal_so_far(L, &below))
            return false;
        if (below)
            lua_pushnil(L);
    }
}

/* equal(a, b) -> deep equality; 1 and 1.0 are equal, an empty array and an empty object not */
ML_RAISES
static int json_equal(lua_State *L)
{
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    bool below;
    bool equal = equal_so_far(L, &below) && (!below || equal_tables(L));
    lua_pushboolean(L, equal);
    return 1;
}

int host_open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"decode", json_decode},     {"decode_strict", json_decode_strict},
        {"encode", json_encode},     {"array", json_array},
        {"is_array", json_is_array}, {"copy", json_copy},
        {"equal", json_equal},       {NULL, NULL}};
    host_make_array_mark(L);
    luaL_newlib(L, functions);
    host_push_null(L);
    lua_setfield(L, -2, "null");
    return 1;
}
