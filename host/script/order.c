/* pairs and next in an order that is the same in every process: an object that came from JSON
 * in its own key order, then keys put in later; other tables integers ascending, then fractions,
 * then strings bytewise, then booleans. Keys that are tables or functions have no order that
 * could be kept; they come last, as Lua finds them. */
#include "script/internal.h"

enum rank { RANK_INTEGER, RANK_REAL, RANK_STRING, RANK_BOOLEAN, RANK_OTHER };

struct order_key {
    enum rank rank;
    lua_Integer integer; /* or boolean; or, for RANK_OTHER, how many came before */
    lua_Number real;
    struct ml_str text;
};

static struct order_key order_key_at(lua_State *L, int index, lua_Integer found)
{
    struct order_key key = {.rank = RANK_OTHER, .integer = found};
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

/* [-0, +1] An array of the keys of table `index`, in order; those in `places` (0: none) are
 * left out. */
ML_RAISES
static void push_sorted(lua_State *L, int index, int places, size_t count)
{
    lua_createtable(L, (int)count, 0);
    int result = lua_gettop(L);
    struct order_key *keys = lua_newuserdatauv(L, ML_MAX(count, (size_t)1) * sizeof(*keys), 0);
    lua_newtable(L); /* keys of RANK_OTHER by the number they were found as */
    int others = lua_gettop(L);
    size_t found = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        if (places) {
            lua_pushvalue(L, -1);
            bool is_placed = lua_rawget(L, places) != LUA_TNIL;
            lua_pop(L, 1);
            if (is_placed)
                continue;
        }
        keys[found] = order_key_at(L, -1, (lua_Integer)found);
        if (keys[found].rank == RANK_OTHER) {
            lua_pushvalue(L, -1);
            lua_rawseti(L, others, keys[found].integer);
        }
        found++;
    }
    qsort(keys, found, sizeof(*keys), compare);
    script_cpu_check(L);
    for (size_t i = 0; i < found; i++) {
        const struct order_key *key = &keys[i];
        if (key->rank == RANK_INTEGER)
            lua_pushinteger(L, key->integer);
        else if (key->rank == RANK_REAL)
            lua_pushnumber(L, key->real);
        else if (key->rank == RANK_STRING)
            lua_pushlstring(L, key->text.ptr, key->text.len);
        else if (key->rank == RANK_BOOLEAN)
            lua_pushboolean(L, (int)key->integer);
        else
            lua_rawgeti(L, others, key->integer);
        lua_rawseti(L, result, (lua_Integer)i + 1);
    }
    lua_settop(L, result);
}

static size_t count_entries(lua_State *L, int index)
{
    size_t count = 0;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        count++;
    }
    return count;
}

ML_RAISES
void script_push_keys(lua_State *L, int index)
{
    push_sorted(L, index, 0, count_entries(L, index));
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
    }
    if (present == count)
        return;
    shape_places(L, index);
    push_sorted(L, index, lua_gettop(L), count);
    lua_remove(L, -2);
    int added = lua_gettop(L);
    lua_createtable(L, (int)count, 0);
    lua_Integer at = 0;
    for (int list = keys; list <= added; list += added - keys)
        for (lua_Integer i = 1; lua_rawgeti(L, list, i) != LUA_TNIL; i++)
            lua_rawseti(L, added + 1, ++at);
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
    }
    if (is_sequence)
        lua_pushnil(L);
    else
        push_sorted(L, index, 0, count);
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
