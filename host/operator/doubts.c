#include "operator/doubts.h"

struct doubt {
    uint64_t rv; /* the cache's that a write met another than; 0: a child has gone */
    bool is_checked;
    char key[];
};

void ml_doubts_fini(struct ml_doubts *doubts)
{
    ml_map_each (&doubts->keys, cursor, doubt)
        free(doubt);
    ml_map_fini(&doubts->keys);
}

static void put(struct ml_doubts *doubts, struct ml_str key, uint64_t rv)
{
    struct doubt *doubt = ml_map_get(&doubts->keys, key);
    if (!doubt) {
        doubt = ml_zalloc(sizeof *doubt + key.len);
        doubt->rv = rv;
        memcpy(doubt->key, key.ptr, key.len);
        ml_map_put(&doubts->keys, (struct ml_str){doubt->key, key.len}, doubt);
    } else if (doubt->rv != 0) {
        doubt->rv = rv;
    }
    doubt->is_checked = false;
}

static uint64_t version(const struct ml_object *object)
{
    return ml_rv_parse(ml_object_rv(object));
}

void ml_doubts_bereft(struct ml_doubts *doubts, struct ml_str key)
{
    put(doubts, key, 0);
}

void ml_doubts_stale(struct ml_doubts *doubts, const struct ml_object *object)
{
    put(doubts, ml_object_key(object), version(object));
}

bool ml_doubts_has(const struct ml_doubts *doubts, const struct ml_object *object)
{
    const struct doubt *doubt = ml_map_get(&doubts->keys, ml_object_key(object));
    return doubt && (doubt->rv == 0 || doubt->rv == version(object));
}

void ml_doubts_checked(struct ml_doubts *doubts, struct ml_str key)
{
    struct doubt *doubt = ml_map_get(&doubts->keys, key);
    if (doubt)
        doubt->is_checked = true;
}

void ml_doubts_good(struct ml_doubts *doubts, struct ml_str key)
{
    const struct doubt *doubt = ml_map_get(&doubts->keys, key);
    if (doubt && (doubt->is_checked || doubt->rv != 0))
        ml_doubts_drop(doubts, key);
}

void ml_doubts_drop(struct ml_doubts *doubts, struct ml_str key)
{
    free(ml_map_remove(&doubts->keys, key));
}
