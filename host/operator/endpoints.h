/* L6 operator. The servers of probes and metrics. */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "net/http_routes.h"

struct ml_endpoints;

struct ml_endpoints_opts {
    struct ml_loop *loop;
    struct ml_metrics *metrics;  /* the metrics of the process are added */
    const struct ml_log *log;    /* borrowed: its lines that could not be written are counted */
    const char *health_address;  /* "host:port"; NULL or "0": none */
    const char *metrics_address; /* the same; may equal health_address */
    /* Is the host ready? If not, appends the reasons, one in each line. Otherwise it may append
     * notes, which do no harm to that. */
    bool (*ready)(void *context, struct ml_buf *why);
    /* Appends a line for each check that is passed: "[+]site.lua ok". */
    void (*passed)(void *context, struct ml_buf *out);
    void *context;
};

/* /healthz, /readyz (200 "ok" and notes, or 500; ?verbose gives the reasons and what is passed) and
 * /metrics.
 * ML_EINVALID or ML_EIO as ml_tcp_listen. */
ML_NODISCARD int ml_endpoints_new(const struct ml_endpoints_opts *opts, struct ml_endpoints **out,
                                  struct ml_err *err);
void ml_endpoints_free(struct ml_endpoints *endpoints);

int ml_endpoints_health_port(const struct ml_endpoints *endpoints); /* 0: none */
/* The socket of the probes, borrowed; -1: none. */
int ml_endpoints_health_listener(const struct ml_endpoints *endpoints);
int ml_endpoints_metrics_port(const struct ml_endpoints *endpoints); /* 0: none */
