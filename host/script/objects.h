/* L5 script, private. Objects as tables: the order of their keys (key_order.c), and JSON to Lua and
 * back (json.c). */
#pragma once

#include "script/internal.h"

/* ---- key_order.c ---- */

/* The kind of value that a JSON text is. Objects of each kind have key orders of their own, as
 * other fields can be absent in them. */
enum object_root {
    ROOT_PLAIN,
    ROOT_OBJECT, /* of Kubernetes */
    ROOT_METADATA,
    ROOT_COUNT,
    ROOT_ITEMS, /* an array of ROOT_OBJECT */
};

ML_RAISES void key_order_open(lua_State *L);
ML_RAISES void key_order_begin(lua_State *L, enum object_root root); /* [-0, +1] the node */
/* With the key on top: moves the node in stack slot `node` on. `count`: keys so far. */
ML_RAISES void key_order_step(lua_State *L, int node, size_t count);
ML_RAISES void key_order_end(lua_State *L, int object, enum object_root root); /* [-1 node, +0] */
ML_RAISES void key_order_trim(lua_State *L); /* forgets the tree when it is full */
/* Pushes the array of keys of the table at `index` when it came from JSON. Never raises. */
bool key_order_keys(lua_State *L, int index);
/* [-0, +0 or +1] The table that the absent field whose name is at stack index 2 reads as in an
 * object of `root`; returns how many. */
ML_RAISES int script_push_absent(lua_State *L, enum object_root root);
bool script_is_array(lua_State *L, int index); /* marked by moonloop.array or a JSON array */
ML_RAISES void script_mark_array(lua_State *L, int index);
/* [-0, +1] The keys of the table at `index` as a sorted array, which holds them. */
ML_RAISES void script_push_keys(lua_State *L, int index);
/* The same in the order of pairs: those of a table that has `count` and is no sequence. Needs 10
 * slots of the stack. */
ML_RAISES void script_push_ordered_keys(lua_State *L, int index, size_t count);
/* [-0, +1] The same of any table, or nil for an array's 1 … n. */
ML_RAISES void script_push_key_order(lua_State *L, int index);

/* Sorts in C data whose length a script controls. */
#define SCRIPT_SORT_ITEM_MAX 64 /* bytes */

/* Sorts `count` items of `size` bytes in place, by heap sort: n log n comparisons at most,
 * whatever the order they come in, and no memory. Not stable. Looks at the deadline after each
 * comparison, and raises; the items are then in any order. `compare` is as qsort's. */
ML_RAISES void script_sort(lua_State *L, void *items, size_t count, size_t size,
                           int (*compare)(const void *, const void *));

/* ---- json.c ---- */

/* JSON to Lua. [-0, +1]; raises when it is no JSON. Of a Kubernetes object, other than of plain
 * JSON, what is absent can be read, and its managedFields are left out. `place`: where what the
 * script reads of it is recorded; 0: nowhere. */
ML_RAISES void script_push_json(lua_State *L, struct ml_str json,
                                enum object_root root);              /* all of it */
ML_RAISES void script_push_answer(lua_State *L, struct ml_str json); /* an object; not recorded */
ML_RAISES void script_push_object(lua_State *L, const struct ml_object *object, read_node place);
/* [-0, +1] An object, or any other JSON that was checked. It is copied. */
ML_RAISES void script_push_lazy(lua_State *L, struct ml_str json, read_node place);

/* The fields of an object are decoded when a script touches them. Such a table is *pending*; C that
 * looks into a table of a script without metamethods completes it first. */
ML_RAISES void lazy_open(lua_State *L);
bool lazy_is_pending(lua_State *L, int index);
/* Makes a pending table the plain table that it stands for: all its fields are there, those that
 * are objects as pending tables. Does nothing to any other value. */
ML_RAISES void lazy_complete(lua_State *L, int index);
/* luaL_checktype for a table, and completes it. */
ML_RAISES void lazy_check_table(lua_State *L, int index);

/* Lua to JSON, into `out`, which is emptied first and belongs to the script or the run. Raises
 * "cnat.lua:12: status.phase: a function cannot be stored"; `root` ("status", or "") starts that
 * path. */
ML_RAISES void script_encode(lua_State *L, int index, const char *root, struct ml_buf *out);
