/* The order of a table's keys, for pairs, for JSON and for messages. It is the same in every
 * process: for an object that came from JSON its own order, then keys added later; for other tables
 * integers ascending, then fractions, then strings bytewise, then booleans. Keys that are tables or
 * functions come last, in no order.
 *
 * Objects from JSON with the same keys in the same order share one metatable, which is found by
 * walking a tree of nodes key by key while the object is read. So its order costs an object only
 * the pointer to its metatable.
 *
 * A node is a table: [1] the metatable once an object ended here, [2] its parent, [3] its key, and
 * one child for each key that followed. Nodes are kept up to NODES_MAX, and up to NODE_KEYS_MAX
 * keys in one object; beyond that the metatables are not shared. When the tree is full, the next
 * JSON text starts a new one. */
#include "script/objects.h"

#define NODES_MAX     4096
#define NODE_KEYS_MAX 64 /* of one object, to be shared */

enum { NODE_METATABLE = 1, NODE_PARENT, NODE_KEY };

/* Their addresses are keys in the registry and in metatables, which no script can name. */
static const char roots_key, arrays_key, keys_key, places_key;

ML_RAISES static int refuse_absent_field(lua_State *L)
{
    const char *field = lua_tostring(L, lua_upvalueindex(1));
    if (strcmp(field, "status") == 0)
        return luaL_error(L, "the object has no status yet: return { status = { … } } from "
                             "reconcile instead of assigning to it");
    return luaL_error(L,
                      "the object has no %s: give it a whole table (%s = { … }) instead of "
                      "assigning to a field of it",
                      field, field);
}

/* Fields that read as an empty table where they are absent. The metatable of that table is
 * registered under the address of the name here. */
static const char *const absent_fields[ROOT_COUNT][3] = {
    [ROOT_PLAIN] = {NULL},
    [ROOT_OBJECT] = {"spec", "status", NULL},
    [ROOT_METADATA] = {"annotations", "labels", NULL},
};

ML_RAISES static void open_absent(lua_State *L, const char *field)
{
    lua_createtable(L, 0, 2);
    lua_pushstring(L, field);
    lua_pushcclosure(L, refuse_absent_field, 1);
    lua_setfield(L, -2, "__newindex");
    script_register_metatable(L, field);
}

ML_RAISES int script_push_absent(lua_State *L, enum object_root root)
{
    struct ml_str name = script_str(L, 2);
    for (const char *const *field = absent_fields[root]; *field; field++) {
        if (!ml_str_is(name, *field))
            continue;
        lua_newtable(L); /* a new one each time, as a script may rawset it */
        lua_rawgetp(L, LUA_REGISTRYINDEX, *field);
        lua_setmetatable(L, -2);
        return 1;
    }
    return 0;
}

ML_RAISES static int index_absent(lua_State *L)
{
    return script_push_absent(L, (enum object_root)lua_tointeger(L, lua_upvalueindex(1)));
}

ML_RAISES static void open_roots(lua_State *L)
{
    lua_createtable(L, ROOT_COUNT, 0);
    for (int root = 0; root < ROOT_COUNT; root++) {
        lua_newtable(L);
        lua_rawseti(L, -2, root + 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &roots_key);
}

ML_RAISES void key_order_open(lua_State *L)
{
    open_roots(L);
    for (int root = 0; root < ROOT_COUNT; root++)
        for (const char *const *field = absent_fields[root]; *field; field++)
            open_absent(L, *field);
    lua_createtable(L, 0, 1);
    script_register_metatable(L, &arrays_key);
}

ML_RAISES void key_order_begin(lua_State *L, enum object_root root)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &roots_key);
    lua_rawgeti(L, -1, (int)root + 1);
    lua_remove(L, -2);
}

ML_RAISES void key_order_step(lua_State *L, int node, size_t count)
{
    struct ml_script *script = script_of(L);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, node) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, 3, 1);
        lua_pushvalue(L, node);
        lua_rawseti(L, -2, NODE_PARENT);
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, NODE_KEY);
        if (count < NODE_KEYS_MAX && script->key_order_nodes < NODES_MAX) {
            script->key_order_nodes++;
            lua_pushvalue(L, -2);
            lua_pushvalue(L, -2);
            lua_rawset(L, node);
        }
    }
    lua_replace(L, node);
}

/* [-0, +1] The keys from the root to the node on top, as an array. */
ML_RAISES static void push_node_keys(lua_State *L)
{
    int count = 0;
    lua_pushvalue(L, -1);
    while (lua_rawgeti(L, -1, NODE_PARENT) == LUA_TTABLE) {
        lua_replace(L, -2);
        count++;
        script_cpu_check(L);
    }
    lua_pop(L, 2);
    lua_createtable(L, count, 0);
    lua_pushvalue(L, -2);
    for (; count > 0; count--) {
        lua_rawgeti(L, -1, NODE_KEY);
        lua_rawseti(L, -3, count);
        lua_rawgeti(L, -1, NODE_PARENT);
        lua_replace(L, -2);
        script_cpu_check(L);
    }
    lua_pop(L, 1);
}

