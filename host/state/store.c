/* The objects of an informer. */
#include "state/store.h"

#include "base/map.h"

/* The objects of one owner that has several. */
struct dependents {
    size_t len;
    size_t capacity;
    struct ml_object *objects[];
};

/* An owner's entry in `by_owner`: usually its only object; else its dependents, marked in the
 * lowest bit of the pointer, which malloc never sets. */
#define SEVERAL 1u

struct ml_store {
    struct ml_set by_key;   /* of objects */
    struct ml_set by_owner; /* of owners' entries, by the uid of the controller owner */
    size_t bytes;
};

static struct dependents *dependents_in(const void *entry)
{
    return (uintptr_t)entry & SEVERAL ? (void *)((uintptr_t)entry - SEVERAL) : NULL;
}

static void *entry_of_dependents(struct dependents *of)
{
    return (void *)((uintptr_t)of + SEVERAL);
}

static struct ml_str store_object_key(const void *entry)
{
    return ml_object_key(entry);
}

static struct ml_str store_owner_uid(const void *entry)
{
    const struct dependents *of = dependents_in(entry);
    struct ml_owner owner = {0};
    ml_object_controller(of ? of->objects[0] : entry, &owner);
    return owner.uid;
}

struct ml_store *ml_store_new(void)
{
    struct ml_store *store = ml_new(struct ml_store);
    store->by_key.key = store_object_key;
    store->by_owner.key = store_owner_uid;
    return store;
}

void ml_store_free(struct ml_store *store)
{
    if (!store)
        return;
    ml_set_each (&store->by_owner, i, entry)
        free(dependents_in(entry));
    ml_set_each (&store->by_key, j, object)
        ml_object_unref(object);
    ml_set_fini(&store->by_key);
    ml_set_fini(&store->by_owner);
    free(store);
}

struct ml_object *ml_store_get(const struct ml_store *store, struct ml_str key)
{
    return ml_set_get(&store->by_key, key);
}

/* A copy with room for twice as many. The entry stays: the set reads its key until the copy
 * replaces it. */
static struct dependents *dependents_grow(const void *entry)
{
    const struct dependents *old = dependents_in(entry);
    size_t len = old ? old->len : 1;
    struct dependents *of = ml_alloc(sizeof *of + 2 * len * sizeof of->objects[0]);
    *of = (struct dependents){.len = len, .capacity = 2 * len};
    for (size_t i = 0; i < len; i++)
        of->objects[i] = old ? old->objects[i] : (struct ml_object *)entry;
    return of;
}

static void store_index_owner(struct ml_store *store, struct ml_object *object)
{
    struct ml_owner owner;
    if (!ml_object_controller(object, &owner))
        return;
    void *entry = ml_set_get(&store->by_owner, owner.uid);
    if (!entry) {
        ml_set_put(&store->by_owner, object);
        return;
    }
    struct dependents *of = dependents_in(entry);
    if (!of || of->len == of->capacity) {
        of = dependents_grow(entry);
        free(dependents_in(ml_set_put(&store->by_owner, entry_of_dependents(of))));
    }
    of->objects[of->len++] = object;
}

static void store_unindex_owner(struct ml_store *store, struct ml_object *object)
{
    struct ml_owner owner;
    if (!ml_object_controller(object, &owner))
        return;
    void *entry = ml_set_get(&store->by_owner, owner.uid);
    ml_assert(entry != NULL);
    struct dependents *of = dependents_in(entry);
    if (!of) {
        ml_set_remove(&store->by_owner, owner.uid);
        return;
    }
    size_t at = 0;
    while (of->objects[at] != object)
        at++;
    of->objects[at] = of->objects[--of->len];
    if (of->len == 0) {
        ml_set_remove(&store->by_owner, owner.uid);
        free(of);
    }
}

struct ml_object *ml_store_put(struct ml_store *store, struct ml_object *object)
{
    ml_object_ref(object);
    struct ml_object *former = ml_set_put(&store->by_key, object);
    if (former) {
        store_unindex_owner(store, former);
        store->bytes -= ml_object_bytes(former);
    }
    store_index_owner(store, object);
    store->bytes += ml_object_bytes(object);
    return former;
}

struct ml_object *ml_store_remove(struct ml_store *store, struct ml_str key)
{
    struct ml_object *former = ml_set_remove(&store->by_key, key);
    if (!former)
        return NULL;
    store_unindex_owner(store, former);
    store->bytes -= ml_object_bytes(former);
    return former;
}

struct ml_object *ml_store_next(const struct ml_store *store, size_t *cursor)
{
    return ml_set_next(&store->by_key, cursor);
}

struct ml_object *ml_store_next_owned(const struct ml_store *store, struct ml_str uid,
                                      size_t *cursor)
{
    void *entry = ml_set_get(&store->by_owner, uid);
    const struct dependents *of = dependents_in(entry);
    size_t len = of ? of->len : entry != NULL;
    if (*cursor >= len)
        return NULL;
    size_t at = (*cursor)++;
    return of ? of->objects[at] : entry;
}

size_t ml_store_len(const struct ml_store *store)
{
    return store->by_key.len;
}

size_t ml_store_bytes(const struct ml_store *store)
{
    return store->bytes;
}
