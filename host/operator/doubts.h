/* L6 operator. Of which keys the cache may show what is no more: one whose child has gone, as its owner
 * may have gone before, and one whose write met another version than the cache's. As long as the
 * cache shows no newer one, the server is asked for the object itself before each reconcile
 * (recheck.h). */
#pragma once

#include "base/map.h"
#include "kube/object.h"

struct ml_doubts { /* zero is none */
    struct ml_map keys;
};

void ml_doubts_fini(struct ml_doubts *doubts);

/* A child of the key has gone. */
void ml_doubts_bereft(struct ml_doubts *doubts, struct ml_str key);
/* A write met another version than this one, the cache's. */
void ml_doubts_stale(struct ml_doubts *doubts, const struct ml_object *object);
bool ml_doubts_has(const struct ml_doubts *doubts, const struct ml_object *object);

/* The server has shown the object: when the reconcile that follows is good, it is trusted. */
void ml_doubts_checked(struct ml_doubts *doubts, struct ml_str key);
/* A reconcile was good. A child that has gone during it stays a doubt. */
void ml_doubts_good(struct ml_doubts *doubts, struct ml_str key);
/* The object is gone, and the doubt with it. */
void ml_doubts_drop(struct ml_doubts *doubts, struct ml_str key);
