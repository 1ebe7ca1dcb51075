/* L6 operator. Decides which changes wake a key. A write of the key's own reconcile comes back on
 * the watch as an echo: the expectations distinguish it from changes by others.
 *
 *   a change by others      wakes the key, unless nothing that its last run read has changed
 *                           (read_sets.h)
 *   an echo of status only  does not wake it: the script itself returned this status
 *   any other echo          wakes it, because the script has not seen it yet. If each run changes
 *                           the same field again, the key is slowed: the first 20 runs follow at
 *                           once, then the pause is 1 s, doubling to 1000 s, until a run writes
 *                           nothing or something else. A run that asks to be called again
 *                           within a second counts in the same way, whatever it writes
 *
 * Two controllers of this process that change the same fields of one object in turn are found in
 * the same way, each by its own filter: it counts the runs after which it changed what the other
 * one had changed. Then each waits so long before it answers the other's change.
 *
 * A key whose runs all ask to be called again at once (within 10 ms) would use a whole core without
 * changing anything: the first 100 runs follow at once, then the pause is 10 ms, doubling to 1 s.
 *
 * A change may arrive before the answer to the write that made it. So changes that arrive while a
 * key's run is under way are held until it has ended, when all answers are known. */
#pragma once

#include "state/expectations.h"

struct ml_enqueue_filter;

/* A change from a watch; objects as in ml_listener, borrowed. */
struct ml_change {
    const struct ml_informer *informer;
    struct ml_object *old, *new;
    bool reconciled;    /* it is the key's own object, not a related one */
    bool child_deleted; /* a child of the key was deleted */
    uint64_t number;    /* ml_informer_changes when it came */
};

/* A copy that holds the objects, until ml_change_unref. */
struct ml_change ml_change_ref(const struct ml_change *change);
void ml_change_unref(const struct ml_change *copy);

struct ml_enqueue_filter_handler {
    /* Reconcile the key after that delay; 0: now. `change` wakes it; NULL: there were too many
     * changes to name one. */
    void (*wake)(void *context, struct ml_str key, const struct ml_change *change,
                 int64_t delay_ns);
    /* Can this change by somebody else bring the key to another result? `own_status`: it is the
     * status that its last run returned; what comes of it does not count. And after changes that
     * cannot: is that uncertain? If not, the key is not woken by them. */
    bool (*matters)(void *context, struct ml_str key, const struct ml_change *change,
                    bool own_status);
    bool (*uncertain)(void *context, struct ml_str key);
    /* Which other controller of this process made the change? NULL: none, or that is not known. The
     * function may be NULL. The name is copied. */
    const char *(*rival)(void *context, const struct ml_change *change);
    /* It is slowed; wake comes as well. `fields`: "ConfigMap d/a: data.time". `rival`: the other
     * controller that changes them in turn; NULL: it wakes itself. */
    void (*slowed)(void *context, struct ml_str key, const char *fields, const char *rival,
                   int64_t delay_ns);
    /* Its runs ask to be called again at once, and are slowed from now on. Called once, until a run
     * asks for something else. NULL: such keys are not slowed. */
    void (*hot)(void *context, struct ml_str key);
};

/* `expectations` outlives it; `handler` is copied. */
struct ml_enqueue_filter *ml_enqueue_filter_new(struct ml_loop *loop,
                                                struct ml_expectations *expectations,
                                                const struct ml_enqueue_filter_handler *handler,
                                                void *context);
void ml_enqueue_filter_free(struct ml_enqueue_filter *filter); /* NULL is fine */

/* A change concerns the key: every change comes through here. Reports a deleted child to the
 * expectations. */
void ml_enqueue_filter_changed(struct ml_enqueue_filter *filter, struct ml_str key,
                               const struct ml_change *change);

/* The run of a key, from its beginning (when the caches show all that it wrote before) to its
 * end; the caller reports the end to the expectations after this. */
void ml_enqueue_filter_begun(struct ml_enqueue_filter *filter, struct ml_str key);
/* The run asks to be called again after `delay_ns`; returns the delay that it gets. */
int64_t ml_enqueue_filter_restrain(struct ml_enqueue_filter *filter, struct ml_str key,
                                   int64_t delay_ns);
void ml_enqueue_filter_ended(struct ml_enqueue_filter *filter, struct ml_str key);

/* The object of the key was deleted. */
void ml_enqueue_filter_gone(struct ml_enqueue_filter *filter, struct ml_str key);
/* There is a new script: no key is slowed any more. */
void ml_enqueue_filter_reset_backoff(struct ml_enqueue_filter *filter);
/* The number of keys that it has state for. */
size_t ml_enqueue_filter_len(const struct ml_enqueue_filter *filter);
