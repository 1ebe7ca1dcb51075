/* pairs and next in an order that is the same in every process: an object that came from JSON
 * in its own key order, then keys put in later; other tables integers ascending, then fractions,
 * then strings bytewise, then booleans. Keys that are tables or functions have no order that
 * could be kept; they come last, as Lua finds them. */
#include "script/sort.h"

enum rank { RANK_INTEGER, RANK_REAL, RANK_STRING, RANK_BOOLEAN, RANK_OTHER };

#define KEYS_SMALL 16 /* most tables have fewer, and cost no memory to sort */

struct order_key {
    enum rank rank;
    lua_Integer integer; /* or boolean; or, for RANK_OTHER, how many came before */
    lua_Number real;
    struct ml_str text; /* the array of keys on the stack holds the string */
    lua_Integer place;  /* in that array */
};

static struct order_key order_key_at(lua_State *L, int index, lua_Integer place)
{
    struct order_key key = {.rank = RANK_OTHER, .integer = place, .place = place};
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        key.rank = lua_isinteger(L, index) ? RANK_INTEGER : RANK_REAL;
        key.integer = key.rank == RANK_INTEGER ? lua_tointeger(L, index) : 0;
        key.real = lua_tonumber(L, index);
        break;
    case LUA_TSTRING:
        key.rank = RANK_STRING;
        key.text.ptr = lua_tolstring(L, index, &key.text.len);
        break;
    case LUA_TBOOLEAN:
        key.rank = RANK_BOOLEAN;
        key.integer = lua_toboolean(L, index);
        break;
    default:
        break;
    }
    return key;
}

static int compare(const void *left, const void *right)
{
    const struct order_key *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->rank == RANK_STRING)
        return ml_str_cmp(a->text, b->text);
    if (a->rank == RANK_REAL)
        return a->real < b->real ? -1 : a->real > b->real;
    return a->integer < b->integer ? -1 : a->integer > b->integer;
}

static bool is_key_of(lua_State *L, int table)
{
    lua_pushvalue(L, -1);
    bool is = lua_rawget(L, table) != LUA_TNIL;
    lua_pop(L, 1);
    return is;
}

/* Puts the keys of table `index` that are not in `places` (0: none) into the array on top, as they
 * are found, at most `count`: there they stay whatever the collector takes out of the table.
 * Returns how many. */
ML_RAISES
static size_t collect_keys(lua_State *L, int index, int places, size_t count,
                           struct order_key *keys)
{
    int result = lua_gettop(L);
    size_t found = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        script_cpu_check(L);
        lua_pop(L, 1);
        if (found == count || (places && is_key_of(L, places)))
            continue;
        keys[found] = order_key_at(L, -1, (lua_Integer)found + 1);
        lua_pushvalue(L, -1);
        lua_rawseti(L, result, (lua_Integer)++found);
    }
    return found;
}

/* Puts the array on top into the order of `keys`, cycle by cycle. */
ML_RAISES
static void arrange_keys(lua_State *L, struct order_key *keys, size_t count)
{
    int result = lua_gettop(L);
    for (lua_Integer start = 1; start <= (lua_Integer)count; start++) {
        lua_Integer at = start, from = keys[start - 1].place;
        if (from == start)
            continue;
        lua_rawgeti(L, result, start);
        for (; from != start; at = from, from = keys[at - 1].place) {
            lua_rawgeti(L, result, from);
            lua_rawseti(L, result, at);
            keys[at - 1].place = at;
        }
        lua_rawseti(L, result, at);
        keys[at - 1].place = at;
        script_cpu_check(L);
    }
}

ML_RAISES
void script_push_sorted(lua_State *L, int index, int places, size_t count)
{
    struct order_key small[KEYS_SMALL], *keys = small;
    if (count > KEYS_SMALL)
        keys = lua_newuserdatauv(L, count * sizeof(*keys), 0);
    lua_createtable(L, (int)count, 0);
    size_t found = collect_keys(L, index, places, count, keys);
    script_sort(L, keys, found, sizeof(*keys), compare);
    arrange_keys(L, keys, found);
    if (keys != small)
        lua_remove(L, -2);
}

