/* Tables in the sandbox: the table library, pairs and next. Lua's own functions call metamethods
 * for lengths and elements, so a script could make a loop in C as long as it likes. Here all work
 * on raw tables and check the deadline. pairs goes in the order of key_order.c. */
#include "script/environment.h"
#include "script/objects.h"

/* [-0, +1] The key at `place` in the order that push_key_order gave to stack slot `keys`. */
static void push_key_at(lua_State *L, int keys, lua_Integer place)
{
    if (lua_isnil(L, keys))
        lua_pushinteger(L, place);
    else
        lua_rawgeti(L, keys, place);
}

/* The iterator: upvalues are the keys (or nil), the place, the number of places. */
ML_RAISES static int pairs_step(lua_State *L)
{
    lazy_check_table(L, 1);
    lua_Integer place = lua_tointeger(L, lua_upvalueindex(2));
    lua_Integer places = lua_tointeger(L, lua_upvalueindex(3));
    while (place < places) {
        place++;
        script_cpu_check(L);
        lua_settop(L, 1);
        push_key_at(L, lua_upvalueindex(1), place);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) == LUA_TNIL) /* removed since */
            continue;
        lua_pushinteger(L, place);
        lua_replace(L, lua_upvalueindex(2));
        return 2;
    }
    lua_pushnil(L);
    return 1;
}

ML_RAISES int script_pairs(lua_State *L)
{
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 3);
        return 3;
    }
    lazy_check_table(L, 1);
    script_push_key_order(L, 1);
    lua_Integer places = (lua_Integer)lua_rawlen(L, lua_isnil(L, -1) ? 1 : -1);
    lua_pushinteger(L, 0);
    lua_pushinteger(L, places);
    lua_pushcclosure(L, pairs_step, 3);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

/* next(t) and next(t, key), in the order of pairs. Each step goes over the whole table. */
ML_RAISES int script_next(lua_State *L)
{
    lazy_check_table(L, 1);
    lua_settop(L, 2);
    lua_pushnil(L);
    if (!lua_next(L, 1)) { /* often only asked whether a table is empty */
        lua_pushnil(L);
        return 1;
    }
    lua_settop(L, 2);
    script_push_key_order(L, 1);
    lua_Integer places = (lua_Integer)lua_rawlen(L, lua_isnil(L, 3) ? 1 : 3);
    bool is_next = lua_isnil(L, 2);
    for (lua_Integer place = 1; place <= places; place++) {
        script_cpu_check(L);
        lua_settop(L, 3);
        push_key_at(L, 3, place);
        if (!is_next) {
            is_next = lua_rawequal(L, 2, -1);
            continue;
        }
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) != LUA_TNIL)
            return 2;
    }
    if (!is_next)
        return luaL_error(L, "next: the key is not in the table");
    lua_pushnil(L);
    return 1;
}

ML_RAISES void script_push_copy(lua_State *L, int index, int most)
{
    index = lua_absindex(L, index);
    lazy_complete(L, index);
    lua_newtable(L);
    int copy = lua_gettop(L);
    luaL_checkstack(L, 4, NULL);
    lua_pushnil(L);
    for (int count = 0; lua_next(L, index); count++) {
        script_cpu_check(L);
        if (count == most) {
            lua_pushfstring(L, "a table with more than %d entries, where a few are expected", most);
            lua_error(L);
        }
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, copy);
    }
}

ML_RAISES static lua_Integer check_table_length(lua_State *L, int index)
{
    lazy_check_table(L, index);
    size_t length = lua_rawlen(L, index);
    if (length > SCRIPT_RANGE_MAX)
        luaL_error(L, "the table has more than %d elements", SCRIPT_RANGE_MAX);
    return (lua_Integer)length;
}

/* The number of elements from first to last; raises when there are too many. */
ML_RAISES static lua_Integer check_range(lua_State *L, lua_Integer first, lua_Integer last)
{
    if (first > last)
        return 0;
    lua_Unsigned span = (lua_Unsigned)last - (lua_Unsigned)first;
    if (span >= SCRIPT_RANGE_MAX)
        luaL_error(L, "a range of more than %d elements", SCRIPT_RANGE_MAX);
    return (lua_Integer)span + 1;
}

ML_RAISES static int table_insert(lua_State *L)
{
    lua_Integer length = check_table_length(L, 1), place = length + 1;
    int count = lua_gettop(L);
    if (count != 2 && count != 3)
        return luaL_error(L, "wrong number of arguments to 'insert'");
    if (count == 3) {
        place = luaL_checkinteger(L, 2);
        luaL_argcheck(L, place >= 1 && place <= length + 1, 2, "position out of bounds");
    }
    for (lua_Integer i = length + 1; i > place; i--) {
        lua_rawgeti(L, 1, i - 1);
        lua_rawseti(L, 1, i);
        script_cpu_check(L);
    }
    lua_rawseti(L, 1, place);
    return 0;
}

