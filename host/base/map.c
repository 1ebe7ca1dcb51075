/* Maps and sets, and the hash that both use: SipHash-1-3 (Aumasson, Bernstein, "SipHash: a fast
 * short-input PRF", 2012; one round a word and three at the end, as for tables in memory
 * elsewhere).
 */
#include "base/map.h"

#include <sys/random.h>

/* ---- hash ---- */

static struct {
    uint64_t low, high;
    bool set;
} hash_seed;

struct sip {
    uint64_t a, b, c, d;
};

static inline uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void sip_round(struct sip *s)
{
    s->a += s->b;
    s->b = rotate_left(s->b, 13) ^ s->a;
    s->a = rotate_left(s->a, 32);
    s->c += s->d;
    s->d = rotate_left(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = rotate_left(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = rotate_left(s->b, 17) ^ s->c;
    s->c = rotate_left(s->c, 32);
}

static inline void sip_add_word(struct sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

/* Up to eight bytes, the first the lowest. */
static inline uint64_t sip_word_at(const char *at, size_t len)
{
    uint64_t word = 0;
    if (len == sizeof(word)) {
        memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        return word;
    }
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return word;
}

void ml_hash_seed(uint64_t low, uint64_t high)
{
    hash_seed.low = low;
    hash_seed.high = high;
    hash_seed.set = true;
}

static void hash_seed_from_kernel(void)
{
    uint64_t words[2];
    ssize_t got = getrandom(words, sizeof(words), 0);
    ml_assert(got == (ssize_t)sizeof(words));
    ml_hash_seed(words[0], words[1]);
}

uint64_t ml_hash(struct ml_str key)
{
    if (ML_UNLIKELY(!hash_seed.set))
        hash_seed_from_kernel();
    struct sip s = {
        hash_seed.low ^ UINT64_C(0x736f6d6570736575),
        hash_seed.high ^ UINT64_C(0x646f72616e646f6d),
        hash_seed.low ^ UINT64_C(0x6c7967656e657261),
        hash_seed.high ^ UINT64_C(0x7465646279746573),
    };
    size_t left = key.len;
    const char *at = key.ptr;
    for (; left >= 8; left -= 8, at += 8)
        sip_add_word(&s, sip_word_at(at, 8));
    sip_add_word(&s, sip_word_at(at, left) | (uint64_t)key.len << 56);
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* ---- map ---- */

static const char tombstone[1];

#define MAP_CAPACITY_MIN 8

static uint32_t map_hash(struct ml_str key)
{
    uint64_t hash = ml_hash(key);
    return (uint32_t)(hash ^ (hash >> 32));
}

static bool map_slot_has_key(const struct ml_map_slot *slot, struct ml_str key, uint32_t hash)
{
    return slot->key != tombstone && slot->hash == hash && slot->key_len == key.len &&
           memcmp(slot->key, key.ptr, key.len) == 0;
}

static struct ml_map_slot *map_find(const struct ml_map *map, struct ml_str key, uint32_t hash)
{
    if (map->capacity == 0)
        return NULL;
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct ml_map_slot *slot = &map->slots[i];
        if (!slot->key)
            return NULL;
        if (map_slot_has_key(slot, key, hash))
            return slot;
    }
}

static struct ml_map_slot *map_find_free_slot(struct ml_map *map, uint32_t hash)
{
    size_t mask = map->capacity - 1;
    size_t i = hash & mask;
    while (map->slots[i].key && map->slots[i].key != tombstone)
        i = (i + 1) & mask;
    return &map->slots[i];
}

/* Also run at the same size, to sweep tombstones out. */
static void map_rehash(struct ml_map *map, size_t capacity)
{
    struct ml_map old = *map;
    map->slots = ml_zalloc(capacity * sizeof(struct ml_map_slot));
    map->capacity = capacity;
    map->used = map->len;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].key && old.slots[i].key != tombstone)
            *map_find_free_slot(map, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

void ml_map_fini(struct ml_map *map)
{
    free(map->slots);
    *map = (struct ml_map){0};
}

void *ml_map_get(const struct ml_map *map, struct ml_str key)
{
    struct ml_map_slot *slot = map_find(map, key, map_hash(key));
    return slot ? slot->value : NULL;
}

void *ml_map_put(struct ml_map *map, struct ml_str key, void *value)
{
    ml_assert(value != NULL);
    ml_assert(key.len <= UINT32_MAX);
    uint32_t hash = map_hash(key);
    const char *key_ptr = key.ptr ? key.ptr : "";
    struct ml_map_slot *slot = map_find(map, key, hash);
    if (slot) {
        void *former = slot->value;
        slot->key = key_ptr;
        slot->value = value;
        return former;
    }
    /* At most three quarters full, so that a probe always meets an empty slot. */
    if ((map->used + 1) * 4 > map->capacity * 3) {
        bool overflow = (map->len + 1) * 2 > map->capacity;
        map_rehash(map, overflow ? ML_MAX(map->capacity * 2, MAP_CAPACITY_MIN) : map->capacity);
    }
    slot = map_find_free_slot(map, hash);
    map->used += slot->key == NULL;
    map->len++;
    *slot = (struct ml_map_slot){key_ptr, value, (uint32_t)key.len, hash};
    return NULL;
}

void *ml_map_remove(struct ml_map *map, struct ml_str key)
{
    struct ml_map_slot *slot = map_find(map, key, map_hash(key));
    if (!slot)
        return NULL;
    void *former = slot->value;
    slot->key = tombstone;
    slot->value = NULL;
    map->len--;
    return former;
}

void *ml_map_next(const struct ml_map *map, size_t *cursor, struct ml_str *out_key)
{
    while (*cursor < map->capacity) {
        const struct ml_map_slot *slot = &map->slots[(*cursor)++];
        if (!slot->key || slot->key == tombstone)
            continue;
        if (out_key)
            *out_key = (struct ml_str){slot->key, slot->key_len};
        return slot->value;
    }
    return NULL;
}

/* ---- set ---- */

#define SET_CAPACITY_MIN 8
#define PLACE_BITS       26
#define PLACE_MASK       ((UINT32_C(1) << PLACE_BITS) - 1) /* of a place, counted from 1 */
#define SLOT_FREE        UINT32_C(0)
#define SLOT_REMOVED     (PLACE_MASK + 1) /* a tag without a place */

/* The slot comes from the low bits of the hash, the tag from others: a slot that is another's
 * seldom shows the same tag, so that hardly an entry is touched for nothing. */
static uint32_t set_tag(uint64_t hash)
{
    return (uint32_t)(hash >> 32) & ~PLACE_MASK;
}

static size_t slot_place(uint32_t slot)
{
    return (slot & PLACE_MASK) - 1;
}

static bool slot_has_place(uint32_t slot)
{
    return (slot & PLACE_MASK) != 0;
}

/* The slot of `key`; the capacity when it is not there. */
static size_t set_find(const struct ml_set *set, struct ml_str key, uint64_t hash)
{
    if (set->capacity == 0)
        return 0;
    size_t mask = set->capacity - 1;
    uint32_t tag = set_tag(hash);
    for (size_t i = hash & mask; set->slots[i] != SLOT_FREE; i = (i + 1) & mask) {
        uint32_t slot = set->slots[i];
        if (slot_has_place(slot) && (slot & ~PLACE_MASK) == tag &&
            ml_str_eq(set->key(set->entries[slot_place(slot)]), key))
            return i;
    }
    return set->capacity;
}

static void set_point_to(struct ml_set *set, size_t place, uint64_t hash)
{
    size_t mask = set->capacity - 1, i = hash & mask;
    while (slot_has_place(set->slots[i]))
        i = (i + 1) & mask;
    set->used += set->slots[i] == SLOT_FREE;
    set->slots[i] = set_tag(hash) | (uint32_t)(place + 1);
}

/* Also run at the same size, to sweep out what was removed. */
static void set_rebuild(struct ml_set *set, size_t capacity)
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
        set_point_to(set, kept, ml_hash(set->key(set->entries[kept])));
        kept++;
    }
    set->filled = kept;
}

static void set_make_room(struct ml_set *set)
{
    /* At most seven eighths full, so that a probe always meets a free slot, and soon. */
    bool is_full = (set->used + 1) * 8 > set->capacity * 7;
    bool has_holes = set->filled == set->room && set->len + set->len / 4 < set->filled;
    if (is_full || has_holes) {
        bool overflow = (set->len + 1) * 4 > set->capacity * 3;
        set_rebuild(set, overflow ? ML_MAX(set->capacity * 2, SET_CAPACITY_MIN) : set->capacity);
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
    size_t i = set_find(set, key, ml_hash(key));
    return i < set->capacity ? set->entries[slot_place(set->slots[i])] : NULL;
}

void *ml_set_put(struct ml_set *set, void *entry)
{
    ml_assert(entry != NULL);
    struct ml_str key = set->key(entry);
    uint64_t hash = ml_hash(key);
    size_t i = set_find(set, key, hash);
    if (i < set->capacity) {
        void **held = &set->entries[slot_place(set->slots[i])], *former = *held;
        *held = entry;
        return former;
    }
    set_make_room(set);
    ml_assert(set->filled < PLACE_MASK);
    set->entries[set->filled] = entry;
    set_point_to(set, set->filled, hash);
    set->filled++;
    set->len++;
    return NULL;
}

void *ml_set_remove(struct ml_set *set, struct ml_str key)
{
    size_t i = set_find(set, key, ml_hash(key));
    if (i == set->capacity)
        return NULL;
    void **held = &set->entries[slot_place(set->slots[i])], *former = *held;
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
