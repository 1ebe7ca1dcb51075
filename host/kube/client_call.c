/* A call from its making to what an answer comes to: what requests and streams share. */
#include "kube/client_internal.h"

#include "codec/json.h"

static int64_t now_ns(const struct ml_client_call *call)
{
    return ml_clock_monotonic(ml_loop_clock(call->client->loop));
}

struct ml_client_call *ml_client_call_new(struct ml_client *client, void *context)
{
    struct ml_client_call *call = ml_new(struct ml_client_call);
    call->client = client;
    call->context = context;
    client->calls++;
    ml_list_init(&call->waiter.node);
    ml_timer_init(&call->rest, client->loop, NULL, call);
    ml_task_init(&call->refused, NULL, call);
    return call;
}

void ml_client_call_move(struct ml_client_call *call, enum ml_client_state state)
{
    struct ml_client *client = call->client;
    if (call->state == CALL_WAITING)
        ml_client_queue_remove(&client->queue, &call->waiter);
    if (state == CALL_WAITING)
        ml_client_queue_put(&client->queue, &call->waiter, call->flow, call->yields);
    if (call->state == CALL_HELD)
        ml_list_remove(&call->waiter.node);
    if (state == CALL_HELD)
        ml_list_push(&client->held, &call->waiter.node);
    if (client->waiting)
        ml_metric_add(client->waiting, (state == CALL_WAITING) - (call->state == CALL_WAITING));
    call->state = state;
}

void ml_client_call_free(struct ml_client_call *call)
{
    ml_client_call_move(call, CALL_NEW);
    call->client->calls--;
    ml_timer_stop(&call->rest);
    ml_task_cancel(&call->refused);
    ml_client_wire_fini(&call->wire);
    ml_buf_fini(&call->answer);
    ml_budget_give(call->budget, call->request_charged + call->answer_charged);
    free(call->flow);
    free(call);
}

static int refuse_oversized(const struct ml_client_call *call, const char *what, struct ml_err *err)
{
    return ml_err_set(err, ML_ELIMIT, "%s %s: out of memory for the %s (limit %zu KiB)",
                      call->wire.method, call->wire.path, what, call->budget->max / 1024);
}

int ml_client_call_charge(struct ml_client_call *call, struct ml_budget *budget, struct ml_err *err)
{
    size_t bytes = strlen(call->wire.path) + ML_CLIENT_BODY_COPIES * call->wire.body.len;
    call->budget = budget;
    if (!ml_budget_take(budget, bytes))
        return refuse_oversized(call, "request", err);
    call->request_charged = bytes;
    return 0;
}

static void count(struct ml_client_call *call, int status)
{
    ml_client_meter_count(&call->client->meter, call->wire.method, status,
                          now_ns(call) - call->sent_ns);
}

int ml_client_call_fence(const struct ml_client_call *call, struct ml_err *err)
{
    const struct ml_client *client = call->client;
    if (!client->fence || !ml_client_wire_writes(&call->wire))
        return 0;
    return client->fence(client->fence_context, call->wire.method, call->wire.path, err);
}

/* The last moment of all: it may have waited for a connection, and the process may have slept. */
static int may_send(void *context, struct ml_err *err)
{
    return ml_client_call_fence(context, err);
}

void ml_client_call_submit(struct ml_client_call *call, const struct ml_http_handler *handler)
{
    struct ml_transport *transport = call->client->transport;
    const struct ml_transport_request request = {
        .method = call->wire.method,
        .path = call->wire.path,
        .accept = call->wire.accept,
        .content_type = call->wire.content_type,
        .body = ml_buf_str(&call->wire.body),
        .deadlines = call->deadlines,
        .streaming = ml_client_is_stream(call),
        .may_send = ml_client_wire_writes(&call->wire) ? may_send : NULL,
    };
    ml_client_call_move(call, CALL_SENT);
    call->status = 0;
    call->retry_after_ms = -1;
    ml_buf_fini(&call->answer); /* of the attempt before */
    ml_budget_give(call->budget, call->answer_charged);
    call->answer_charged = 0;
    call->attempts++;
    call->sent_ns = now_ns(call);
    call->sent = transport->submit(transport, &request, handler, call);
}

void ml_client_call_head(struct ml_client_call *call, const struct ml_http_head *head)
{
    call->status = head->status;
    call->retry_after_ms = head->retry_after_ms;
    count(call, head->status);
    ml_client_warnings_take(&call->client->warnings, head->warning);
    ml_client_answered(call->client, head->status);
}

int ml_client_call_keep(struct ml_client_call *call, struct ml_str piece, struct ml_err *err)
{
    if (!ml_budget_take(call->budget, piece.len))
        return refuse_oversized(call, "answer", err);
    call->answer_charged += piece.len;
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

static int judge(const struct ml_client_call *call, const struct ml_err *transport_err,
                 struct ml_err *err)
{
    struct ml_str body = ml_buf_str(&call->answer);
    bool stream = ml_client_is_stream(call);
    if (transport_err) {
        *err = *transport_err;
        return err->kind;
    }
    bool success = stream ? call->status == 200 : call->status / 100 == 2;
    if (success && (stream || !is_hidden_failure(body)))
        return 0;
    ml_status_error(body, call->status, err);
    if (call->retry_after_ms >= 0)
        err->retry_after_ms = call->retry_after_ms;
    return err->kind;
}

int ml_client_call_judge(struct ml_client_call *call, const struct ml_err *transport_err,
                         struct ml_err *err)
{
    call->sent = NULL;
    if (call->status == 0)
        count(call, 0);
    int r = judge(call, transport_err, err);
    ml_client_pause_take(call->client, call->status, r < 0 ? err->retry_after_ms : -1);
    return r;
}
