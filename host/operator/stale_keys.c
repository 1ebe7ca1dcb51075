#include "operator/stale_keys.h"

struct doubt {
    uint64_t rv; /* the cache's that a write met another than; 0: a child has gone */
    bool is_checked;
    char key[];
};

void ml_stale_keys_fini(struct ml_stale_keys *stale_keys)
{
    ml_map_each (&stale_keys->keys, cursor, doubt)
        free(doubt);
    ml_map_fini(&stale_keys->keys);
}

static void put(struct ml_stale_keys *stale_keys, struct ml_str key, uint64_t rv)
{
    struct doubt *doubt = ml_map_get(&stale_keys->keys, key);
    if (!doubt) {
        doubt = ml_zalloc(sizeof *doubt + key.len);
        doubt->rv = rv;
        memcpy(doubt->key, key.ptr, key.len);
        ml_map_put(&stale_keys->keys, (struct ml_str){doubt->key, key.len}, doubt);
    } else if (doubt->rv != 0) {
        doubt->rv = rv;
    }
    doubt->is_checked = false;
}

static uint64_t version(const struct ml_object *object)
{
    return ml_rv_parse(ml_object_rv(object));
}

void ml_stale_keys_child_deleted(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    put(stale_keys, key, 0);
}

void ml_stale_keys_add(struct ml_stale_keys *stale_keys, const struct ml_object *object)
{
    put(stale_keys, ml_object_key(object), version(object));
}

bool ml_stale_keys_has(const struct ml_stale_keys *stale_keys, const struct ml_object *object)
{
    const struct doubt *doubt = ml_map_get(&stale_keys->keys, ml_object_key(object));
    return doubt && (doubt->rv == 0 || doubt->rv == version(object));
}

void ml_stale_keys_checked(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    struct doubt *doubt = ml_map_get(&stale_keys->keys, key);
    if (doubt)
        doubt->is_checked = true;
}

void ml_stale_keys_reconciled(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    const struct doubt *doubt = ml_map_get(&stale_keys->keys, key);
    if (doubt && (doubt->is_checked || doubt->rv != 0))
        ml_stale_keys_drop(stale_keys, key);
}

void ml_stale_keys_drop(struct ml_stale_keys *stale_keys, struct ml_str key)
{
    free(ml_map_remove(&stale_keys->keys, key));
}
