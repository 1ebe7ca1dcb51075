/* L4 state. Read your own writes (KEP-5647, per object): remembers what each reconciled key wrote,
 * and holds back its next reconcile until the caches show all of these writes, whatever their kind.
 * No timer ends this; when a cache lags, the object is read from the server (write_wait.h). */
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

/* Calls `wrote` for each write passed to ml_expectations_wrote that is not ignored, so that the
 * caller can recognise its own write when the watch brings it. `shown`: the cache has it already.
 */
typedef void ml_expectations_write(void *context, struct ml_str key,
                                   const struct ml_informer *informer, uint64_t rv, bool shown);
void ml_expectations_on_write(struct ml_expectations *expectations, ml_expectations_write *wrote,
                              void *context);

/* True when all expectations of `key` are met, so that it may be reconciled now. Otherwise
 * `ready(context, key)` is called once, from the loop, when they are; asking again meanwhile
 * changes nothing. Counts stale_sync_skips_total. */
bool ml_expectations_satisfied(struct ml_expectations *expectations, struct ml_str key,
                               void (*ready)(void *context, struct ml_str key), void *context);

void ml_expectations_clear(struct ml_expectations *expectations,
                           struct ml_str key); /* the object is gone */
/* Drops all expectations on an informer that is about to be given back. */
void ml_expectations_drop_informer(struct ml_expectations *expectations,
                                   struct ml_informer *informer);
