/* Tables in the sandbox: the table library, pairs and next, and sorting for these and for the host.
 * libc's qsort allocates beside the budget and cannot be stopped; Lua's own functions call
 * metamethods for lengths and elements, so a script could make a loop in C as long as it likes.
 * Here all work on raw tables and check the deadline. sandbox.c opens it.
 *
 * The order of keys is the same in every process: for an object that came from JSON its own order,
 * then keys added later; for other tables integers ascending, then fractions, then strings
 * bytewise, then booleans. Keys that are tables or functions come last, in no order. */
#include "script/internal.h"

struct sorting {
    lua_State *L;
    char *items;
    size_t size;
    int (*compare)(const void *, const void *);
};

ML_RAISES static bool sort_is_before(const struct sorting *sorting, const void *a, const void *b)
{
    script_cpu_check(sorting->L);
    return sorting->compare(a, b) < 0;
}

static char *sort_item_at(const struct sorting *sorting, size_t place)
{
    return sorting->items + place * sorting->size;
}

/* Sinks `item` from the hole at `at` to its place in the heap of `count` items, the largest of
 * which is the first. */
ML_RAISES static void sort_sink(const struct sorting *sorting, const void *item, size_t at,
                                size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count &&
            sort_is_before(sorting, sort_item_at(sorting, child), sort_item_at(sorting, child + 1)))
            child++;
        if (!sort_is_before(sorting, item, sort_item_at(sorting, child)))
            break;
        memcpy(sort_item_at(sorting, at), sort_item_at(sorting, child), sorting->size);
    }
    memcpy(sort_item_at(sorting, at), item, sorting->size);
}

/* Checked first: input is often sorted already, or short. */
ML_RAISES static bool sort_is_sorted(const struct sorting *sorting, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (sort_is_before(sorting, sort_item_at(sorting, i), sort_item_at(sorting, i - 1)))
            return false;
    return true;
}

ML_RAISES void script_sort(lua_State *L, void *items, size_t count, size_t size,
                           int (*compare)(const void *, const void *))
{
    const struct sorting sorting = {L, items, size, compare};
    char item[SCRIPT_SORT_ITEM_MAX];
    ml_assert(size <= sizeof(item));
    if (sort_is_sorted(&sorting, count))
        return;
    for (size_t at = count / 2; at-- > 0;) {
        memcpy(item, sort_item_at(&sorting, at), size);
        sort_sink(&sorting, item, at, count);
    }
    for (size_t last = count - 1; last > 0; last--) {
        memcpy(item, sort_item_at(&sorting, last), size);
        memcpy(sort_item_at(&sorting, last), items, size);
        sort_sink(&sorting, item, 0, last);
    }
}

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
        key.text = script_str(L, index);
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

static int compare_keys(const void *left, const void *right)
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

/* Puts the keys of table `index` that are not in `places` (0: none) into the array on top, at most
 * `count`. The array anchors the strings that `keys` points to. Returns how many. */
ML_RAISES static size_t collect_keys(lua_State *L, int index, int places, size_t count,
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

/* Permutes the array on top into the order of `keys`, cycle by cycle. */
ML_RAISES static void arrange_keys(lua_State *L, struct order_key *keys, size_t count)
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

/* [-0, +1] A sorted array of the keys that the table at `places` (0: none) does not have, at most
 * `count`. */
ML_RAISES static void push_sorted(lua_State *L, int index, int places, size_t count)
{
    struct order_key small[KEYS_SMALL], *keys = small;
    if (count > KEYS_SMALL)
        keys = lua_newuserdatauv(L, count * sizeof(*keys), 0);
    lua_createtable(L, (int)count, 0);
    size_t found = collect_keys(L, index, places, count, keys);
    script_sort(L, keys, found, sizeof(*keys), compare_keys);
    arrange_keys(L, keys, found);
    if (keys != small)
        lua_remove(L, -2);
}

ML_RAISES static size_t count_entries(lua_State *L, int index)
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

ML_RAISES void script_push_keys(lua_State *L, int index)
{
    push_sorted(L, index, 0, count_entries(L, index));
}

/* [-1, +1] Puts behind the shape's keys on top those that the table at `index`, which has `count`,
 * got later. */
ML_RAISES static void add_later_keys(lua_State *L, int index, size_t count)
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
    push_sorted(L, index, keys + 1, count - present);
    lua_Integer all = shape_len + (lua_Integer)lua_rawlen(L, keys + 2);
    lua_createtable(L, (int)all, 0);
    for (lua_Integer i = 1; i <= all; i++) {
        bool is_later = i > shape_len;
        lua_rawgeti(L, is_later ? keys + 2 : keys, is_later ? i - shape_len : i);
        lua_rawseti(L, keys + 3, i);
        script_cpu_check(L);
    }
    lua_replace(L, keys);
    lua_settop(L, keys);
}

ML_RAISES void script_push_ordered_keys(lua_State *L, int index, size_t count)
{
    if (shape_keys(L, index))
        add_later_keys(L, index, count);
    else
        push_sorted(L, index, 0, count);
}

ML_RAISES static bool is_sequence(lua_State *L, int index, size_t count)
{
    bool is = count == lua_rawlen(L, index);
    for (size_t i = count; is && i > 0; i--) {
        is = lua_rawgeti(L, index, (lua_Integer)i) != LUA_TNIL;
        lua_pop(L, 1);
        script_cpu_check(L);
    }
    return is;
}

/* [-0, +1] The keys of the table at `index` in order, or nil for an array's 1 … n. */
ML_RAISES static void push_key_order(lua_State *L, int index)
{
    size_t count = count_entries(L, index);
    luaL_checkstack(L, 12, NULL);
    if (shape_keys(L, index))
        add_later_keys(L, index, count);
    else if (is_sequence(L, index, count))
        lua_pushnil(L);
    else
        push_sorted(L, index, 0, count);
}

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
    push_key_order(L, 1);
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
    push_key_order(L, 1);
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
