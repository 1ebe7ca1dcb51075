#include "kube/client_internal.h"

#include "codec/json.h"
#include "net/loop.h"

#define IN_FLIGHT_DEFAULT 100
#define REFUSAL_LEN_MAX   ((size_t)256 * 1024) /* of a stream's answer that is no success */

static const struct ml_http_deadlines ordinary_deadlines = {
    .connect_ms = 10000,
    .first_byte_ms = 34000, /* what the API server gives a write */
    .total_ms = 60000,      /* what it gives any request that is no watch */
};

struct ml_client {
    struct ml_loop *loop;
    struct ml_transport *transport;
    struct ml_random *random;
    ml_client_fence *fence;
    void *fence_context;
    struct ml_list waiting;  /* for a place, in order */
    struct ml_list yielding; /* the same, behind all of those */
    struct ml_list others;   /* every other call */
    size_t in_flight;
    size_t in_flight_max;
    struct ml_client_meter meter;
    struct ml_client_warnings warnings;
};

/* WAITING -> SENT -> over, or SENT -> RESTING -> WAITING for another attempt; FENCED is over as
 * soon as the loop comes round. A stream is SENT from its start. */
enum call_state { CALL_WAITING, CALL_SENT, CALL_RESTING, CALL_FENCED };

struct ml_client_call {
    struct ml_client *client;
    struct ml_list node; /* on waiting, yielding or others */
    enum call_state state;
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
    struct ml_timer rest;
    struct ml_task fenced;
    struct ml_err fence_err;
};

struct ml_client *ml_client_new(const struct ml_client_opts *opts)
{
    struct ml_client *client = ml_new(struct ml_client);
    client->loop = opts->loop;
    client->transport = opts->transport;
    client->random = opts->random;
    client->in_flight_max = opts->in_flight_max ? opts->in_flight_max : IN_FLIGHT_DEFAULT;
    client->warnings.log = opts->log;
    ml_list_init(&client->waiting);
    ml_list_init(&client->yielding);
    ml_list_init(&client->others);
    ml_client_meter_init(&client->meter, opts->metrics, opts->transport->host);
    return client;
}

void ml_client_free(struct ml_client *client)
{
    if (!client)
        return;
    ml_assert(ml_list_empty(&client->waiting));
    ml_assert(ml_list_empty(&client->yielding));
    ml_assert(ml_list_empty(&client->others));
    ml_client_warnings_fini(&client->warnings);
    free(client);
}

void ml_client_set_fence(struct ml_client *client, ml_client_fence *fence, void *context)
{
    client->fence = fence;
    client->fence_context = context;
}

static bool is_stream(const struct ml_client_call *call)
{
    return call->done == NULL;
}

static void call_move(struct ml_client_call *call, enum call_state state)
{
    struct ml_client *client = call->client;
    ml_list_remove(&call->node);
    struct ml_list *waiting = call->yields ? &client->yielding : &client->waiting;
    ml_list_push(state == CALL_WAITING ? waiting : &client->others, &call->node);
    call->state = state;
}

static void call_free(struct ml_client_call *call)
{
    ml_list_remove(&call->node);
    ml_timer_stop(&call->rest);
    ml_task_cancel(&call->fenced);
    ml_client_wire_fini(&call->wire);
    ml_buf_fini(&call->answer);
    free(call);
}

static int64_t now_ns(const struct ml_client_call *call)
{
    return ml_clock_monotonic(ml_loop_clock(call->client->loop));
}

static void call_count(struct ml_client_call *call, int status)
{
    ml_client_meter_count(&call->client->meter, call->wire.method, status,
                          now_ns(call) - call->sent_ns);
}

/* Asked at the last moment: what was allowed when it was queued may be so no more. */
static int ask_fence(const struct ml_client_call *call, struct ml_err *err)
{
    const struct ml_client *client = call->client;
    if (!client->fence || !ml_client_wire_writes(&call->wire))
        return 0;
    return client->fence(client->fence_context, call->wire.method, call->wire.path, err);
}

