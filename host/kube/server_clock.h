/* L3 kube. How far the clock of this machine is from the API server's, by the field Date of its
 * answers. Certificates and requeue_at depend on it.
 *
 * Date has whole seconds, and an answer takes time: each answer gives two bounds, and only what is
 * outside of both counts. So a slow answer, a suspended process or a clock that is set meanwhile
 * raises no alarm. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

#define ML_CLOCK_SKEW_MAX_NS (2 * ML_NS_PER_S)

struct ml_server_clock {
    struct ml_clock *own;
    struct ml_log *log;       /* borrowed, or NULL */
    struct ml_metric *metric; /* or NULL */
    int64_t ahead_ns; /* by how much at least our clock is ahead of the server's; below 0: behind */
    bool skewed;      /* by more than ML_CLOCK_SKEW_MAX_NS; told in the log */
};

/* `log` and `metrics` may be NULL. */
void ml_server_clock_init(struct ml_server_clock *self, struct ml_clock *own, struct ml_log *log,
                          struct ml_metrics *metrics);

/* The head of an answer, which took so long, says `date_s`, in Unix time; 0: nothing. */
void ml_server_clock_note(struct ml_server_clock *self, int64_t took_ns, int64_t date_s);

/* The server's time now, as far as it is known: our own unless they differ. */
int64_t ml_server_clock_wall(const struct ml_server_clock *self);

/* Appends a line for /readyz if they differ. */
void ml_server_clock_describe(const struct ml_server_clock *self, struct ml_buf *out);
