#include "state/store.h"

#include "base/map.h"

/* The objects of one owner. Its uid's bytes, the key in `by_owner`, are those of objects[0]. */
struct dependents {
    size_t len;
    size_t capacity;
    size_t step; /* where next_owned stood last, to find its cursor without a search */
    struct ml_object *objects[];
};

struct ml_store {
    struct ml_map by_key;   /* key -> object, whose bytes the key is */
    struct ml_map by_owner; /* uid of the controller owner -> dependents */
    size_t bytes;
};

struct ml_store *ml_store_new(void)
{
    return ml_new(struct ml_store);
}

void ml_store_free(struct ml_store *store)
{
    if (!store)
        return;
    ml_map_each (&store->by_key, i, object)
        ml_object_unref(object);
    ml_map_each (&store->by_owner, j, dependents)
        free(dependents);
    ml_map_fini(&store->by_key);
    ml_map_fini(&store->by_owner);
    free(store);
}

struct ml_object *ml_store_get(const struct ml_store *store, struct ml_str key)
{
    return ml_map_get(&store->by_key, key);
}

static void index_owner(struct ml_store *store, struct ml_object *object)
{
    struct ml_owner owner;
    if (!ml_object_controller(object, &owner))
        return;
    struct dependents *of = ml_map_get(&store->by_owner, owner.uid);
    if (!of || of->len == of->capacity) {
        size_t capacity = of ? of->capacity * 2 : 1;
        size_t len = of ? of->len : 0;
        of = ml_realloc(of, sizeof *of + capacity * sizeof of->objects[0]);
        of->len = len;
        of->capacity = capacity;
        of->step = 0;
    }
    of->objects[of->len++] = object;
    ml_object_controller(of->objects[0], &owner);
    ml_map_put(&store->by_owner, owner.uid, of);
}

static void unindex_owner(struct ml_store *store, struct ml_object *object)
{
    struct ml_owner owner;
    if (!ml_object_controller(object, &owner))
        return;
    struct dependents *of = ml_map_get(&store->by_owner, owner.uid);
    ml_assert(of != NULL);
    size_t at = 0;
    while (of->objects[at] != object)
        at++;
    of->objects[at] = of->objects[--of->len];
    if (of->len == 0) {
        ml_map_remove(&store->by_owner, owner.uid);
        free(of);
        return;
    }
    /* The key's bytes must be those of an object that stays. */
    ml_object_controller(of->objects[0], &owner);
    ml_map_put(&store->by_owner, owner.uid, of);
}

struct ml_object *ml_store_put(struct ml_store *store, struct ml_object *object)
{
    ml_object_ref(object);
    struct ml_object *former = ml_map_put(&store->by_key, ml_object_key(object), object);
    if (former) {
        unindex_owner(store, former);
        store->bytes -= ml_object_bytes(former);
    }
    index_owner(store, object);
    store->bytes += ml_object_bytes(object);
    return former;
}

struct ml_object *ml_store_remove(struct ml_store *store, struct ml_str key)
{
    struct ml_object *former = ml_map_remove(&store->by_key, key);
    if (!former)
        return NULL;
    unindex_owner(store, former);
    store->bytes -= ml_object_bytes(former);
    return former;
}

struct ml_object *ml_store_next(const struct ml_store *store, size_t *cursor)
{
    return ml_map_next(&store->by_key, cursor, NULL);
}

struct ml_object *ml_store_next_owned(const struct ml_store *store, struct ml_str uid,
                                      struct ml_object **cursor)
{
    struct dependents *of = ml_map_get(&store->by_owner, uid);
    if (!of)
        return NULL;
    size_t at = 0;
    if (*cursor) {
        at = of->step < of->len && of->objects[of->step] == *cursor ? of->step : 0;
        while (at < of->len && of->objects[at] != *cursor)
            at++;
        at++;
    }
    of->step = at;
    *cursor = at < of->len ? of->objects[at] : NULL;
    return *cursor;
}

size_t ml_store_len(const struct ml_store *store)
{
    return store->by_key.len;
}

size_t ml_store_bytes(const struct ml_store *store)
{
    return store->bytes;
}
