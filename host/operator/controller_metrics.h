/* L6 operator. What a controller counts, under controller-runtime's names, so that dashboards carry
 * over. */
#pragma once

#include "base/metrics.h"
#include "operator/reconcile.h"

struct ml_controller_metrics {
    struct ml_metric *success, *error, *requeue_after; /* controller_runtime_reconcile_total */
    struct ml_metric *errors, *terminal_errors;
    struct ml_metric *seconds;
    struct ml_metric *active, *workers_max;
    struct ml_metric *slowed;
    struct ml_metric *skipped, *read_set_bytes;
    struct ml_metric *cpu, *throttled;
    struct ml_metric *circuit_open;
};

void ml_controller_metrics_init(struct ml_controller_metrics *self, struct ml_metrics *metrics,
                                const char *controller);
void ml_controller_metrics_count(struct ml_controller_metrics *self,
                                 const struct ml_reconcile_end *end, int64_t took_ns);
