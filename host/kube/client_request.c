/* One request and one answer: waiting for a place, attempts, the end. */
#include "kube/client_internal.h"

#define WAITING_MAX  1000
#define ATTEMPTS_MAX 10 /* of a request that is refused with 429 */

static const struct ml_http_deadlines ordinary_deadlines = {
    .connect_ms = 10000,
    .first_byte_ms = 34000, /* what the API server gives a write */
    .total_ms = 60000,      /* what it gives any request that is no watch */
};

/* The end of a request. Nothing of client or call is touched once done() was called, so that
 * it may free the client. */
static void call_finish(struct ml_client_call *call, const struct ml_err *err)
{
    ml_client_done *done = call->done;
    void *context = call->context;
    ML_AUTO(ml_buf_fini) struct ml_buf answer = call->answer;
    call->answer = ML_BUF_INIT;
    ml_client_call_free(call);
    done(context, ml_buf_str(&answer), err);
}

static void on_rested(void *context)
{
    struct ml_client_call *call = context;
    ml_client_call_move(call, CALL_WAITING);
    ml_client_pump(call->client);
}

static void on_refused(void *context)
{
    struct ml_client_call *call = context;
    struct ml_err err = call->refusal;
    call_finish(call, &err);
}

/* By ourselves, with call->refusal: nothing is sent. */
static void refuse(struct ml_client_call *call)
{
    ml_client_call_move(call, CALL_REFUSED);
    ml_task_defer(&call->refused, call->client->loop);
}

static void on_head(void *context, const struct ml_http_head *head)
{
    ml_client_call_head(context, head);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    return ml_client_call_keep(context, piece, err);
}

/* Nanoseconds till the next attempt; 0: when the pause is over; below 0: this was the last. */
static int64_t again_after(const struct ml_client_call *call, const struct ml_err *err)
{
    const struct ml_client_outcome outcome = {
        .writes = ml_client_wire_writes(&call->wire),
        .attempts = call->attempts,
        .header_retry_after_ms = call->retry_after_ms,
        .err = err,
    };
    if (ml_client_paused(call->client) && call->status == 429)
        return call->retry_after_ms >= 0 && call->attempts < ATTEMPTS_MAX ? 0 : -1;
    return ml_client_retry_delay(&outcome, call->client->random);
}

static void on_done(void *context, const struct ml_err *transport_err)
{
    struct ml_client_call *call = context;
    struct ml_client *client = call->client;
    struct ml_err err = ML_ERR_INIT;
    client->in_flight--;
    bool failed = ml_client_call_judge(call, transport_err, &err) < 0;
    int64_t delay_ns = failed ? again_after(call, &err) : -1;
    if (delay_ns == 0) {
        ml_client_call_move(call, CALL_WAITING);
    } else if (delay_ns > 0) {
        ml_client_call_move(call, CALL_RESTING);
        ml_timer_start(&call->rest, delay_ns);
    }
    ml_client_pump(client);
    if (delay_ns < 0)
        call_finish(call, failed ? &err : NULL);
}

void ml_client_pump(struct ml_client *client)
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    struct ml_client_waiter *waiter;
    while (!ml_client_paused(client) && client->in_flight < client->in_flight_max &&
           (waiter = ml_client_queue_next(&client->queue))) {
        struct ml_client_call *call = ml_container_of(waiter, struct ml_client_call, waiter);
        call->refusal = ML_ERR_INIT;
        /* Asked at the last moment: what was allowed when it was queued may be so no more. */
        if (ml_client_call_fence(call, &call->refusal) < 0) {
            refuse(call);
            continue;
        }
        client->in_flight++;
        ml_client_call_submit(call, &handler);
    }
}

static struct ml_http_deadlines deadlines_of(const struct ml_client_request *request)
{
    struct ml_http_deadlines deadlines = ordinary_deadlines;
    if (request->timeout_ms > 0) {
        deadlines.connect_ms = ML_MIN(deadlines.connect_ms, request->timeout_ms);
        deadlines.first_byte_ms = ML_MIN(deadlines.first_byte_ms, request->timeout_ms);
        deadlines.total_ms = ML_MIN(deadlines.total_ms, request->timeout_ms);
    }
    return deadlines;
}

struct ml_client_call *ml_client_send(struct ml_client *client,
                                      const struct ml_client_request *request, ml_client_done *done,
                                      void *context)
{
    ml_assert(done);
    struct ml_client_call *call = ml_client_call_new(client, context);
    call->done = done;
    call->flow = ml_strdup(request->flow);
    call->yields = request->yields;
    call->deadlines = deadlines_of(request);
    ml_timer_init(&call->rest, client->loop, on_rested, call);
    ml_task_init(&call->refused, on_refused, call);
    ml_client_wire_make(request, &call->wire);
    ml_buf_init(&call->answer, ML_CLIENT_ANSWER_MAX);
    if (ml_client_call_charge(call, request->budget, &call->refusal) < 0) {
        refuse(call);
        return call;
    }
    if (client->queue.len >= WAITING_MAX) {
        ml_err_set(&call->refusal, ML_EUNAVAILABLE,
                   "%s %s was not sent: %d requests wait for the API server already",
                   call->wire.method, call->wire.path, WAITING_MAX);
        refuse(call);
        return call;
    }
    ml_client_call_move(call, CALL_WAITING);
    ml_client_pump(client);
    return call;
}

void ml_client_cancel(struct ml_client_call *call)
{
    struct ml_client *client = call->client;
    if (call->sent)
        client->transport->cancel(client->transport, call->sent);
    if (call->state == CALL_SENT && !ml_client_is_stream(call))
        client->in_flight--;
    ml_client_call_free(call);
    ml_client_pump(client);
}
