#include "fake_transport.h"

#include "unit.h"

#include "base/buf.h"
#include "base/list.h"

enum answer_state { ANSWER_NONE, ANSWER_HEAD };

struct fake_call_private {
    struct fake_call call;
    struct fake_transport *fake;
    struct fake_call_private *next; /* in the order of submission */
    struct ml_http_handler handler;
    int (*may_send)(void *context, struct ml_err *err);
    void *context;
    enum answer_state state;
    struct ml_task task; /* hands the call to the handler */
    void (*serve)(void *context, struct fake_call *call);
    void *serve_context;
};

struct fake_transport {
    struct ml_transport seam;
    struct ml_loop *loop;
    struct fake_call_private *first, **last;
    struct fake_call_private **unseen; /* the link that leads to what fake_next returns */
    void (*serve)(void *context, struct fake_call *call);
    void *serve_context;
};

static void serve_run(void *context)
{
    struct fake_call_private *private = context;
    if (!private->call.canceled)
    private->serve(private->serve_context, &private->call);
}

static struct fake_call_private *call_new(const struct ml_transport_request *request)
{
    struct fake_call_private *private = ml_new(struct fake_call_private);
    private->call = (struct fake_call){
        .method = ml_strdup(request->method),
        .path = ml_strdup(request->path),
        .accept = ml_strdup(request->accept),
        .content_type = ml_strdup(request->content_type),
        .body = ml_strndup(request->body.ptr ? request->body.ptr : "", request->body.len),
        .body_len = request->body.len,
        .streaming = request->streaming,
        .deadlines = request->deadlines,
        .private = private,
    };
    return private;
}

static struct ml_transport_call *fake_submit(struct ml_transport *transport,
                                             const struct ml_transport_request *request,
                                             const struct ml_http_handler *handler, void *context)
{
    struct fake_transport *fake = ml_container_of(transport, struct fake_transport, seam);
    if (!handler->done)
        fail_msg("%s %s was submitted without done()", request->method, request->path);
    struct fake_call_private *private = call_new(request);
    private->fake = fake;
    private->handler = *handler;
    private->may_send = request->may_send;
    private->context = context;
    private->serve = fake->serve;
    private->serve_context = fake->serve_context;
    ml_task_init(&private->task, serve_run, private);
    *fake->last = private;
    fake->last = &private->next;
    if (private->serve)
        ml_task_defer(&private->task, fake->loop);
    return (struct ml_transport_call *)private;
}

static void fake_cancel(struct ml_transport *transport, struct ml_transport_call *handle)
{
    struct fake_call_private *private = (struct fake_call_private *)handle;
    const struct fake_call *call = &private->call;
    if (&private->fake->seam != transport)
        fail_msg("%s %s was canceled at another transport", call->method, call->path);
    if (call->canceled || call->over)
        fail_msg("%s %s was canceled after its end", call->method, call->path);
    private->call.canceled = true;
    ml_task_cancel(&private->task);
}

static void fake_free(struct ml_transport *transport)
{
    fake_transport_free(ml_container_of(transport, struct fake_transport, seam));
}

struct fake_transport *fake_transport_new(struct ml_loop *loop)
{
    struct fake_transport *fake = ml_new(struct fake_transport);
    fake->seam = (struct ml_transport){fake_submit, fake_cancel, fake_free, "fake.test:6443"};
    fake->loop = loop;
    fake->last = &fake->first;
    fake->unseen = &fake->first;
    return fake;
}

struct ml_transport *fake_transport_seam(struct fake_transport *fake)
{
    return &fake->seam;
}

static void call_free(struct fake_call_private *private)
{
    ml_task_cancel(&private->task);
    free((char *)private->call.method);
    free((char *)private->call.path);
    free((char *)private->call.accept);
    free((char *)private->call.content_type);
    free((char *)private->call.body);
    free(private);
}

void fake_transport_free(struct fake_transport *fake)
{
    if (!fake)
        return;
    for (struct fake_call_private *private = fake->first; private; private = private->next)
        if (!private->call.over && !private->call.canceled)
            fail_msg("%s %s was never answered", private->call.method, private->call.path);
    for (struct fake_call_private *private = fake->first, *next; private; private = next) {
        next = private->next;
        call_free(private);
    }
    free(fake);
}

size_t fake_count(const struct fake_transport *fake)
{
    size_t count = 0;
    for (const struct fake_call_private *private = fake->first; private; private = private->next)
        count++;
    return count;
}

size_t fake_waiting(const struct fake_transport *fake)
{
    size_t count = 0;
    for (const struct fake_call_private *private = fake->first; private; private = private->next)
        count += !private->call.over && !private->call.canceled;
    return count;
}

