#include "wire.h"

#include "base/buf.h"

#define MESSAGE_MAX ((size_t)64 * 1024 * 1024)
#define NEVER_NS    (INT64_C(1000000) * ML_NS_PER_S)

struct wire {
    struct ml_transport seam;
    struct wire_opts opts;
    struct wire_mood mood;
    struct ml_list calls;
};

enum message_kind { MESSAGE_HEAD, MESSAGE_DATA, MESSAGE_DONE };

/* A part of an answer on its way back. */
struct message {
    struct ml_list node;
    enum message_kind kind;
    int64_t due_ns; /* far clock */
    int status;
    int64_t retry_after_ms;
    struct ml_buf data;
    struct ml_err err; /* DONE; kind 0: a regular end */
};

/* It has two sides: the near one is over when its caller has been told or has canceled, the far
 * one when the server has answered and all of it has travelled. */
struct ml_transport_call {
    struct ml_list node;
    struct wire *wire;
    struct ml_http_handler handler;
    void *context;
    bool near_over, far_over, telling;
    bool lose_back;

    char *method, *path, *accept, *content_type;
    struct ml_buf body;
    bool streaming;

    struct ml_timer there; /* far: it arrives */
    struct ml_transport_call *asked;
    struct ml_list travelling; /* messages, in order */
    struct ml_timer back;      /* far: the first of them arrives */
    struct ml_list arrived;
    struct ml_task deliver;   /* near */
    struct ml_timer deadline; /* near */
};

static void drop_messages(struct ml_list *messages)
{
    ml_list_each (node, messages) {
        struct message *message = ml_container_of(node, struct message, node);
        ml_list_remove(&message->node);
        ml_buf_fini(&message->data);
        free(message);
    }
}

static void call_free(struct ml_transport_call *call)
{
    ml_timer_stop(&call->there);
    ml_timer_stop(&call->back);
    ml_timer_stop(&call->deadline);
    ml_task_cancel(&call->deliver);
    if (call->asked)
        call->wire->opts.server->cancel(call->wire->opts.server, call->asked);
    drop_messages(&call->travelling);
    drop_messages(&call->arrived);
    ml_list_remove(&call->node);
    ml_buf_fini(&call->body);
    free(call->method);
    free(call->path);
    free(call->accept);
    free(call->content_type);
    free(call);
}

static void settle(struct ml_transport_call *call)
{
    if (call->near_over && call->far_over && !call->telling)
        call_free(call);
}

/* The near side wants no more. A stream ends with it; a request that has left goes on. */
static void near_end(struct ml_transport_call *call)
{
    struct ml_transport *server = call->wire->opts.server;
    call->near_over = true;
    ml_timer_stop(&call->deadline);
    ml_task_cancel(&call->deliver);
    if (call->streaming && !call->far_over) {
        if (call->asked)
            server->cancel(server, ml_take(&call->asked));
        ml_timer_stop(&call->there);
        call->far_over = true;
    }
    settle(call);
}

static void near_done(struct ml_transport_call *call, const struct ml_err *err)
{
    const struct ml_http_handler handler = call->handler;
    void *context = call->context;
    const struct ml_err copy = err ? *err : ML_ERR_INIT;
    near_end(call);
    handler.done(context, err ? &copy : NULL);
}

/* ---- back ---- */

static void tell(struct ml_transport_call *call, struct message *message)
{
    struct ml_err err = ML_ERR_INIT;
    int r = 0;
    if (message->kind == MESSAGE_DONE) {
        err = message->err;
        near_done(call, err.kind ? &err : NULL);
    } else if (message->kind == MESSAGE_HEAD && call->handler.head) {
        const struct ml_http_head head = {.status = message->status,
                                          .retry_after_ms = message->retry_after_ms,
                                          .content_type = ML_STR("application/json")};
        call->handler.head(call->context, &head);
    } else if (message->kind == MESSAGE_DATA && call->handler.data) {
        r = call->handler.data(call->context, ml_buf_str(&message->data), &err);
    }
    if (r != 0 && !call->near_over)
        near_done(call, &err);
}

