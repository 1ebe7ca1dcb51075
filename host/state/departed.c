#include "state/departed.h"

#include "kube/object.h"

struct departed_object {
    size_t uid_len, rv_len;
    char bytes[]; /* uid, rv */
};

static struct ml_str uid_of(const struct departed_object *object)
{
    return (struct ml_str){object->bytes, object->uid_len};
}

static void forget(struct departed *departed, size_t at)
{
    struct departed_object *object = departed->ring[at];
    if (!object)
        return;
    if (ml_map_get(&departed->by_uid, uid_of(object)) == object)
        ml_map_remove(&departed->by_uid, uid_of(object));
    free(object);
    departed->ring[at] = NULL;
}

void departed_fini(struct departed *departed)
{
    for (size_t i = 0; i < DEPARTED_MAX; i++)
        forget(departed, i);
    ml_map_fini(&departed->by_uid);
}

void departed_put(struct departed *departed, struct ml_str uid, struct ml_str rv)
{
    struct departed_object *object = ml_alloc(sizeof *object + uid.len + rv.len);
    object->uid_len = uid.len;
    object->rv_len = rv.len;
    memcpy(object->bytes, uid.ptr, uid.len);
    memcpy(object->bytes + uid.len, rv.ptr, rv.len);
    forget(departed, departed->next);
    departed->ring[departed->next] = object;
    departed->next = (departed->next + 1) % DEPARTED_MAX;
    ml_map_put(&departed->by_uid, uid_of(object), object);
}

bool departed_has(const struct departed *departed, struct ml_str uid, struct ml_str rv)
{
    const struct departed_object *object = ml_map_get(&departed->by_uid, uid);
    if (!object)
        return false;
    return ml_rv_older(rv, (struct ml_str){object->bytes + object->uid_len, object->rv_len});
}
