#include "base/map.h"

#include "base/hash.h"

static const char tombstone[1];

#define MAP_CAPACITY_MIN 8

static uint32_t fold(uint64_t hash)
{
    return (uint32_t)(hash ^ (hash >> 32));
}

static bool slot_is(const struct ml_map_slot *slot, struct ml_str key, uint32_t hash)
{
    return slot->key != tombstone && slot->hash == hash && slot->key_len == key.len &&
           memcmp(slot->key, key.ptr, key.len) == 0;
}

static struct ml_map_slot *find(const struct ml_map *map, struct ml_str key, uint32_t hash)
{
    if (map->capacity == 0)
        return NULL;
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct ml_map_slot *slot = &map->slots[i];
        if (!slot->key)
            return NULL;
        if (slot_is(slot, key, hash))
            return slot;
    }
}

static struct ml_map_slot *free_slot(struct ml_map *map, uint32_t hash)
{
    size_t mask = map->capacity - 1;
    size_t i = hash & mask;
    while (map->slots[i].key && map->slots[i].key != tombstone)
        i = (i + 1) & mask;
    return &map->slots[i];
}

/* Also run at the same size, to sweep tombstones out. */
static void rehash(struct ml_map *map, size_t capacity)
{
    struct ml_map old = *map;
    map->slots = ml_zalloc(capacity * sizeof(struct ml_map_slot));
    map->capacity = capacity;
    map->used = map->len;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].key && old.slots[i].key != tombstone)
            *free_slot(map, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

void ml_map_fini(struct ml_map *map)
{
    free(map->slots);
    *map = (struct ml_map){0};
}

void *ml_map_get(const struct ml_map *map, struct ml_str key)
{
    struct ml_map_slot *slot = find(map, key, fold(ml_hash(key)));
    return slot ? slot->value : NULL;
}

void *ml_map_put(struct ml_map *map, struct ml_str key, void *value)
{
    ml_assert(value != NULL);
    ml_assert(key.len <= UINT32_MAX);
    uint32_t hash = fold(ml_hash(key));
    const char *key_ptr = key.ptr ? key.ptr : "";
    struct ml_map_slot *slot = find(map, key, hash);
    if (slot) {
        void *former = slot->value;
        slot->key = key_ptr;
        slot->value = value;
        return former;
    }
    /* At most three quarters full, so that a probe always meets an empty slot. */
    if ((map->used + 1) * 4 > map->capacity * 3) {
        bool overflow = (map->len + 1) * 2 > map->capacity;
        rehash(map, overflow ? ML_MAX(map->capacity * 2, MAP_CAPACITY_MIN) : map->capacity);
    }
    slot = free_slot(map, hash);
    map->used += slot->key == NULL;
    map->len++;
    *slot = (struct ml_map_slot){key_ptr, value, (uint32_t)key.len, hash};
    return NULL;
}

void *ml_map_remove(struct ml_map *map, struct ml_str key)
{
    struct ml_map_slot *slot = find(map, key, fold(ml_hash(key)));
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
