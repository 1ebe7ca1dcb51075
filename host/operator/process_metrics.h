/* L6 operator. What Prometheus clients tell of their own process. */
#pragma once

#include "base/log.h"
#include "base/metrics.h"

struct ml_process_metrics {
    struct ml_metrics *metrics;
    const struct ml_log *log;
    struct ml_metrics_collector collector;
};

/* process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds and process_max_fds,
 * read from /proc at each collection; and the lines that `log` (borrowed) could not write. */
void ml_process_metrics_init(struct ml_process_metrics *self, struct ml_metrics *metrics,
                             const struct ml_log *log);
void ml_process_metrics_fini(struct ml_process_metrics *self); /* fine on a zeroed one */