/* The last moment of all: it may have waited for a connection, and the process may have slept. */
static int may_send(void *context, struct ml_err *err)
{
    return ask_fence(context, err);
}

static void call_submit(struct ml_client_call *call, const struct ml_http_handler *handler,
                        bool streaming)
{
    struct ml_transport *transport = call->client->transport;
    const struct ml_transport_request request = {
        .method = call->wire.method,
        .path = call->wire.path,
        .accept = call->wire.accept,
        .content_type = call->wire.content_type,
        .body = ml_buf_str(&call->wire.body),
        .deadlines = call->deadlines,
        .streaming = streaming,
        .may_send = ml_client_wire_writes(&call->wire) ? may_send : NULL,
    };
    call->status = 0;
    call->retry_after_ms = -1;
    ml_buf_clear(&call->answer);
    call->attempts++;
    call->sent_ns = now_ns(call);
    call->sent = transport->submit(transport, &request, handler, call);
}

/* Shared by requests and streams. */
static void take_head(struct ml_client_call *call, const struct ml_http_head *head)
{
    call->status = head->status;
    call->retry_after_ms = head->retry_after_ms;
    call_count(call, head->status);
    ml_client_warnings_take(&call->client->warnings, head->warning);
}

static int keep_piece(struct ml_client_call *call, struct ml_str piece, struct ml_err *err)
{
    if (!ml_buf_append_str(&call->answer, piece))
        return ml_err_set(err, ML_ELIMIT, "%s %s: the answer is larger than %zu bytes",
                          call->wire.method, call->wire.path, call->answer.len_max);
    return 0;
}

/* A success may still carry a Status that says Failure. The search of the plain bytes spares
 * the parsing of all others. */
static bool is_hidden_failure(struct ml_str body)
{
    static const char needle[] = "\"Failure\"";
    if (body.len == 0 || !memmem(body.ptr, body.len, needle, sizeof needle - 1))
        return false;
    ML_AUTO_FREE char *kind = ml_json_find_string(body, "kind", NULL);
    ML_AUTO_FREE char *status = ml_json_find_string(body, "status", NULL);
    return kind && status && !strcmp(kind, "Status") && !strcmp(status, "Failure");
}

/* 0, or what the finished attempt failed with. */
static int judge(const struct ml_client_call *call, const struct ml_err *transport_err,
                 struct ml_err *err)
{
    struct ml_str body = ml_buf_str(&call->answer);
    if (transport_err) {
        *err = *transport_err;
        return err->kind;
    }
    bool success = is_stream(call) ? call->status == 200 : call->status / 100 == 2;
    if (success && (is_stream(call) || !is_hidden_failure(body)))
        return 0;
    ml_status_error(body, call->status, err);
    if (call->retry_after_ms >= 0)
        err->retry_after_ms = call->retry_after_ms;
    return err->kind;
}

static void pump(struct ml_client *client);

/* The end of a request. Nothing of client or call is touched once done() was called, so that
 * it may free the client. */
static void call_finish(struct ml_client_call *call, const struct ml_err *err)
{
    ml_client_done *done = call->done;
    void *context = call->context;
    ML_AUTO(ml_buf_fini) struct ml_buf answer = call->answer;
    call->answer = ML_BUF_INIT;
    call_free(call);
    done(context, ml_buf_str(&answer), err);
}

static void on_rested(void *context)
{
    struct ml_client_call *call = context;
    call_move(call, CALL_WAITING);
    pump(call->client);
}

static void on_fenced(void *context)
{
    struct ml_client_call *call = context;
    struct ml_err err = call->fence_err;
    call_finish(call, &err);
}

static void on_head(void *context, const struct ml_http_head *head)
{
    take_head(context, head);
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    return keep_piece(context, piece, err);
}

