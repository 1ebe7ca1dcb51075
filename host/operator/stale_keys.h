/* L6 operator. Keys whose cached object may be stale: one whose child has gone, since its owner may
 * have gone before, and one whose write met another version than the cache's. As long as the cache
 * shows no newer one, the server is asked for the object itself before each reconcile: is it still
 * there, and does it stay?
 * Caches of two kinds are not of the same moment: when a child has gone, its owner may have gone
 * before, and another one of its name may be there, while the cache still shows the old one.
 * Whoever makes the child again for that one has its work done twice. Follows client-go's rule
 * before an adoption (kubernetes/pkg/controller/controller_ref_manager.go,
 * RecheckDeletionTimestamp). */
#pragma once

#include "base/map.h"
#include "kube/client.h"
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
/* A reconcile was good. A child that has gone during it leaves the key stale. */
void ml_stale_keys_reconciled(struct ml_stale_keys *stale_keys, struct ml_str key);
/* The object is gone: forgets its key. */
void ml_stale_keys_drop(struct ml_stale_keys *stale_keys, struct ml_str key);

struct ml_live_read;

/* `err` NULL: it is there, with this uid, and nobody deletes it. ML_ECONFLICT: not so; else why
 * that could not be learned. The read is over when it returns. */
typedef void ml_live_read_done(void *context, const struct ml_err *err);

/* `object` is of `kind`, and is not held. `done` comes later from the loop, never inside this call.
 */
struct ml_live_read *ml_live_read_start(struct ml_client *client, const struct ml_kind *kind,
                                        const struct ml_object *object, ml_live_read_done *done,
                                        void *context);
void ml_live_read_cancel(struct ml_live_read *live_read); /* done comes no more; NULL is fine */
