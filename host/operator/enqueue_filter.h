/* L6 operator. Why a key wakes. What its own reconcile wrote comes back on the watch: the
 * expectations tell such an echo from what others did.
 *
 *   a change by others      wakes the key, unless what its last run read is as it was
 *                           (read_sets.h)
 *   an echo of status only  does not: the script has just said so itself
 *   any other echo          wakes it, as it did not see that yet; but a key of which run after
 *                           run changes the same field is slowed: the first 20 go on at once,
 *                           then the pause is 1 s, doubling to 1000 s, until a run writes
 *                           nothing or something else. One that asks to be called again
 *                           within a second wakes itself likewise, with whatever it writes
 *
 * A key of which run after run asks to be called again at once (within 10 ms) takes a whole core
 * for nothing, though it changes nothing: the first 100 go on, then the pause is 10 ms, doubling to
 * 1 s.
 *
 * A change may arrive before the answer to the write that made it. So what arrives while a key is
 * under way is held until the run is over, when all answers are known. */
#pragma once

#include "state/expectations.h"

struct ml_enqueue_filter;

/* What came on a watch; objects as in ml_listener, borrowed. */
struct ml_change {
    const struct ml_informer *informer;
    struct ml_object *old, *new;
    bool reconciled;    /* it is the key's own object, not one that concerns it */
    bool child_deleted; /* a child of the key has gone */
    uint64_t number;    /* ml_informer_changes when it came */
};

struct ml_enqueue_filter_handler {
    /* The key is to be reconciled, after that delay; 0: now. `change` is what wakes it; NULL: too
     * many came to say which. */
    void (*wake)(void *context, struct ml_str key, const struct ml_change *change,
                 int64_t delay_ns);
    /* Can this change by somebody else bring the key to another result? `own_status`: it is the
     * status that its last run returned; what comes of it does not count. And after changes that
     * cannot: is that certain? Both NULL: every change can. */
    bool (*matters)(void *context, struct ml_str key, const struct ml_change *change,
                    bool own_status);
    bool (*uncertain)(void *context, struct ml_str key);
    /* A change, or what came during a run, did not wake the key. NULL: nobody counts. */
    void (*skipped)(void *context, struct ml_str key);
    /* It is slowed; wake comes as well. `fields`: "ConfigMap d/a: data.time". */
    void (*slowed)(void *context, struct ml_str key, const char *fields, int64_t delay_ns);
    /* It asks to be called again at once, and is slowed from now on; told once, until it has asked
     * for something else. NULL: that is left alone. */
    void (*hot)(void *context, struct ml_str key);
};

/* `expectations` outlives it. */
struct ml_enqueue_filter *ml_enqueue_filter_new(struct ml_loop *loop,
                                                struct ml_expectations *expectations,
                                                const struct ml_enqueue_filter_handler *handler,
                                                void *context);
void ml_enqueue_filter_free(struct ml_enqueue_filter *filter); /* NULL is fine */

/* A change concerns the key: the one way in. Tells the expectations of a child that has gone. */
void ml_enqueue_filter_changed(struct ml_enqueue_filter *filter, struct ml_str key,
                               const struct ml_change *change);

/* The run of a key, from its beginning (when the caches show all that it wrote before) to its
 * end, of which the expectations are told after this. */
void ml_enqueue_filter_begun(struct ml_enqueue_filter *filter, struct ml_str key);
/* The run wants to be called again after `delay_ns`; returns after how long it may be. */
int64_t ml_enqueue_filter_restrain(struct ml_enqueue_filter *filter, struct ml_str key,
                                   int64_t delay_ns);
void ml_enqueue_filter_ended(struct ml_enqueue_filter *filter, struct ml_str key);

/* The object of the key is gone. */
void ml_enqueue_filter_gone(struct ml_enqueue_filter *filter, struct ml_str key);
/* There is a new script: no key is slowed any more. */
void ml_enqueue_filter_reset_backoff(struct ml_enqueue_filter *filter);
/* How many keys it knows something about. */
size_t ml_enqueue_filter_len(const struct ml_enqueue_filter *filter);