/* [-0, +1] The metatable for objects that end at the node on top. */
ML_RAISES static void push_ordering_metatable(lua_State *L, enum object_root root)
{
    lua_createtable(L, 0, 3);
    lua_insert(L, -2);
    push_node_keys(L);
    lua_rawsetp(L, -3, &keys_key);
    lua_insert(L, -2);
    script_hide_metatable(L);
    if (root == ROOT_PLAIN)
        return;
    lua_pushinteger(L, (int)root);
    lua_pushcclosure(L, index_absent, 1);
    lua_setfield(L, -2, "__index");
}

ML_RAISES void key_order_end(lua_State *L, int object, enum object_root root)
{
    if (lua_rawgeti(L, -1, NODE_METATABLE) != LUA_TTABLE) {
        lua_pop(L, 1);
        push_ordering_metatable(L, root);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, NODE_METATABLE);
    }
    lua_setmetatable(L, object);
    lua_pop(L, 1);
}

/* Called between two values, never while nodes are on the stack. */
ML_RAISES void key_order_trim(lua_State *L)
{
    struct ml_script *script = script_of(L);
    if (script->key_order_nodes < NODES_MAX)
        return;
    open_roots(L);
    script->key_order_nodes = 0;
}

bool key_order_keys(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return false;
    if (lua_rawgetp(L, -1, &keys_key) == LUA_TTABLE) {
        lua_remove(L, -2);
        return true;
    }
    lua_pop(L, 2);
    return false;
}

/* Pushes the table from key to place in that array; made on first use. */
ML_RAISES static void push_places(lua_State *L, int index)
{
    lua_getmetatable(L, index);
    if (lua_rawgetp(L, -1, &places_key) == LUA_TTABLE) {
        lua_remove(L, -2);
        return;
    }
    lua_pop(L, 1);
    lua_newtable(L);
    lua_rawgetp(L, -2, &keys_key);
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer place = 1; place <= count; place++) {
        lua_rawgeti(L, -1, place);
        lua_pushinteger(L, place);
        lua_rawset(L, -4);
        script_cpu_check(L);
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, -3, &places_key);
    lua_remove(L, -2);
}

bool script_is_array(lua_State *L, int index)
{
    return script_has_metatable(L, index, &arrays_key);
}

ML_RAISES void script_mark_array(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &arrays_key);
    lua_setmetatable(L, index);
}

/* ---- sorting ----
 *
 * libc's qsort allocates beside the budget and cannot be stopped. */

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

/* Sinks `item` from the hole at `at` to its place in the heap of `count` items. The largest is the
 * first. */
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

/* ---- the order of any table ---- */

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

/* [-1, +1] Puts behind the keys from JSON on top the later ones of the table at `index`, which has
 * `count`. */
ML_RAISES static void add_later_keys(lua_State *L, int index, size_t count)
{
    int keys = lua_gettop(L);
    size_t present = 0;
    lua_Integer known = (lua_Integer)lua_rawlen(L, keys);
    for (lua_Integer i = 1; i <= known; i++) {
        lua_rawgeti(L, keys, i);
        present += lua_rawget(L, index) != LUA_TNIL;
        lua_pop(L, 1);
        script_cpu_check(L);
    }
    if (present == count)
        return;
    push_places(L, index);
    push_sorted(L, index, keys + 1, count - present);
    lua_Integer all = known + (lua_Integer)lua_rawlen(L, keys + 2);
    lua_createtable(L, (int)all, 0);
    for (lua_Integer i = 1; i <= all; i++) {
        bool is_later = i > known;
        lua_rawgeti(L, is_later ? keys + 2 : keys, is_later ? i - known : i);
        lua_rawseti(L, keys + 3, i);
        script_cpu_check(L);
    }
    lua_replace(L, keys);
    lua_settop(L, keys);
}

ML_RAISES void script_push_ordered_keys(lua_State *L, int index, size_t count)
{
    if (key_order_keys(L, index))
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

ML_RAISES void script_push_key_order(lua_State *L, int index)
{
    size_t count = count_entries(L, index);
    luaL_checkstack(L, 12, NULL);
    if (key_order_keys(L, index))
        add_later_keys(L, index, count);
    else if (is_sequence(L, index, count))
        lua_pushnil(L);
    else
        push_sorted(L, index, 0, count);
}
