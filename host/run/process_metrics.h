/* L6 run. What Prometheus clients tell of their own process. */
#pragma once

#include "base/metrics.h"

/* process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds, read from /proc
 * at each collection. */
void ml_process_metrics_register(struct ml_metrics *metrics);
