/* L0 base. Hash tables for keys that an attacker may choose. Not thread-safe.
 *
 * A map maps byte strings to pointers, by open addressing; insertion never moves the values
 * themselves. The key's bytes belong to the value (or to an owner that outlives it): the map keeps
 * only the slice, so an entry costs 24 bytes and no allocation.
 *
 * A set holds entries that contain their own key, for very large tables: an entry costs a pointer
 * and four bytes, at most 21 bytes with the spare slots. An entry of a map costs 24 bytes and its
 * share of the spare slots. A set keeps the order in which its entries were added. */
#pragma once

#include "base/str.h"

/* The hash of both. It differs from process to process, so that nobody can choose keys that
 * collide. Never store, send or log it; nothing may depend on an order that comes from it. For a
 * hash that stays the same: ml_str_hash. */
uint64_t ml_hash(struct ml_str key);

/* For tests: this seed instead of the kernel's. Before any table has an entry. */
void ml_hash_seed(uint64_t low, uint64_t high);

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
 * `value` is not NULL; `key` must stay valid until the entry is removed. */
void *ml_map_put(struct ml_map *map, struct ml_str key, void *value);

void *ml_map_remove(struct ml_map *map, struct ml_str key); /* the former value or NULL */

/* Steps through all entries in an order that differs from process to process, so nothing may depend
 * on it: start with *cursor 0; NULL at the end. The entry just seen may be removed; nothing may be
 * put. */
void *ml_map_next(const struct ml_map *map, size_t *cursor, struct ml_str *out_key);

#define ml_map_each(map, cursor, value)                                                            \
    size_t cursor = 0;                                                                             \
    for (void *value; (value = ml_map_next(map, &cursor, NULL));)

struct ml_set {
    struct ml_str (*key)(const void *entry); /* set by the owner before the first put */
    void **entries;  /* in the order in which they came; NULL where one was removed */
    uint32_t *slots; /* each: free, removed, or bits of a hash and the place of its entry */
    size_t capacity; /* of slots: 0 or a power of two */
    size_t used;     /* slots that are not free */
    size_t room;     /* capacity of entries */
    size_t filled;   /* used places of entries, removed ones too */
    size_t len;
};

void ml_set_fini(struct ml_set *set); /* frees the table; the entries are the caller's */

void *ml_set_get(const struct ml_set *set, struct ml_str key); /* NULL when absent */

/* Puts `entry`, which is not NULL, in the place of the one with the same key, or behind all
 * others. Returns the former entry or NULL. The key's bytes must not change until the entry is
 * removed. */
void *ml_set_put(struct ml_set *set, void *entry);

void *ml_set_remove(struct ml_set *set, struct ml_str key); /* the former entry or NULL */

/* Steps through all entries in the order in which their keys came: start with *cursor 0; NULL at
 * the end. The entry just seen may be removed; nothing may be put. */
void *ml_set_next(const struct ml_set *set, size_t *cursor);

#define ml_set_each(set, cursor, entry)                                                            \
    size_t cursor = 0;                                                                             \
    for (void *entry; (entry = ml_set_next(set, &cursor));)
