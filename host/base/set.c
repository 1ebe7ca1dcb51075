#include "base/set.h"

#define CAPACITY_MIN 8
#define TAG_FREE     0
#define TAG_REMOVED  1
#define TAG_FIRST    2 /* from here on they are of entries */

/* The slot comes from the low bits, the tag from others: a slot that is another's seldom shows
 * the same tag, so that hardly an entry is touched for nothing. */
static uint8_t tag_of(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> 56);
    return tag < TAG_FIRST ? (uint8_t)(tag + TAG_FIRST) : tag;
}

static uint64_t hash_of(struct ml_str key)
{
    /* FNV's low bits are good, its high ones less so after a short key: mixed once more. */
    return ml_str_hash(key) * 0x9e3779b97f4a7c15u;
}

static size_t slot_of(uint64_t hash, size_t mask)
{
    return (hash >> 20) & mask;
}

/* The slot of `key`; the capacity when it is not there. */
static size_t find(const struct ml_set *set, struct ml_str key, uint64_t hash)
{
    if (set->capacity == 0)
        return 0;
    size_t mask = set->capacity - 1;
    uint8_t tag = tag_of(hash);
    for (size_t i = slot_of(hash, mask); set->tags[i] != TAG_FREE; i = (i + 1) & mask)
        if (set->tags[i] == tag && ml_str_eq(set->key(set->entries[i]), key))
            return i;
    return set->capacity;
}

static void insert(struct ml_set *set, void *entry, uint64_t hash)
{
    size_t mask = set->capacity - 1;
    size_t i = slot_of(hash, mask);
    while (set->tags[i] >= TAG_FIRST)
        i = (i + 1) & mask;
    set->used += set->tags[i] == TAG_FREE;
    set->len++;
    set->tags[i] = tag_of(hash);
    set->entries[i] = entry;
}

/* Also run at the same size, to sweep out what was removed. */
static void rehash(struct ml_set *set, size_t capacity)
{
    struct ml_set old = *set;
    set->entries = ml_zalloc(capacity * (sizeof *set->entries + sizeof *set->tags));
    set->tags = (uint8_t *)(set->entries + capacity);
    set->capacity = capacity;
    set->len = set->used = 0;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.entries[i])
            insert(set, old.entries[i], hash_of(set->key(old.entries[i])));
    free(old.entries);
}

void ml_set_fini(struct ml_set *set)
{
    free(set->entries);
    *set = (struct ml_set){.key = set->key};
}

void *ml_set_get(const struct ml_set *set, struct ml_str key)
{
    size_t i = find(set, key, hash_of(key));
    return i < set->capacity ? set->entries[i] : NULL;
}

void *ml_set_put(struct ml_set *set, void *entry)
{
    ml_assert(entry != NULL);
    struct ml_str key = set->key(entry);
    uint64_t hash = hash_of(key);
    size_t i = find(set, key, hash);
    if (i < set->capacity) {
        void *former = set->entries[i];
        set->entries[i] = entry;
        return former;
    }
    /* At most seven eighths full, so that a probe always meets a free slot, and soon. */
    if ((set->used + 1) * 8 > set->capacity * 7) {
        bool crowded = (set->len + 1) * 4 > set->capacity * 3;
        rehash(set, crowded ? ML_MAX(set->capacity * 2, CAPACITY_MIN) : set->capacity);
    }
    insert(set, entry, hash);
    return NULL;
}

void *ml_set_remove(struct ml_set *set, struct ml_str key)
{
    size_t i = find(set, key, hash_of(key));
    if (i == set->capacity)
        return NULL;
    void *former = set->entries[i];
    set->entries[i] = NULL;
    set->tags[i] = TAG_REMOVED;
    set->len--;
    return former;
}

void *ml_set_next(const struct ml_set *set, size_t *cursor)
{
    while (*cursor < set->capacity) {
        void *entry = set->entries[(*cursor)++];
        if (entry)
            return entry;
    }
    return NULL;
}
