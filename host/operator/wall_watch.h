/* L6 operator. Notices that the wall clock was set, or has drifted: instants that were turned into
 * delays are then wrong. The kernel tells a process so only by a descriptor of its own; a look each
 * ten seconds costs nothing, and works on every clock. */
#pragma once

#include "net/loop.h"

struct ml_wall_watch {
    struct ml_timer timer;
    int64_t ahead_ns; /* of the wall clock over the monotonic one, as last told */
    /* By how much, above 0: it is later than it seemed. */
    void (*jumped)(void *context, int64_t delta_ns);
    void *context;
};

/* Tells each time it is wrong by more than half a second since it began, or since it was told
 * last. */
void ml_wall_watch_start(struct ml_wall_watch *watch, struct ml_loop *loop,
                         void (*jumped)(void *context, int64_t delta_ns), void *context);
void ml_wall_watch_stop(struct ml_wall_watch *watch); /* fine on one that never began, zeroed */
