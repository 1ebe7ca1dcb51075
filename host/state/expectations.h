/* L4 state. Read your own writes (KEP-5647, per object): remembers what each reconciled key
 * wrote, and holds its next reconcile back until the caches show all of it, whatever its kind. No
 * timer opens it: a cache that lags is overtaken by a read of the object (write_wait.h). */
#pragma once

#include "state/write_wait.h"

struct ml_expectations;

struct ml_expectations *ml_expectations_new(struct ml_loop *loop, struct ml_metrics *metrics,
                                            const char *controller);
void ml_expectations_free(struct ml_expectations *expectations);

/* A write of ns/name for `key` was answered with `rv` (ML_RV_OPAQUE is ignored), in the kind of
 * `informer` (NULL, a kind nobody watches, is ignored: it is read from the server anyway). */
void ml_expectations_wrote(struct ml_expectations *expectations, struct ml_str key,
                           struct ml_informer *informer, struct ml_str ns, struct ml_str name,
                           uint64_t rv);

/* Every write that ml_expectations_wrote is told of, but those that are ignored, goes to `wrote` as
 * well: for who wants to know an own write when it comes back on the watch. `shown`: the cache has
 * it already. */
typedef void ml_expectations_write(void *context, struct ml_str key,
                                   const struct ml_informer *informer, uint64_t rv, bool shown);
void ml_expectations_on_write(struct ml_expectations *expectations, ml_expectations_write *wrote,
                              void *context);

/* True when `key` may be reconciled now. Otherwise `ready(context, key)` comes once, from the
 * loop, when it may; asking again meanwhile changes nothing. Counts stale_sync_skips_total. */
bool ml_expectations_satisfied(struct ml_expectations *expectations, struct ml_str key,
                               void (*ready)(void *context, struct ml_str key), void *context);

void ml_expectations_clear(struct ml_expectations *expectations,
                           struct ml_str key); /* the object is gone */
/* Drops what waits on an informer that is about to be given back; its keys become free. */
void ml_expectations_drop_informer(struct ml_expectations *expectations,
                                   struct ml_informer *informer);
