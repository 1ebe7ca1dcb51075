/* L4 state. The trace of deletions: each object that a run deletes is logged, and told by an Event
 * on the object that the run was for. From the eleventh in a second on they are summed up: when the
 * second is over, one line for each controller, one Event for each object that runs were for. */
#pragma once

#include "base/log.h"
#include "state/recorder.h"

struct ml_deletions;

/* An object that was deleted; borrowed. */
struct ml_deletion {
    const struct ml_kind *kind; /* interned */
    struct ml_str ns, name;
    const char *why;        /* "no longer returned by site.lua:88" */
    const char *controller; /* that deleted it */
    const char *revision;
    const struct ml_kind *owner_kind; /* of the object that the run was for; interned */
    struct ml_object *owner;
};

#define ML_DELETIONS_ALONE 10 /* in a second, of all controllers together */
#define ML_DELETIONS_OWNERS                                                                        \
    200 /* that get an Event with a sum, in a second: fewer than a script may have waiting */

struct ml_deletions *ml_deletions_new(struct ml_loop *loop, struct ml_log *log,
                                      struct ml_recorder *recorder);
/* One that tells nobody but `heard`, of each: for a plan. */
struct ml_deletions *ml_deletions_new_heard(void (*heard)(void *context,
                                                          const struct ml_deletion *deletion),
                                            void *context);
/* Tells the sums that are left. NULL is fine. */
void ml_deletions_free(struct ml_deletions *deletions);

/* NULL, where nobody asks, is fine. */
void ml_deletions_note(struct ml_deletions *deletions, const struct ml_deletion *deletion);
/* Tells the sums now, as at the end of the second: for shutdown. NULL is fine. */
void ml_deletions_flush(struct ml_deletions *deletions);