static void on_done(void *context, const struct ml_err *transport_err)
{
    struct ml_client_call *call = context;
    struct ml_client *client = call->client;
    call->sent = NULL;
    client->in_flight--;
    if (call->status == 0)
        call_count(call, 0);
    struct ml_err err = ML_ERR_INIT;
    bool failed = judge(call, transport_err, &err) < 0;
    const struct ml_client_outcome outcome = {
        .writes = ml_client_wire_writes(&call->wire),
        .attempts = call->attempts,
        .header_retry_after_ms = call->retry_after_ms,
        .err = &err,
    };
    int64_t delay_ns = failed ? ml_client_retry_delay(&outcome, client->random) : -1;
    if (delay_ns >= 0) {
        call_move(call, CALL_RESTING);
        ml_timer_start(&call->rest, delay_ns);
        pump(client);
        return;
    }
    pump(client);
    call_finish(call, failed ? &err : NULL);
}

/* Whose turn it is; NULL when nobody waits. */
static struct ml_client_call *next_waiting(struct ml_client *client)
{
    struct ml_list *list = ml_list_empty(&client->waiting) ? &client->yielding : &client->waiting;
    if (ml_list_empty(list))
        return NULL;
    return ml_container_of(list->next, struct ml_client_call, node);
}

/* Sends what waits while there are places. */
static void pump(struct ml_client *client)
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    struct ml_client_call *call;
    while (client->in_flight < client->in_flight_max && (call = next_waiting(client))) {
        call->fence_err = ML_ERR_INIT;
        if (ask_fence(call, &call->fence_err) < 0) {
            call_move(call, CALL_FENCED);
            ml_task_defer(&call->fenced, client->loop);
            continue;
        }
        call_move(call, CALL_SENT);
        client->in_flight++;
        call_submit(call, &handler, false);
    }
}

static struct ml_client_call *call_new(struct ml_client *client, void *context)
{
    struct ml_client_call *call = ml_new(struct ml_client_call);
    call->client = client;
    call->context = context;
    ml_list_init(&call->node);
    ml_timer_init(&call->rest, client->loop, on_rested, call);
    ml_task_init(&call->fenced, on_fenced, call);
    return call;
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
    struct ml_client_call *call = call_new(client, context);
    call->done = done;
    call->yields = request->yields;
    call->deadlines = deadlines_of(request);
    ml_client_wire_make(request, &call->wire);
    ml_buf_init(&call->answer, ML_CLIENT_ANSWER_MAX);
    call_move(call, CALL_WAITING);
    pump(client);
    return call;
}

void ml_client_cancel(struct ml_client_call *call)
{
    struct ml_client *client = call->client;
    if (call->sent)
        client->transport->cancel(client->transport, call->sent);
    if (call->state == CALL_SENT && !is_stream(call))
        client->in_flight--;
    call_free(call);
    pump(client);
}

static void stream_head(void *context, const struct ml_http_head *head)
{
    struct ml_client_call *call = context;
    take_head(call, head);
    if (head->status == 200 && call->stream.open)
        call->stream.open(call->context); /* may cancel: the last thing done here */
}

static int stream_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_client_call *call = context;
    if (call->status == 200)
        return call->stream.data(call->context, piece, err);
    return keep_piece(call, piece, err);
}

static void stream_done(void *context, const struct ml_err *transport_err)
{
    struct ml_client_call *call = context;
    if (call->status == 0)
        call_count(call, 0);
    struct ml_err err = ML_ERR_INIT;
    bool failed = judge(call, transport_err, &err) < 0;
    struct ml_client_stream handler = call->stream;
    void *user = call->context;
    call_free(call);
    handler.done(user, failed ? &err : NULL);
}

struct ml_client_call *ml_client_stream(struct ml_client *client, const char *path,
                                        const struct ml_http_deadlines *deadlines,
                                        const struct ml_client_stream *handler, void *context)
{
    static const struct ml_http_handler between = {stream_head, stream_data, stream_done};
    struct ml_client_call *call = call_new(client, context);
    call->stream = *handler;
    call->deadlines = *deadlines;
    call->wire = (struct ml_client_wire){.method = "GET", .path = ml_strdup(path)};
    ml_buf_init(&call->answer, REFUSAL_LEN_MAX);
    call_move(call, CALL_SENT);
    call_submit(call, &between, true);
    return call;
}
