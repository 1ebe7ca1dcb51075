#include "base/set.h"

#include "base/hash.h"

#define CAPACITY_MIN 8
#define PLACE_BITS   26
#define PLACE_MASK   ((UINT32_C(1) << PLACE_BITS) - 1) /* of a place, counted from 1 */
#define SLOT_FREE    UINT32_C(0)
#define SLOT_REMOVED (PLACE_MASK + 1) /* a tag without a place */

/* The slot comes from the low bits of the hash, the tag from others: a slot that is another's
 * seldom shows the same tag, so that hardly an entry is touched for nothing. */
static uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 32) & ~PLACE_MASK;
}

static size_t place_of(uint32_t slot)
{
    return (slot & PLACE_MASK) - 1;
}

static bool has_place(uint32_t slot)
{
    return (slot & PLACE_MASK) != 0;
}

/* The slot of `key`; the capacity when it is not there. */
static size_t find(const struct ml_set *set, struct ml_str key, uint64_t hash)
{
    if (set->capacity == 0)
        return 0;
    size_t mask = set->capacity - 1;
    uint32_t tag = tag_of(hash);
    for (size_t i = hash & mask; set->slots[i] != SLOT_FREE; i = (i + 1) & mask) {
        uint32_t slot = set->slots[i];
        if (has_place(slot) && (slot & ~PLACE_MASK) == tag &&
            ml_str_eq(set->key(set->entries[place_of(slot)]), key))
            return i;
    }
    return set->capacity;
}

static void point_to(struct ml_set *set, size_t place, uint64_t hash)
{
    size_t mask = set->capacity - 1, i = hash & mask;
    while (has_place(set->slots[i]))
        i = (i + 1) & mask;
    set->used += set->slots[i] == SLOT_FREE;
    set->slots[i] = tag_of(hash) | (uint32_t)(place + 1);
}

/* Also run at the same size, to sweep out what was removed. */
static void rebuild(struct ml_set *set, size_t capacity)
{
    free(set->slots);
    set->slots = ml_zalloc(capacity * sizeof *set->slots);
    set->capacity = capacity;
    set->used = 0;
    size_t kept = 0;
    for (size_t i = 0; i < set->filled; i++) {
        if (!set->entries[i])
            continue;
        set->entries[kept] = set->entries[i];
        point_to(set, kept, ml_hash(set->key(set->entries[kept])));
        kept++;
    }
    set->filled = kept;
}

static void make_room(struct ml_set *set)
{
    /* At most seven eighths full, so that a probe always meets a free slot, and soon. */
    bool is_full = (set->used + 1) * 8 > set->capacity * 7;
    bool has_holes = set->filled == set->room && set->len + set->len / 4 < set->filled;
    if (is_full || has_holes) {
        bool overflow = (set->len + 1) * 4 > set->capacity * 3;
        rebuild(set, overflow ? ML_MAX(set->capacity * 2, CAPACITY_MIN) : set->capacity);
    }
    if (set->filled < set->room)
        return;
    set->room += set->room / 2 + 4;
    set->entries = ml_realloc(set->entries, set->room * sizeof *set->entries);
}

void ml_set_fini(struct ml_set *set)
{
    free(set->entries);
    free(set->slots);
    *set = (struct ml_set){.key = set->key};
}

void *ml_set_get(const struct ml_set *set, struct ml_str key)
{
    size_t i = find(set, key, ml_hash(key));
    return i < set->capacity ? set->entries[place_of(set->slots[i])] : NULL;
}

void *ml_set_put(struct ml_set *set, void *entry)
{
    ml_assert(entry != NULL);
    struct ml_str key = set->key(entry);
    uint64_t hash = ml_hash(key);
    size_t i = find(set, key, hash);
    if (i < set->capacity) {
        void **held = &set->entries[place_of(set->slots[i])], *former = *held;
        *held = entry;
        return former;
    }
    make_room(set);
    ml_assert(set->filled < PLACE_MASK);
    set->entries[set->filled] = entry;
    point_to(set, set->filled, hash);
    set->filled++;
    set->len++;
    return NULL;
}

void *ml_set_remove(struct ml_set *set, struct ml_str key)
{
    size_t i = find(set, key, ml_hash(key));
    if (i == set->capacity)
        return NULL;
    void **held = &set->entries[place_of(set->slots[i])], *former = *held;
    *held = NULL;
    set->slots[i] = SLOT_REMOVED;
    set->len--;
    return former;
}

void *ml_set_next(const struct ml_set *set, size_t *cursor)
{
    while (*cursor < set->filled) {
        void *entry = set->entries[(*cursor)++];
        if (entry)
            return entry;
    }
    return NULL;
}
