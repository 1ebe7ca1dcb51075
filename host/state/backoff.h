/* L4 state. Growing delays between failures: 800 ms doubling to 30 s, each drawn from once to
 * twice that (client-go's reflector); back to the start after two minutes without a failure
 * (kube-rs), and whenever its owner zeroes it, because what had failed works. */
#pragma once

#include "base/clock.h"
#include "base/random.h"

struct ml_backoff {
    int64_t delay_ns; /* of the next failure, before jitter; 0: the first */
    int64_t last_ns;  /* when the last delay ended, monotonic */
};

/* How long to wait after one more failure. */
int64_t ml_backoff_next(struct ml_backoff *backoff, struct ml_random *random, int64_t now_ns);
