#include "state/tombstones.h"

#include "kube/object.h"

struct tombstone {
    size_t uid_len, rv_len;
    char bytes[]; /* uid, rv */
};

static struct ml_str uid_of(const struct tombstone *object)
{
    return (struct ml_str){object->bytes, object->uid_len};
}

static void forget(struct tombstones *tombstones, size_t at)
{
    struct tombstone *object = tombstones->ring[at];
    if (!object)
        return;
    if (ml_map_get(&tombstones->by_uid, uid_of(object)) == object)
        ml_map_remove(&tombstones->by_uid, uid_of(object));
    free(object);
    tombstones->ring[at] = NULL;
}

void tombstones_fini(struct tombstones *tombstones)
{
    for (size_t i = 0; i < TOMBSTONES_MAX; i++)
        forget(tombstones, i);
    ml_map_fini(&tombstones->by_uid);
}

void tombstones_put(struct tombstones *tombstones, struct ml_str uid, struct ml_str rv)
{
    struct tombstone *object = ml_alloc(sizeof *object + uid.len + rv.len);
    object->uid_len = uid.len;
    object->rv_len = rv.len;
    memcpy(object->bytes, uid.ptr, uid.len);
    memcpy(object->bytes + uid.len, rv.ptr, rv.len);
    forget(tombstones, tombstones->next);
    tombstones->ring[tombstones->next] = object;
    tombstones->next = (tombstones->next + 1) % TOMBSTONES_MAX;
    ml_map_put(&tombstones->by_uid, uid_of(object), object);
}

bool tombstones_has(const struct tombstones *tombstones, struct ml_str uid, struct ml_str rv)
{
    const struct tombstone *object = ml_map_get(&tombstones->by_uid, uid);
    if (!object)
        return false;
    return ml_rv_older(rv, (struct ml_str){object->bytes + object->uid_len, object->rv_len});
}