ML_RAISES static int table_remove(lua_State *L)
{
    lua_Integer length = check_table_length(L, 1);
    lua_Integer place = luaL_optinteger(L, 2, length);
    if (lua_gettop(L) > 1)
        luaL_argcheck(L, (length == 0 && place == 0) || (place >= 1 && place <= length + 1), 2,
                      "position out of bounds");
    lua_rawgeti(L, 1, place);
    for (; place < length; place++) {
        lua_rawgeti(L, 1, place + 1);
        lua_rawseti(L, 1, place);
        script_cpu_check(L);
    }
    lua_pushnil(L);
    lua_rawseti(L, 1, place);
    return 1;
}

ML_RAISES static int table_concat(lua_State *L)
{
    lua_Integer length = check_table_length(L, 1);
    size_t separator_len;
    const char *separator = luaL_optlstring(L, 2, "", &separator_len);
    lua_Integer first = luaL_optinteger(L, 3, 1), last = luaL_optinteger(L, 4, length);
    lua_Integer count = check_range(L, first, last);
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, 1, first + i);
        if (!lua_isstring(L, -1))
            return luaL_error(L, "invalid value (a %s) at index %I in table for 'concat'",
                              luaL_typename(L, -1), first + i);
        luaL_addvalue(&out);
        if (i + 1 < count)
            luaL_addlstring(&out, separator, separator_len);
        script_cpu_check(L);
    }
    luaL_pushresult(&out);
    return 1;
}

ML_RAISES static int table_pack(lua_State *L)
{
    int count = lua_gettop(L);
    lua_createtable(L, count, 1);
    lua_insert(L, 1);
    for (int i = count; i >= 1; i--) {
        lua_rawseti(L, 1, i);
        script_cpu_check(L);
    }
    lua_pushinteger(L, count);
    lua_setfield(L, 1, "n");
    return 1;
}

ML_RAISES static int table_unpack(lua_State *L)
{
    lazy_check_table(L, 1);
    lua_Integer first = luaL_optinteger(L, 2, 1);
    lua_Integer last = luaL_optinteger(L, 3, (lua_Integer)lua_rawlen(L, 1));
    lua_Integer count = check_range(L, first, last);
    if (!lua_checkstack(L, (int)count))
        return luaL_error(L, "too many results to unpack");
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, 1, first + i);
        script_cpu_check(L);
    }
    return (int)count;
}

ML_RAISES static int table_move(lua_State *L)
{
    lazy_check_table(L, 1);
    lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
    lua_Integer to = luaL_checkinteger(L, 4);
    int target = lua_isnoneornil(L, 5) ? 1 : 5;
    lazy_check_table(L, target);
    lua_Integer count = check_range(L, first, last);
    luaL_argcheck(L, count == 0 || to <= LUA_MAXINTEGER - count + 1, 4, "destination wrap around");
    bool backwards = target == 1 && to > first;
    for (lua_Integer i = 0; i < count; i++) {
        lua_Integer offset = backwards ? count - 1 - i : i;
        lua_rawgeti(L, 1, first + offset);
        lua_rawseti(L, target, to + offset);
        script_cpu_check(L);
    }
    lua_pushvalue(L, target);
    return 1;
}

/* Is element a before element b, by the function at 2 or by "<"? */
ML_RAISES static bool table_sort_is_before(lua_State *L, lua_Integer a, lua_Integer b)
{
    bool before;
    script_cpu_check(L); /* comparing two long strings takes time */
    if (lua_isnil(L, 2)) {
        lua_rawgeti(L, 1, a);
        lua_rawgeti(L, 1, b);
        before = lua_compare(L, -2, -1, LUA_OPLT);
        lua_pop(L, 2);
        return before;
    }
    lua_pushvalue(L, 2);
    lua_rawgeti(L, 1, a);
    lua_rawgeti(L, 1, b);
    lua_call(L, 2, 1);
    before = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return before;
}

ML_RAISES static void table_sort_swap(lua_State *L, lua_Integer a, lua_Integer b)
{
    lua_rawgeti(L, 1, a);
    lua_rawgeti(L, 1, b);
    lua_rawseti(L, 1, a);
    lua_rawseti(L, 1, b);
}

/* Sinks element `at` of the heap 1 … last to its place; the largest is at 1. */
ML_RAISES static void table_sort_sink(lua_State *L, lua_Integer at, lua_Integer last)
{
    for (lua_Integer child; (child = 2 * at) <= last; at = child) {
        if (child < last && table_sort_is_before(L, child, child + 1))
            child++;
        if (!table_sort_is_before(L, at, child))
            return;
        table_sort_swap(L, at, child);
    }
}

/* A heap sort: n log n comparisons whatever the comparison function returns, and the same result in
 * every process. Like the stock sort it is not stable. */
ML_RAISES static int table_sort(lua_State *L)
{
    lua_Integer length = check_table_length(L, 1);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    for (lua_Integer at = length / 2; at >= 1; at--)
        table_sort_sink(L, at, length);
    for (lua_Integer last = length; last > 1; last--) {
        table_sort_swap(L, 1, last);
        table_sort_sink(L, 1, last - 1);
    }
    return 0;
}

ML_RAISES int script_open_table(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"concat", table_concat}, {"insert", table_insert},
        {"move", table_move},     {"pack", table_pack},
        {"remove", table_remove}, {"sort", table_sort},
        {"unpack", table_unpack}, {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}
