#include "kube/exec_metrics.h"

#include <math.h>
#include <stdio.h>

static double age_s(const struct ml_exec_metrics *self, int64_t since_ns)
{
    return (double)(ml_clock_wall(self->clock) - since_ns) / (double)ML_NS_PER_S;
}

static void collect(void *context)
{
    struct ml_exec_metrics *self = context;
    ml_metric_set(self->ttl, self->not_after_ns ? -age_s(self, self->not_after_ns) : INFINITY);
}

void ml_exec_metrics_init(struct ml_exec_metrics *self, struct ml_metrics *metrics,
                          struct ml_clock *clock)
{
    static const char *const labels[] = {"code", "call_status", NULL};
    static const double buckets[] = {600,    1800,   3600,    14400,   86400,   604800,
                                     2592e3, 7776e3, 15552e3, 31104e3, 124416e3};
    *self = (struct ml_exec_metrics){.clock = clock};
    ml_list_init(&self->collector.node);
    if (!metrics)
        return;
    self->calls = ml_metrics_counter(metrics, "rest_client_exec_plugin_call_total",
                                     "Number of runs of the exec plugin, by what came of them and "
                                     "exit code.",
                                     labels);
    self->ttl = ml_metric_only(ml_metrics_gauge(metrics, "rest_client_exec_plugin_ttl_seconds",
                                                "Seconds until the exec plugin's client "
                                                "certificate expires, +Inf when it gave none.",
                                                NULL));
    self->rotation_age = ml_metric_only(
        ml_metrics_histogram(metrics, "rest_client_exec_plugin_certificate_rotation_age",
                             "Seconds that the exec plugin's last client certificate lived before "
                             "it gave another.",
                             NULL, buckets, ML_COUNT(buckets)));
    self->collector.collect = collect;
    self->collector.context = self;
    ml_metrics_on_collect(metrics, &self->collector);
}

void ml_exec_metrics_fini(struct ml_exec_metrics *self)
{
    ml_metrics_collector_remove(&self->collector);
}

static void count(struct ml_exec_metrics *self, int code, const char *status)
{
    char text[16];
    if (!self->calls)
        return;
    snprintf(text, sizeof text, "%d", code);
    ml_metric_add(ml_metric_with(self->calls, ml_metric_labels(text, status)), 1);
}

void ml_exec_metrics_count(struct ml_exec_metrics *self, const struct ml_child_end *end)
{
    if (end->code == 0)
        count(self, 0, "no_error");
    else
        count(self, end->signo ? -1 : end->code, "plugin_execution_error");
}

void ml_exec_metrics_count_unstarted(struct ml_exec_metrics *self, const struct ml_err *err)
{
    count(self, 1, err->kind == ML_ENOT_FOUND ? "plugin_not_found_error" : "client_internal_error");
}

void ml_exec_metrics_gave(struct ml_exec_metrics *self, const struct ml_exec_credential *credential)
{
    uint64_t hash = ml_str_hash(ml_str_of(credential->cert_pem));
    if (self->rotation_age && self->not_before_ns && hash != self->cert_hash)
        ml_metric_observe(self->rotation_age, age_s(self, self->not_before_ns));
    self->cert_hash = hash;
    self->not_before_ns = credential->not_before_ns;
    self->not_after_ns = credential->not_after_ns;
}
