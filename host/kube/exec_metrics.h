/* L3 kube. client-go's metrics of exec plugins: rest_client_exec_plugin_call_total,
 * rest_client_exec_plugin_ttl_seconds, rest_client_exec_plugin_certificate_rotation_age. Private
 * to exec_plugin.c. */
#pragma once

#include "base/clock.h"
#include "base/metrics.h"
#include "kube/exec_credential.h"
#include "net/child.h"

struct ml_exec_metrics {
    struct ml_clock *clock;
    struct ml_metric_family *calls; /* NULL: nothing is counted */
    struct ml_metric *ttl;
    struct ml_metric *rotation_age;
    struct ml_metrics_collector collector;
    uint64_t cert_hash;
    int64_t not_before_ns; /* of the certificate there is; 0: none */
    int64_t not_after_ns;
};

/* `metrics` may be NULL. */
void ml_exec_metrics_init(struct ml_exec_metrics *self, struct ml_metrics *metrics,
                          struct ml_clock *clock);
void ml_exec_metrics_fini(struct ml_exec_metrics *self);

/* A run that ended, or could not be started. */
void ml_exec_metrics_count(struct ml_exec_metrics *self, const struct ml_child_end *end);
void ml_exec_metrics_count_unstarted(struct ml_exec_metrics *self, const struct ml_err *err);
/* What a good run gave. */
void ml_exec_metrics_gave(struct ml_exec_metrics *self,
                          const struct ml_exec_credential *credential);
