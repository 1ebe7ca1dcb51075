/* L3 kube. Inside of the client: one file for each thing it does, joined here. Private to
 * client*.c. */
#pragma once

#include "base/map.h"
#include "kube/client.h"

#define ML_CLIENT_ANSWER_MAX ((size_t)32 * 1024 * 1024)

/* A request as it goes to the transport, independent of what it was made from. */
struct ml_client_wire {
    const char *method;       /* static */
    const char *content_type; /* static, or NULL */
    char *path;               /* with query */
    char *accept;             /* or NULL */
    struct ml_buf body;
};

void ml_client_wire_make(const struct ml_client_request *request, struct ml_client_wire *out);
void ml_client_wire_fini(struct ml_client_wire *wire);

static inline bool ml_client_wire_writes(const struct ml_client_wire *wire)
{
    return strcmp(wire->method, "GET") != 0;
}

/* What became of one attempt. */
struct ml_client_outcome {
    bool writes;
    int attempts;                  /* made so far, this one included */
    int64_t header_retry_after_ms; /* of the answer, or -1 */
    const struct ml_err *err;
};

/* Nanoseconds to wait before the next attempt, or -1: this one was the last. */
int64_t ml_client_retry_delay(const struct ml_client_outcome *outcome, struct ml_random *random);

/* rest_client_requests_total and rest_client_request_duration_seconds, as client-go has them. */
struct ml_client_meter {
    struct ml_metric_family *requests;
    struct ml_metric_family *duration;
    const char *host;
};

/* `metrics` may be NULL: nothing is counted then. */
void ml_client_meter_init(struct ml_client_meter *meter, struct ml_metrics *metrics,
                          const char *host);
/* `status` 0: no answer was had. */
void ml_client_meter_count(struct ml_client_meter *meter, const char *method, int status,
                           int64_t duration_ns);

/* The texts of Warning headers that were logged already. */
struct ml_client_warnings {
    struct ml_log *log;
    struct ml_map seen;
    bool full;
};

void ml_client_warnings_take(struct ml_client_warnings *warnings, struct ml_str text);
void ml_client_warnings_fini(struct ml_client_warnings *warnings);
