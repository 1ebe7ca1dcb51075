/* L4 state. The objects of one kind by key, with an index from owner to dependents. Holds one
 * reference to each object; readers borrow it and take their own to keep it. */
#pragma once

#include "base/map.h"
#include "kube/object.h"

struct ml_store;

struct ml_store *ml_store_new(void);
void ml_store_free(struct ml_store *store);

struct ml_object *ml_store_get(const struct ml_store *store, struct ml_str key); /* borrowed */

/* Puts an object, and replaces the one with the same key. Takes its own reference. Returns the
 * former object, whose reference goes to the caller, or NULL. */
struct ml_object *ml_store_put(struct ml_store *store, struct ml_object *object);
struct ml_object *ml_store_remove(struct ml_store *store, struct ml_str key);

/* Steps through all objects; start with *cursor 0. The order is not defined: callers that show a
 * list sort it by key. */
struct ml_object *ml_store_next(const struct ml_store *store, size_t *cursor);

/* Steps through the objects whose controller owner has `uid`, likewise, while none comes or goes.
 */
struct ml_object *ml_store_next_owned(const struct ml_store *store, struct ml_str uid,
                                      size_t *cursor);

size_t ml_store_len(const struct ml_store *store);
size_t ml_store_bytes(const struct ml_store *store); /* sum of ml_object_bytes */
