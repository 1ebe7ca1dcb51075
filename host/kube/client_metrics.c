/* What is counted and logged of the client's requests. Used by client.c. */
#include "kube/client_internal.h"

#include <stdio.h>

#define WARNINGS_MAX 256
#define NO_ANSWER    "<error>" /* client-go's word */

/* Answers of trouble are there at 0 from the start: increase() sees the first one. */
static void register_troubles(const struct ml_client_metrics *self)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    static const char *const codes[] = {"401", "403", "429", "500", "502", "503", "504", NO_ANSWER};
    for (size_t i = 0; i < ML_COUNT(methods); i++)
        for (size_t j = 0; j < ML_COUNT(codes); j++)
            (void)ml_metric_with(self->requests,
                                 ml_metric_labels(codes[j], methods[i], self->host));
}

void ml_client_metrics_init(struct ml_client_metrics *self, const struct ml_client_opts *opts)
{
    static const char *const request_labels[] = {"code", "method", "host", NULL};
    static const char *const duration_labels[] = {"verb", "host", NULL};
    static const double buckets[] = {0.005, 0.025, 0.1, 0.25, 0.5,  1.0,
                                     2.0,   4.0,   8.0, 15.0, 30.0, 60.0};
    struct ml_metrics *metrics = opts->metrics;
    *self = (struct ml_client_metrics){.host = opts->transport->host, .log = opts->log};
    if (!metrics)
        return;
    self->requests = ml_metrics_counter(metrics, "rest_client_requests_total",
                                        "Number of HTTP requests, partitioned by status code, "
                                        "method, and host.",
                                        request_labels);
    self->duration = ml_metrics_histogram(metrics, "rest_client_request_duration_seconds",
                                          "Request latency in seconds until the answer's head. "
                                          "Broken down by verb, and host.",
                                          duration_labels, buckets, ML_COUNT(buckets));
    register_troubles(self);
    self->waiting = ml_metric_only(
        ml_metrics_gauge(metrics, "moonloop_requests_waiting",
                         "Requests that wait for a place, or for the end of a pause.", NULL));
}

void ml_client_metrics_fini(struct ml_client_metrics *self)
{
    ml_map_each (&self->warnings, cursor, text)
        free(text);
    ml_map_fini(&self->warnings);
}

void ml_client_metrics_attempt(const struct ml_client_metrics *self, const char *method, int status,
                               int64_t took_ns)
{
    if (!self->requests)
        return;
    char code[16] = NO_ANSWER;
    if (status > 0)
        snprintf(code, sizeof code, "%d", status);
    ml_metric_add(ml_metric_with(self->requests, ml_metric_labels(code, method, self->host)), 1);
    ml_metric_observe(ml_metric_with(self->duration, ml_metric_labels(method, self->host)),
                      (double)took_ns / (double)ML_NS_PER_S);
}

void ml_client_metrics_warning(struct ml_client_metrics *self, const struct ml_client_wire *request,
                               struct ml_str text)
{
    if (text.len == 0 || self->warnings_full || ml_map_get(&self->warnings, text))
        return;
    if (self->warnings.len == WARNINGS_MAX) {
        self->warnings_full = true;
        ml_warn(self->log, "client", "further warnings of the API server are not logged",
                ML_I("distinct", WARNINGS_MAX));
        return;
    }
    char *copy = ml_str_dup(text);
    ml_map_put(&self->warnings, (struct ml_str){copy, text.len}, copy);
    const char *query = strchr(request->path, '?');
    size_t len = query ? (size_t)(query - request->path) : strlen(request->path);
    ml_warn(self->log, "client", "warning of the API server", ML_STR_FIELD("warning", text),
            ML_S("verb", request->method),
            ML_STR_FIELD("path", ((struct ml_str){request->path, len})));
}
