/* Shapes keep the key order of objects that came from JSON (json_decode.c) for json_encode.c and
 * pairs. Objects with the same keys in the same order share one metatable, which is found by
 * walking a tree of nodes key by key while the object is read. So a shape costs an object only the
 * pointer to its metatable.
 *
 * A node is a table: [1] the metatable once an object ended here, [2] its parent, [3] its key, and
 * one child for each key that followed. Beyond SHAPE_NODES_MAX nodes, or SHAPE_KEYS_MAX keys in one
 * object, new nodes are not kept and their shapes not shared; when the tree is full, the next JSON
 * text starts a new one. */
#include "script/internal.h"

#define SHAPE_NODES_MAX 4096
#define SHAPE_KEYS_MAX  64 /* of one object, to be shared */

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

/* What reads as an empty table where it is absent. The metatable of that table is registered under
 * the address of the name here. */
static const char *const absent_fields[SHAPE_ROOTS][3] = {
    [SHAPE_PLAIN] = {NULL},
    [SHAPE_OBJECT] = {"spec", "status", NULL},
    [SHAPE_METADATA] = {"annotations", "labels", NULL},
};

ML_RAISES static void open_absent(lua_State *L, const char *field)
{
    lua_createtable(L, 0, 2);
    lua_pushstring(L, field);
    lua_pushcclosure(L, refuse_absent_field, 1);
    lua_setfield(L, -2, "__newindex");
    script_register_metatable(L, field);
}

ML_RAISES int shape_push_absent(lua_State *L, enum shape_root root)
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
    return shape_push_absent(L, (enum shape_root)lua_tointeger(L, lua_upvalueindex(1)));
}

ML_RAISES static void open_roots(lua_State *L)
{
    lua_createtable(L, SHAPE_ROOTS, 0);
    for (int root = 0; root < SHAPE_ROOTS; root++) {
        lua_newtable(L);
        lua_rawseti(L, -2, root + 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &roots_key);
}

ML_RAISES void shape_open(lua_State *L)
{
    open_roots(L);
    for (int root = 0; root < SHAPE_ROOTS; root++)
        for (const char *const *field = absent_fields[root]; *field; field++)
            open_absent(L, *field);
    lua_createtable(L, 0, 1);
    script_register_metatable(L, &arrays_key);
}

ML_RAISES void shape_begin(lua_State *L, enum shape_root root)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &roots_key);
    lua_rawgeti(L, -1, (int)root + 1);
    lua_remove(L, -2);
}

ML_RAISES void shape_step(lua_State *L, int node, size_t count)
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
        if (count < SHAPE_KEYS_MAX && script->shape_nodes < SHAPE_NODES_MAX) {
            script->shape_nodes++;
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
ML_RAISES static void push_shape_metatable(lua_State *L, enum shape_root root)
{
    lua_createtable(L, 0, 3);
    lua_insert(L, -2);
    push_node_keys(L);
    lua_rawsetp(L, -3, &keys_key);
    lua_insert(L, -2);
    script_hide_metatable(L);
    if (root == SHAPE_PLAIN)
        return;
    lua_pushinteger(L, (int)root);
    lua_pushcclosure(L, index_absent, 1);
    lua_setfield(L, -2, "__index");
}

ML_RAISES void shape_end(lua_State *L, int object, enum shape_root root)
{
    if (lua_rawgeti(L, -1, NODE_METATABLE) != LUA_TTABLE) {
        lua_pop(L, 1);
        push_shape_metatable(L, root);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, NODE_METATABLE);
    }
    lua_setmetatable(L, object);
    lua_pop(L, 1);
}

/* Called between two values, never while nodes are on the stack. */
ML_RAISES void shape_trim(lua_State *L)
{
    struct ml_script *script = script_of(L);
    if (script->shape_nodes < SHAPE_NODES_MAX)
        return;
    open_roots(L);
    script->shape_nodes = 0;
}

bool shape_keys(lua_State *L, int index)
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

ML_RAISES void shape_places(lua_State *L, int index)
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

bool shape_is_array(lua_State *L, int index)
{
    return script_has_metatable(L, index, &arrays_key);
}

ML_RAISES void shape_mark_array(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &arrays_key);
    lua_setmetatable(L, index);
}