static void on_deliver(void *context)
{
    struct ml_transport_call *call = context;
    call->telling = true;
    while (!call->near_over && !ml_list_empty(&call->arrived)) {
        struct ml_list *node = ml_list_shift(&call->arrived);
        struct message *message = ml_container_of(node, struct message, node);
        tell(call, message);
        ml_buf_fini(&message->data);
        free(message);
    }
    call->telling = false;
    settle(call);
}

static int64_t far_now(const struct wire *wire)
{
    return ml_clock_monotonic(ml_loop_clock(wire->opts.far));
}

static void arm_back(struct ml_transport_call *call)
{
    if (ml_list_empty(&call->travelling))
        return;
    const struct message *first = ml_container_of(call->travelling.next, struct message, node);
    ml_timer_start(&call->back, first->due_ns - far_now(call->wire));
}

static void on_back(void *context)
{
    struct ml_transport_call *call = context;
    while (!ml_list_empty(&call->travelling)) {
        struct message *first = ml_container_of(call->travelling.next, struct message, node);
        if (first->due_ns > far_now(call->wire))
            break;
        ml_list_remove(&first->node);
        ml_list_push(&call->arrived, &first->node);
        if (first->kind == MESSAGE_DONE)
            call->far_over = true;
    }
    arm_back(call);
    if (call->near_over)
        settle(call);
    else
        ml_task_defer(&call->deliver, call->wire->opts.near);
}

static struct message *send_back(struct ml_transport_call *call, enum message_kind kind)
{
    const struct wire_mood *mood = &call->wire->mood;
    struct message *message = ml_new(struct message);
    message->kind = kind;
    message->err = ML_ERR_INIT;
    message->retry_after_ms = -1;
    message->due_ns = far_now(call->wire) +
                      ml_random_between(call->wire->opts.random, mood->back_min_ns,
                                        mood->back_max_ns + 1) +
                      (mood->silent ? NEVER_NS : 0);
    ml_buf_init(&message->data, MESSAGE_MAX);
    if (!ml_list_empty(&call->travelling)) {
        const struct message *last = ml_container_of(call->travelling.prev, struct message, node);
        message->due_ns = ML_MAX(message->due_ns, last->due_ns);
    }
    ml_list_push(&call->travelling, &message->node);
    arm_back(call);
    return message;
}

static void send_back_lost(struct ml_transport_call *call)
{
    struct message *message = send_back(call, MESSAGE_DONE);
    ml_err_set(&message->err, ML_ENETWORK, "connection lost (injected)");
}

/* ---- there ---- */

static void on_head(void *context, const struct ml_http_head *head)
{
    struct ml_transport_call *call = context;
    struct wire *wire = call->wire;
    const struct wire_request request = {call->method, call->path, ml_buf_cstr(&call->body),
                                         head->status, wire->opts.sender};
    wire->opts.handled(wire->opts.context, &request);
    call->lose_back = !call->streaming &&
                      ml_random_between(wire->opts.random, 0, 100) < wire->mood.lose_back_percent;
    if (call->lose_back)
        return;
    struct message *message = send_back(call, MESSAGE_HEAD);
    message->status = head->status;
    message->retry_after_ms = head->retry_after_ms;
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_transport_call *call = context;
    (void)err;
    if (!call->lose_back)
        ml_buf_append_str(&send_back(call, MESSAGE_DATA)->data, piece);
    return 0;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct ml_transport_call *call = context;
    call->asked = NULL;
    if (call->lose_back) {
        send_back_lost(call);
        return;
    }
    struct message *message = send_back(call, MESSAGE_DONE);
    if (err)
        message->err = *err;
}

static void refuse(struct ml_transport_call *call)
{
    struct message *head = send_back(call, MESSAGE_HEAD);
    head->status = 429;
    head->retry_after_ms = call->wire->mood.retry_after_ms;
    send_back(call, MESSAGE_DONE);
}

