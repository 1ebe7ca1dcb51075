/* Lists and watches: a call whose answer is passed on as it comes. */
#include "kube/client_internal.h"

#define REFUSAL_LEN_MAX ((size_t)256 * 1024) /* of an answer that is no success */

static void on_head(void *context, const struct ml_http_head *head)
{
    struct ml_client_call *call = context;
    ml_client_call_head(call, head);
    if (head->status == 200 && call->stream.open)
        call->stream.open(call->context); /* may cancel: the last thing done here */
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_client_call *call = context;
    if (call->status == 200)
        return call->stream.data(call->context, piece, err);
    return ml_client_call_keep(call, piece, err);
}

static void on_done(void *context, const struct ml_err *transport_err)
{
    struct ml_client_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    bool failed = ml_client_call_judge(call, transport_err, &err) < 0;
    struct ml_client_stream handler = call->stream;
    void *user = call->context;
    ml_client_call_free(call);
    handler.done(user, failed ? &err : NULL);
}

static const struct ml_http_handler between = {on_head, on_data, on_done};

struct ml_client_call *ml_client_stream(struct ml_client *client, const char *path,
                                        const struct ml_http_deadlines *deadlines,
                                        const struct ml_client_stream *handler, void *context)
{
    struct ml_client_call *call = ml_client_call_new(client, context);
    call->stream = *handler;
    call->deadlines = *deadlines;
    call->wire = (struct ml_client_wire){
        .method = "GET",
        .path = ml_strdup(path),
        .accept = ml_strdup(handler->accept),
    };
    ml_buf_init(&call->answer, REFUSAL_LEN_MAX);
    if (ml_client_paused(client))
        ml_client_call_move(call, CALL_HELD);
    else
        ml_client_call_submit(call, &between);
    return call;
}

void ml_client_release_held(struct ml_client *client)
{
    while (!ml_list_empty(&client->held)) {
        struct ml_client_waiter *waiter = ml_container_of(client->held.next,
                                                          struct ml_client_waiter, node);
        ml_client_call_submit(ml_container_of(waiter, struct ml_client_call, waiter), &between);
    }
}