struct fake_call *fake_call_at(struct fake_transport *fake, size_t index)
{
    struct fake_call_private *private = fake->first;
    for (size_t i = 0; private && i < index; i++)
    private = private->next;
    if (!private)
        fail_msg("no request number %zu; there were %zu", index, fake_count(fake));
    return &private->call;
}

/* The link to the next request that no handler took. */
static struct fake_call_private **next_unseen(struct fake_transport *fake)
{
    while (*fake->unseen && (*fake->unseen)->serve)
        fake->unseen = &(*fake->unseen)->next;
    return fake->unseen;
}

struct fake_call *fake_next(struct fake_transport *fake)
{
    struct fake_call_private *private = *next_unseen(fake);
    if (!private)
        fail_msg("no further request; there were %zu", fake_count(fake));
    fake->unseen = &private->next;
    return &private->call;
}

struct fake_call *fake_expect(struct fake_transport *fake, const char *method, const char *path)
{
    struct fake_call *call = fake_next(fake);
    assert_string_equal(call->path, path);
    assert_string_equal(call->method, method);
    return call;
}

void fake_expect_none(struct fake_transport *fake)
{
    const struct fake_call_private *private = *next_unseen(fake);
    if (private)
        fail_msg("unexpected request: %s %s", private->call.method, private->call.path);
}

static void check_open(const struct fake_call *call, enum answer_state state, const char *what)
{
    if (call->canceled)
        fail_msg("%s for %s %s, which was canceled", what, call->method, call->path);
    if (call->over)
        fail_msg("%s for %s %s, which is over", what, call->method, call->path);
    if (call->private->state != state)
        fail_msg("%s for %s %s out of order", what, call->method, call->path);
}

static void finish(struct fake_call *call, const struct ml_err *err)
{
    call->over = true;
    call->private->handler.done(call->private->context, err);
}

static void send_head(struct fake_call *call, const struct ml_http_head *head)
{
    check_open(call, ANSWER_NONE, "a head");
    call->private->state = ANSWER_HEAD;
    if (call->private->handler.head)
        call->private->handler.head(call->private->context, head);
}

int fake_may_send(struct fake_call *call, struct ml_err *err)
{
    check_open(call, ANSWER_NONE, "a question");
    return call->private->may_send ? call->private->may_send(call->private->context, err) : 0;
}

void fake_head(struct fake_call *call, int status)
{
    const struct ml_http_head head = {
        .status = status, .retry_after_ms = -1, .content_type = ML_STR("application/json")};
    send_head(call, &head);
}

bool fake_piece_bytes(struct fake_call *call, struct ml_str bytes)
{
    check_open(call, ANSWER_HEAD, "a piece");
    if (!call->private->handler.data)
        return true;
    /* A copy of exactly that size: reading past the piece or keeping it is a sanitizer's find. */
    ML_AUTO_FREE char *copy = ml_alloc(ML_MAX(bytes.len, 1));
    if (bytes.len > 0)
        memcpy(copy, bytes.ptr, bytes.len);
    struct ml_err err = ML_ERR_INIT;
    int r = call->private->handler.data(call->private->context, (struct ml_str){copy, bytes.len},
                                        &err);
    if (call->canceled)
        return false;
    if (r == 0)
        return true;
    assert_int_equal(err.kind, r);
    finish(call, &err);
    return false;
}

bool fake_piece(struct fake_call *call, const char *text)
{
    return fake_piece_bytes(call, ml_str_of(text));
}

void fake_end(struct fake_call *call)
{
    check_open(call, ANSWER_HEAD, "an end");
    finish(call, NULL);
}

void fake_fail(struct fake_call *call, int kind, const char *message)
{
    check_open(call, call->private->state, "a failure");
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, kind, "%s", message);
    finish(call, &err);
}

void fake_reply_head(struct fake_call *call, const struct ml_http_head *head, const char *body)
{
    send_head(call, head);
    if (call->canceled)
        return;
    if (body && *body && !fake_piece(call, body))
        return;
    fake_end(call);
}

void fake_reply(struct fake_call *call, int status, const char *body)
{
    const struct ml_http_head head = {
        .status = status, .retry_after_ms = -1, .content_type = ML_STR("application/json")};
    fake_reply_head(call, &head, body);
}

void fake_refuse(struct fake_call *call, int status, const char *reason, const char *message)
{
    ML_AUTO_FREE char *body = ml_asprintf(
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
        "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
        message, reason, status);
    fake_reply(call, status, body);
}

void fake_set_handler(struct fake_transport *fake,
                      void (*handler)(void *context, struct fake_call *call), void *context)
{
    fake->serve = handler;
    fake->serve_context = context;
}
