/* L5 script, private. The indexes of a script (moonloop.index): each holds the objects of one
 * watched kind by the keys that a function of the script returns for them, so that ctx.list finds
 * the objects of a key without a look at all the others.
 *
 * revision.c reports each change of the cache (ml_script_index_change). The function runs once for
 * each version of an object, outside of any run of the script, for as long as `when` may take. An
 * object for which it failed has no keys. A lookup waits until no object is pending. */
#pragma once

#include "base/list.h"
#include "script/reads.h"

#define SCRIPT_INDEX_PLACE_MAX 300 /* bytes of "file.lua:12" */

struct script_index {
    struct ml_gvk gvk; /* slices live as long as the state */
    int function_ref;
    char place[SCRIPT_INDEX_PLACE_MAX]; /* of the function */
    struct ml_set entries;              /* by the key of their object */
    struct ml_set postings;
    struct ml_list pending;
    size_t charged;
    bool overflowed;
    struct script_reads *reads; /* what the function reads of objects; NULL: not recorded */
};

/* host.index(kind, function), while the script loads: the value of moonloop.index, or nil and what
 * is wrong. */
ML_RAISES int script_index_new(lua_State *L);
ML_RAISES void script_index_open(lua_State *L); /* the metatable of these values */
/* Raises unless the kinds of all indexes are watched. After the kinds were declared. */
ML_RAISES void script_index_check_kinds(lua_State *L);

/* The index that the value at the stack index is; NULL: it is none. */
static inline const struct script_index *script_to_index(lua_State *L, int index)
{
    const size_t *number = script_to_userdata(L, index, &script_index_key);
    return number ? script_of(L)->indexes[*number] : NULL;
}

void script_indexes_free(struct ml_script *script);

/* Steps through the objects that have the key; start with *cursor 0. Borrowed, while none comes or
 * goes. `len`: how many there are. */
struct ml_object *script_index_next(const struct script_index *index, struct ml_str key,
                                    size_t *cursor);
size_t script_index_len(const struct script_index *index, struct ml_str key);
