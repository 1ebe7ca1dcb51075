/* L6 operator. Of which keys the cache may show what is no more: one whose child has gone, as its
 * owner may have gone before, and one whose write met another version than the cache's. As long as
 * the cache shows no newer one, the server is asked for the object itself before each reconcile
 * (live_read.h). */
#pragma once

#include "base/map.h"
#include "kube/object.h"

struct ml_stale_keys { /* zero is none */
    struct ml_map keys;
};

void ml_stale_keys_fini(struct ml_stale_keys *stale_keys);

/* A child of the key has gone. */
void ml_stale_keys_child_deleted(struct ml_stale_keys *stale_keys, struct ml_str key);
/* A write met another version than this one, the cache's. */
void ml_stale_keys_add(struct ml_stale_keys *stale_keys, const struct ml_object *object);
bool ml_stale_keys_has(const struct ml_stale_keys *stale_keys, const struct ml_object *object);

/* The server has shown the object: when the reconcile that follows is good, it is trusted. */
void ml_stale_keys_checked(struct ml_stale_keys *stale_keys, struct ml_str key);
/* A reconcile was good. A child that has gone during it stays a doubt. */
void ml_stale_keys_reconciled(struct ml_stale_keys *stale_keys, struct ml_str key);
/* The object is gone, and the doubt with it. */
void ml_stale_keys_drop(struct ml_stale_keys *stale_keys, struct ml_str key);
