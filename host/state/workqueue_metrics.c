#include "state/workqueue_metrics.h"

static const double duration_buckets[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                          1e-2, 1e-1, 1,    10,   100,  1000};

static struct ml_metric *counter(struct ml_metrics *metrics, const char *family, const char *help,
                                 const char *name)
{
    return ml_metric_with(
        ml_metrics_counter(metrics, family, help, ml_metric_labels("name", "controller")),
        ml_metric_labels(name, name));
}

static struct ml_metric *gauge(struct ml_metrics *metrics, const char *family, const char *help,
                               const char *name)
{
    return ml_metric_with(
        ml_metrics_gauge(metrics, family, help, ml_metric_labels("name", "controller")),
        ml_metric_labels(name, name));
}

static struct ml_metric *histogram(struct ml_metrics *metrics, const char *family, const char *help,
                                   const char *name)
{
    return ml_metric_with(ml_metrics_histogram(metrics, family, help,
                                               ml_metric_labels("name", "controller"),
                                               duration_buckets, ML_COUNT(duration_buckets)),
                          ml_metric_labels(name, name));
}

static void depth(struct ml_metrics *metrics, const char *name,
                  struct ml_metric *out[ML_PRIORITY_COUNT])
{
    static const char *const numbers[ML_PRIORITY_COUNT] = {
        [ML_PRIORITY_LOW] = "-100",
        [ML_PRIORITY_NORMAL] = "0",
    };
    struct ml_metric_family *family = ml_metrics_gauge(
        metrics, "workqueue_depth", "Keys that wait for their turn.",
        ml_metric_labels("name", "controller", "priority"));
    for (size_t i = 0; i < ML_PRIORITY_COUNT; i++)
        out[i] = ml_metric_with(family, ml_metric_labels(name, name, numbers[i]));
}

void ml_workqueue_metrics_init(struct ml_workqueue_metrics *self, struct ml_metrics *metrics,
                               const char *name)
{
    *self = (struct ml_workqueue_metrics){0};
    if (!metrics)
        return;
    self->adds = counter(metrics, "workqueue_adds_total", "Keys added.", name);
    self->retries = counter(metrics, "workqueue_retries_total",
                            "Keys added with a delay or after a failure.", name);
    depth(metrics, name, self->depth);
    self->queue_duration = histogram(metrics, "workqueue_queue_duration_seconds",
                                     "How long a key waited for its turn.", name);
    self->work_duration = histogram(metrics, "workqueue_work_duration_seconds",
                                    "How long a key was worked on.", name);
    self->unfinished = gauge(metrics, "workqueue_unfinished_work_seconds",
                             "Work under way, summed up.", name);
    self->longest_running = gauge(metrics, "workqueue_longest_running_processor_seconds",
                                  "The oldest work under way.", name);
}
