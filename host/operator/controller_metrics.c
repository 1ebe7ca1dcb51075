/* The metrics of a controller: made by controller.c, counted by controller_work.c. */
#include "operator/controller_metrics.h"

static const double reconcile_buckets[] = {
    .005, .01, .025, .05, .1,  .15, .2,  .25, .3, .35, .4, .45, .5, .6, .7, .8, .9, 1,  1.25, 1.5,
    1.75, 2,   2.5,  3,   3.5, 4,   4.5, 5,   6,  7,   8,  9,   10, 15, 20, 25, 30, 40, 50,   60,
};

void ml_controller_metrics_init(struct ml_controller_metrics *self, struct ml_metrics *metrics,
                                const char *controller)
{
    const char *const *by_result = ml_metric_labels("controller", "result");
    const char *const *by_controller = ml_metric_labels("controller");
    const char *const *mine = ml_metric_labels(controller);
    struct ml_metric_family *total = ml_metrics_counter(
        metrics, "controller_runtime_reconcile_total", "Reconciles by controller and result.",
        by_result);
    self->success = ml_metric_with(total, ml_metric_labels(controller, "success"));
    self->error = ml_metric_with(total, ml_metric_labels(controller, "error"));
    self->requeue_after = ml_metric_with(total, ml_metric_labels(controller, "requeue_after"));
    self->errors = ml_metric_with(ml_metrics_counter(metrics,
                                                     "controller_runtime_reconcile_errors_total",
                                                     "Reconciles that failed.", by_controller),
                                  mine);
    self->terminal_errors = ml_metric_with(
        ml_metrics_counter(metrics, "controller_runtime_terminal_reconcile_errors_total",
                           "Reconciles that failed and are not tried again.", by_controller),
        mine);
    self->seconds = ml_metric_with(
        ml_metrics_histogram(metrics, "controller_runtime_reconcile_time_seconds",
                             "Length of a reconcile, waiting for the API server included.",
                             by_controller, reconcile_buckets, ML_COUNT(reconcile_buckets)),
        mine);
    self->active = ml_metric_with(ml_metrics_gauge(metrics, "controller_runtime_active_workers",
                                                   "Reconciles under way.", by_controller),
                                  mine);
    self->workers_max = ml_metric_with(
        ml_metrics_gauge(metrics, "controller_runtime_max_concurrent_reconciles",
                         "Reconciles that may be under way at once.", by_controller),
        mine);
    self->slowed = ml_metric_with(
        ml_metrics_counter(metrics, "moonloop_self_triggers_slowed_total",
                           "Reconciles put off because the script keeps waking itself.",
                           by_controller),
        mine);
    self->skipped = ml_metric_with(
        ml_metrics_counter(metrics, "moonloop_wakeups_skipped_total",
                           "Changes that woke nobody: the last reconcile read nothing of it.",
                           by_controller),
        mine);
    self->read_set_bytes = ml_metric_with(
        ml_metrics_gauge(metrics, "moonloop_read_set_bytes",
                         "Memory for what the last reconcile of each object read.", by_controller),
        mine);
    self->cpu = ml_metric_with(ml_metrics_counter(metrics, "moonloop_script_cpu_seconds_total",
                                                  "CPU time that code of the script took.",
                                                  by_controller),
                               mine);
    self->circuit_open = ml_metric_with(
        ml_metrics_gauge(metrics, "moonloop_controller_circuit_open",
                         "1 while the script is held back since it runs into its limits.",
                         by_controller),
        mine);
    self->throttled = ml_metric_with(
        ml_metrics_counter(metrics, "moonloop_script_throttled_total",
                           "Times that the script had used more than its share of the CPU.",
                           by_controller),
        mine);
}

void ml_controller_metrics_count(struct ml_controller_metrics *self,
                                 const struct ml_reconcile_end *end, int64_t took_ns)
{
    ml_metric_observe(self->seconds, (double)took_ns / (double)ML_NS_PER_S);
    if (end->outcome == ML_OUTCOME_OK) {
        bool timed = end->requeue_after_ns >= 0 || end->requeue_at_ns >= 0;
        ml_metric_add(timed ? self->requeue_after : self->success, 1);
        return;
    }
    ml_metric_add(self->error, 1);
    ml_metric_add(self->errors, 1);
    if (end->outcome != ML_OUTCOME_ERROR)
        ml_metric_add(self->terminal_errors, 1);
}