ML_RAISES
static size_t count_entries(lua_State *L, int index)
{
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        script_cpu_check(L);
        lua_pop(L, 1);
        count++;
    }
    return count;
}

ML_RAISES
void script_push_keys(lua_State *L, int index)
{
    script_push_sorted(L, index, 0, count_entries(L, index));
}

/* [-1, +1] With the shape's keys on top: the keys there are, in order. The shape's own array
 * when nothing was added. */
ML_RAISES
static void push_shape_order(lua_State *L, int index, size_t count)
{
    int keys = lua_gettop(L);
    size_t present = 0;
    lua_Integer shape_len = (lua_Integer)lua_rawlen(L, keys);
    for (lua_Integer i = 1; i <= shape_len; i++) {
        lua_rawgeti(L, keys, i);
        present += lua_rawget(L, index) != LUA_TNIL;
        lua_pop(L, 1);
        script_cpu_check(L);
    }
    if (present == count)
        return;
    shape_places(L, index);
    script_push_sorted(L, index, lua_gettop(L), count);
    lua_remove(L, -2);
    int added = lua_gettop(L);
    lua_createtable(L, (int)count, 0);
    lua_Integer at = 0;
    for (int list = keys; list <= added; list += added - keys)
        for (lua_Integer i = 1; lua_rawgeti(L, list, i) != LUA_TNIL; i++) {
            lua_rawseti(L, added + 1, ++at);
            script_cpu_check(L);
        }
    lua_settop(L, added + 1);
    lua_replace(L, keys);
    lua_settop(L, keys);
}

/* [-0, +1] The keys of the table at `index` in order, or nil for an array's 1 … n. */
ML_RAISES
static void push_order(lua_State *L, int index)
{
    size_t count = count_entries(L, index);
    size_t length = lua_rawlen(L, index);
    luaL_checkstack(L, 12, NULL);
    if (shape_keys(L, index)) {
        push_shape_order(L, index, count);
        return;
    }
    bool is_sequence = count == length;
    for (size_t i = length; is_sequence && i > 0; i--) {
        is_sequence = lua_rawgeti(L, index, (lua_Integer)i) != LUA_TNIL;
        lua_pop(L, 1);
        script_cpu_check(L);
    }
    if (is_sequence)
        lua_pushnil(L);
    else
        script_push_sorted(L, index, 0, count);
}

/* The iterator: upvalues are the keys (or nil), the place, the number of places. */
ML_RAISES
static int iterate(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_Integer place = lua_tointeger(L, lua_upvalueindex(2));
    lua_Integer places = lua_tointeger(L, lua_upvalueindex(3));
    bool has_keys = !lua_isnil(L, lua_upvalueindex(1));
    while (place < places) {
        place++;
        script_cpu_check(L);
        lua_settop(L, 1);
        if (has_keys)
            lua_rawgeti(L, lua_upvalueindex(1), place);
        else
            lua_pushinteger(L, place);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) == LUA_TNIL) /* taken out since */
            continue;
        lua_pushinteger(L, place);
        lua_replace(L, lua_upvalueindex(2));
        return 2;
    }
    lua_pushnil(L);
    return 1;
}

ML_RAISES
int script_pairs(lua_State *L)
{
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 3);
        return 3;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    push_order(L, 1);
    lua_Integer places = (lua_Integer)lua_rawlen(L, lua_isnil(L, -1) ? 1 : -1);
    lua_pushinteger(L, 0);
    lua_pushinteger(L, places);
    lua_pushcclosure(L, iterate, 3);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

/* next(t) and next(t, key), in the order of pairs. A step costs a look at the whole table. */
ML_RAISES
int script_next(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_pushnil(L);
    if (!lua_next(L, 1)) { /* the common question: is it empty? */
        lua_pushnil(L);
        return 1;
    }
    lua_settop(L, 2);
    push_order(L, 1);
    bool has_keys = !lua_isnil(L, 3);
    lua_Integer places = (lua_Integer)lua_rawlen(L, has_keys ? 3 : 1);
    bool is_next = lua_isnil(L, 2);
    for (lua_Integer place = 1; place <= places; place++) {
        script_cpu_check(L);
        lua_settop(L, 3);
        if (has_keys)
            lua_rawgeti(L, 3, place);
        else
            lua_pushinteger(L, place);
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
