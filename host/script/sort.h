/* L5 script, private. Sorting in C what a script may make long. The libc's qsort takes memory
 * beside the budget and cannot be stopped. */
#pragma once

#include "script/internal.h"

#define SCRIPT_SORT_ITEM_MAX 64 /* bytes */

/* Sorts `count` items of `size` bytes in place, by heap sort: n log n comparisons at most,
 * whatever the order they come in, and no memory. Not stable. Looks at the deadline after each
 * comparison, and raises; the items are then in any order. `compare` is as qsort's. */
ML_RAISES
void script_sort(lua_State *L, void *items, size_t count, size_t size,
                 int (*compare)(const void *, const void *));
