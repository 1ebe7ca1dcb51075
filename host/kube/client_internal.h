/* L3 kube. Inside of the client: one file for each thing it does, joined here. Private to
 * client*.c. */
#pragma once

#include "base/map.h"
#include "kube/client.h"
#include "net/loop.h"

#define ML_CLIENT_ANSWER_MAX  ((size_t)32 * 1024 * 1024)
#define ML_CLIENT_BODY_COPIES 3 /* while it is sent: the client's, the transport's, libcurl's */

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

/* Those who wait for a place: in flows, one a controller, served in turns, so that one that asks
 * for much does not hold up the others; behind all of them those that yield. client_queue.c. */
struct ml_client_waiter {
    struct ml_list node;
    struct ml_client_flow *flow; /* NULL: yields, or does not wait */
};

struct ml_client_queue {
    struct ml_list flows; /* whose turn it is first */
    struct ml_list yielding;
    size_t len;
};

void ml_client_queue_init(struct ml_client_queue *queue);
/* `flow` is copied; NULL is one as well. */
void ml_client_queue_put(struct ml_client_queue *queue, struct ml_client_waiter *waiter,
                         const char *flow, bool yields);
/* Whose turn it is, still in the queue; NULL: nobody waits. The next call is another flow's. */
struct ml_client_waiter *ml_client_queue_next(struct ml_client_queue *queue);
void ml_client_queue_remove(struct ml_client_queue *queue, struct ml_client_waiter *waiter);

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

/* A server that answered 429 gets no request at all for a while: one pause for the process.
 * client_pause.c. */
struct ml_client_pause {
    struct ml_client *client;
    struct ml_timer over;
    int64_t until_ns;
    bool told; /* in the log */
    struct ml_metric *count;
};

void ml_client_pause_init(struct ml_client *client, struct ml_metrics *metrics,
                          void (*over)(void *client));
/* Takes the answer's code, and with 429 what the server asked for (below 0: it did not say). */
void ml_client_pause_take(struct ml_client *client, int status, int64_t retry_after_ms);
bool ml_client_paused(const struct ml_client *client);

/* The texts of Warning headers that were logged already. */
struct ml_client_warnings {
    struct ml_log *log;
    struct ml_map seen;
    bool full;
};

void ml_client_warnings_take(struct ml_client_warnings *warnings, struct ml_str text);
void ml_client_warnings_fini(struct ml_client_warnings *warnings);

struct ml_client {
    struct ml_loop *loop;
    struct ml_transport *transport;
    struct ml_random *random;
    struct ml_log *log;
    ml_client_fence *fence;
    void *fence_context;
    bool exempt;
    size_t calls; /* of any state */
    size_t in_flight;
    size_t in_flight_max;
    struct ml_client_queue queue;
    struct ml_list held;     /* streams, while the server gets a pause */
    struct ml_list awaiting; /* a server that can be reached */
    struct ml_timer scout;   /* till one of them is to look */
    struct ml_client_pause pause;
    struct ml_client_meter meter;
    struct ml_client_warnings warnings;
    struct ml_metric *waiting;
};

/* WAITING -> SENT -> over, or SENT -> RESTING -> WAITING for another attempt; REFUSED by ourselves
 * is over as soon as the loop comes round. A stream is HELD or SENT. */
enum ml_client_state { CALL_NEW, CALL_WAITING, CALL_SENT, CALL_RESTING, CALL_REFUSED, CALL_HELD };

struct ml_client_call {
    struct ml_client *client;
    struct ml_client_waiter waiter; /* in the queue, or held */
    enum ml_client_state state;
    char *flow;
    bool yields;
    struct ml_client_wire wire;
    struct ml_http_deadlines deadlines;
    ml_client_done *done; /* NULL: a stream */
    struct ml_client_stream stream;
    void *context;

    struct ml_transport_call *sent;
    int64_t sent_ns;
    int attempts;
    int status; /* 0: no head yet */
    int64_t retry_after_ms;
    struct ml_buf answer;
    struct ml_budget *budget; /* or NULL */
    size_t request_charged;   /* to it */
    size_t answer_charged;
    struct ml_timer rest;
    struct ml_task refused;
    struct ml_err refusal;
};

/* client_call.c: what requests and streams share. */
struct ml_client_call *ml_client_call_new(struct ml_client *client, void *context);
void ml_client_call_free(struct ml_client_call *call); /* it must not be under way */
void ml_client_call_move(struct ml_client_call *call, enum ml_client_state state);
/* Asks the fence, which is for writes only. */
int ml_client_call_fence(const struct ml_client_call *call, struct ml_err *err);
void ml_client_call_submit(struct ml_client_call *call, const struct ml_http_handler *handler);
void ml_client_call_head(struct ml_client_call *call, const struct ml_http_head *head);
int ml_client_call_keep(struct ml_client_call *call, struct ml_str piece, struct ml_err *err);
/* Takes what the request holds from the budget. */
int ml_client_call_charge(struct ml_client_call *call, struct ml_budget *budget,
                          struct ml_err *err);
/* The attempt is over: counts it, and returns 0 or what it failed with. */
int ml_client_call_judge(struct ml_client_call *call, const struct ml_err *transport_err,
                         struct ml_err *err);

static inline bool ml_client_is_stream(const struct ml_client_call *call)
{
    return call->done == NULL;
}

/* client_request.c: sends while there are places. */
void ml_client_pump(struct ml_client *client);
/* client_stream.c: sends those that a pause held up. */
void ml_client_release_held(struct ml_client *client);
/* client_await.c. */
void ml_client_await_init(struct ml_client *client);
void ml_client_answered(struct ml_client *client, int status);
