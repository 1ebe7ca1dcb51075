/* L3 kube. What client.c uses of client_queue.c, client_wire.c and client_metrics.c. Private to
 * these. */
#pragma once

#include "base/map.h"
#include "kube/client.h"
#include "net/loop.h"

/* A request in the form of the transport. */
struct ml_client_wire {
    const char *method;       /* static */
    const char *content_type; /* static, or NULL */
    char *path;               /* with query */
    char *accept;             /* or NULL */
    struct ml_buf body;
};

void ml_client_wire_make(const struct ml_client_request *request, struct ml_client_wire *out);
void ml_client_wire_fini(struct ml_client_wire *wire);

/* Requests that wait for a place, in flows: one flow for each controller. The flows take turns, so
 * that a controller with many requests does not delay the others. Requests that yield come last. */
struct ml_client_waiter {
    struct ml_list node;
    struct ml_client_flow *flow; /* NULL: yields, or does not wait */
};

struct ml_client_queue {
    struct ml_list flows; /* the next one first */
    struct ml_list yielding;
    size_t len;
};

void ml_client_queue_init(struct ml_client_queue *queue);
/* `flow` is copied; NULL is a flow too. */
void ml_client_queue_add(struct ml_client_queue *queue, struct ml_client_waiter *waiter,
                         const char *flow, bool yields);
/* The next request, which stays in the queue; NULL: none waits. Each call moves on to the next
 * flow. */
struct ml_client_waiter *ml_client_queue_next(struct ml_client_queue *queue);
void ml_client_queue_remove(struct ml_client_queue *queue, struct ml_client_waiter *waiter);

/* After a 429 of an overloaded server the process sends nothing at all for a while. */
struct ml_client_pause {
    struct ml_loop *loop;
    struct ml_random *random;
    struct ml_log *log;
    struct ml_timer over;
    int64_t until_ns;
    bool logged;
    int64_t unready_until_ns; /* no second line about a resource that cannot be served until then */
    struct ml_metric *count;  /* or NULL */
};

void ml_client_pause_init(struct ml_client_pause *pause, const struct ml_client_opts *opts,
                          void (*over)(void *context), void *context);
/* An attempt is over: its answer's code, 0 without one, and after a 429 how long the server asked
 * us to wait (below 0: no Retry-After). */
void ml_client_pause_note(struct ml_client_pause *pause, int status, int64_t retry_after_ms);
/* The same after a 429 that is about its request alone: nothing pauses, and a line is logged, at
 * most one in ten seconds. */
void ml_client_pause_note_unready(struct ml_client_pause *pause, const char *path,
                                  const struct ml_err *err);
bool ml_client_paused(const struct ml_client_pause *pause);

/* Metrics of the client's requests, as in client-go; and the server's warnings. */
struct ml_client_metrics {
    struct ml_metric_family *requests, *duration; /* NULL: nothing is counted */
    struct ml_metric *waiting;                    /* or NULL */
    const char *host;
    struct ml_log *log;
    struct ml_map warnings; /* the texts of Warning headers that were logged */
    bool warnings_full;
};

void ml_client_metrics_init(struct ml_client_metrics *self, const struct ml_client_opts *opts);
void ml_client_metrics_fini(struct ml_client_metrics *self);
/* An attempt got the head of its answer; `status` 0: it ended without one. */
void ml_client_metrics_attempt(const struct ml_client_metrics *self, const char *method, int status,
                               int64_t took_ns);
/* Logs each text once, with the first request that got it. */
void ml_client_metrics_warning(struct ml_client_metrics *self, const struct ml_client_wire *request,
                               struct ml_str text);