static void on_there(void *context)
{
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    struct ml_transport_call *call = context;
    struct ml_transport *server = call->wire->opts.server;
    if (call->wire->mood.retry_after_ms > 0) {
        refuse(call);
        return;
    }
    const struct ml_transport_request request = {
        .method = call->method,
        .path = call->path,
        .accept = call->accept,
        .content_type = call->content_type,
        .body = ml_buf_str(&call->body),
        .streaming = call->streaming,
    };
    call->asked = server->submit(server, &request, &handler, call);
}

static void on_lost(void *context)
{
    send_back_lost(context);
}

static void on_deadline(void *context)
{
    struct ml_err err;
    ml_err_set(&err, ML_ETIMEOUT, "no answer in time (injected)");
    near_done(context, &err);
}

static void depart(struct ml_transport_call *call)
{
    struct wire *wire = call->wire;
    const struct wire_mood *mood = &wire->mood;
    bool lost = ml_random_between(wire->opts.random, 0, 100) < mood->lose_there_percent;
    int64_t delay_ns = ml_random_between(wire->opts.random, mood->there_min_ns,
                                         mood->there_max_ns + 1);
    ml_timer_init(&call->there, wire->opts.far, lost ? on_lost : on_there, call);
    if (mood->silent)
        call->far_over = true;
    else
        ml_timer_start(&call->there, delay_ns);
}

static struct ml_transport_call *wire_submit(struct ml_transport *seam,
                                             const struct ml_transport_request *request,
                                             const struct ml_http_handler *handler, void *context)
{
    struct wire *wire = ml_container_of(seam, struct wire, seam);
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    call->wire = wire;
    call->handler = *handler;
    call->context = context;
    call->method = ml_strdup(request->method);
    call->path = ml_strdup(request->path);
    call->accept = ml_strdup(request->accept);
    call->content_type = ml_strdup(request->content_type);
    call->streaming = request->streaming;
    ml_buf_init(&call->body, request->body.len + 2);
    ml_buf_append_str(&call->body, request->body);
    ml_list_init(&call->travelling);
    ml_list_init(&call->arrived);
    ml_list_push(&wire->calls, &call->node);
    ml_timer_init(&call->back, wire->opts.far, on_back, call);
    ml_timer_init(&call->deadline, wire->opts.near, on_deadline, call);
    ml_task_init(&call->deliver, on_deliver, call);
    if (request->deadlines.total_ms > 0)
        ml_timer_start(&call->deadline, request->deadlines.total_ms * ML_NS_PER_MS);
    depart(call);
    return call;
}

static void wire_cancel(struct ml_transport *seam, struct ml_transport_call *call)
{
    (void)seam;
    near_end(call);
}

/* The near side has gone; what it sent is still on its way. */
static void seam_free(struct ml_transport *seam)
{
    const struct wire *wire = ml_container_of(seam, struct wire, seam);
    ml_list_each (node, &wire->calls)
        ml_assert(ml_container_of(node, struct ml_transport_call, node)->near_over);
}

struct wire *wire_new(const struct wire_opts *opts)
{
    struct wire *wire = ml_new(struct wire);
    wire->seam = (struct ml_transport){wire_submit, wire_cancel, seam_free, "wire"};
    wire->opts = *opts;
    wire->mood = (struct wire_mood){
        .there_min_ns = ML_NS_PER_MS,
        .there_max_ns = 5 * ML_NS_PER_MS,
        .back_min_ns = ML_NS_PER_MS,
        .back_max_ns = 5 * ML_NS_PER_MS,
    };
    ml_list_init(&wire->calls);
    return wire;
}

void wire_free(struct wire *wire)
{
    if (!wire)
        return;
    ml_list_each (node, &wire->calls)
        call_free(ml_container_of(node, struct ml_transport_call, node));
    wire->opts.server->free(wire->opts.server);
    free(wire);
}

struct ml_transport *wire_seam(struct wire *wire)
{
    return &wire->seam;
}

struct wire_mood *wire_mood(struct wire *wire)
{
    return &wire->mood;
}
