/* L4 state. What a queue counts, under client-go's names; the depth by priority, as
 * controller-runtime has it. */
#pragma once

#include "state/workqueue.h"

struct ml_workqueue_metrics {
    struct ml_metric *adds, *retries;
    struct ml_metric *depth[ML_PRIORITY_COUNT];
    struct ml_metric *queue_duration, *work_duration;
    struct ml_metric *unfinished, *longest_running;
};

/* `metrics` NULL: counts into nothing, all pointers NULL. */
void ml_workqueue_metrics_init(struct ml_workqueue_metrics *self, struct ml_metrics *metrics,
                               const char *name);
