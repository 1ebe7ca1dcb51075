#include "kube/client_internal.h"

#include <stdio.h>

void ml_client_meter_init(struct ml_client_meter *meter, struct ml_metrics *metrics,
                          const char *host)
{
    if (!metrics)
        return;
    static const char *const request_labels[] = {"code", "method", "host", NULL};
    static const char *const duration_labels[] = {"verb", "host", NULL};
    static const double buckets[] = {0.005, 0.025, 0.1, 0.25, 0.5,  1.0,
                                     2.0,   4.0,   8.0, 15.0, 30.0, 60.0};
    meter->requests = ml_metrics_counter(metrics, "rest_client_requests_total",
                                         "Number of HTTP requests, partitioned by status code, "
                                         "method, and host.",
                                         request_labels);
    meter->duration = ml_metrics_histogram(metrics, "rest_client_request_duration_seconds",
                                           "Request latency in seconds until the answer's head. "
                                           "Broken down by verb, and host.",
                                           duration_labels, buckets, ML_COUNT(buckets));
    meter->host = host;
}

void ml_client_meter_count(struct ml_client_meter *meter, const char *method, int status,
                           int64_t duration_ns)
{
    if (!meter->requests)
        return;
    char code[16] = "<error>";
    if (status > 0)
        snprintf(code, sizeof code, "%d", status);
    ml_metric_add(ml_metric_with(meter->requests, ml_metric_labels(code, method, meter->host)), 1);
    ml_metric_observe(ml_metric_with(meter->duration, ml_metric_labels(method, meter->host)),
                      (double)duration_ns / (double)ML_NS_PER_S);
}
