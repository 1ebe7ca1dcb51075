/* L0 base. A hash set of things that carry their own key, for tables of very many: an entry
 * costs a pointer and four bytes, at most 21 bytes with the room left free, where that of ml_map
 * costs 24 and its share of the room. It keeps the order in which the entries came. */
#pragma once

#include "base/base.h"
#include "base/str.h"

struct ml_set {
    struct ml_str (*key)(const void *entry); /* set by the owner before the first put */
    void **entries;  /* in the order in which they came; NULL where one was removed */
    uint32_t *slots; /* of each: free, removed, or bits of a hash and the place of its entry */
    size_t capacity; /* of slots: 0 or a power of two */
    size_t used;     /* slots that are not free */
    size_t room;     /* of entries */
    size_t filled;   /* places of entries that were given out */
    size_t len;
};

void ml_set_fini(struct ml_set *set); /* frees the table; the entries are the caller's */

void *ml_set_get(const struct ml_set *set, struct ml_str key); /* NULL when absent */

/* Puts `entry`, which is not NULL, in the place of the one with the same key, or behind all
 * others. Returns the former entry or NULL. The key's bytes must stay as they are until the entry
 * goes. */
void *ml_set_put(struct ml_set *set, void *entry);

void *ml_set_remove(struct ml_set *set, struct ml_str key); /* the former entry or NULL */

/* Steps through all entries in the order in which their keys came: start with *cursor 0; NULL at
 * the end. Removing the entry just seen is allowed, putting is not. */
void *ml_set_next(const struct ml_set *set, size_t *cursor);

#define ml_set_each(set, cursor, entry)                                                            \
    size_t cursor = 0;                                                                             \
    for (void *entry; (entry = ml_set_next(set, &cursor));)
