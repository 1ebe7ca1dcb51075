/* L0 base. A hash map from byte strings to pointers, open addressing, insertion never moves
 * the values themselves. The key's bytes belong to the value (or to whoever outlives it): the
 * map keeps only the slice, so an entry costs 24 bytes and no allocation. */
#pragma once

#include "base/base.h"
#include "base/str.h"

struct ml_map_slot {
    const char *key; /* NULL: never used; ml_map_tombstone: was used */
    void *value;
    uint32_t key_len;
    uint32_t hash;
};

struct ml_map {
    struct ml_map_slot *slots;
    size_t capacity; /* 0 or a power of two */
    size_t len;
    size_t used; /* len and tombstones */
};

void ml_map_fini(struct ml_map *map); /* frees the table; the values are the caller's */

void *ml_map_get(const struct ml_map *map, struct ml_str key); /* NULL when absent */

/* Sets, replacing key and value of an entry that is there. Returns the former value or NULL.
 * `value` is not NULL; `key` must stay valid until the entry goes. */
void *ml_map_put(struct ml_map *map, struct ml_str key, void *value);

void *ml_map_remove(struct ml_map *map, struct ml_str key); /* the former value or NULL */

/* Steps through all entries in an order that differs from process to process (base/hash.h), so that
 * nothing may come of it: start with *cursor 0; NULL at the end.
 * Removing the entry just seen is allowed, putting is not. */
void *ml_map_next(const struct ml_map *map, size_t *cursor, struct ml_str *out_key);

#define ml_map_each(map, cursor, value)                                                            \
    size_t cursor = 0;                                                                             \
    for (void *value; (value = ml_map_next(map, &cursor, NULL));)
