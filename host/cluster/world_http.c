/* ctx.http in a test's world: every origin is allowed, and a function of the test answers, by
 * lua/cluster/testing/http.lua. Made by world.c. */
#include "cluster/world_http.h"

#include "codec/base64.h"
#include "codec/json.h"

struct world_http {
    struct ml_outbound seam;
    struct ml_loop *loop;
    struct ml_trusted *trusted;
};

struct ml_outbound_call {
    struct world_http *world;
    struct ml_buf request; /* JSON, for Lua */
    int (*may_send)(void *context, struct ml_err *err);
    ml_outbound_done *done;
    void *context;
    struct ml_task task;
};

static bool allows_all(struct ml_outbound *seam, const char *origin)
{
    (void)seam, (void)origin;
    return true;
}

static void put_base64(struct ml_json_writer *writer, const char *key, struct ml_str bytes)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    (void)ml_base64_encode(bytes, &text);
    ml_json_put_string(writer, key, ml_buf_str(&text));
}

static void write_request(const struct ml_outbound_request *request, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "method", ml_str_of(request->method));
    ml_json_put_string(&writer, "url", ml_str_of(request->url));
    ml_json_key(&writer, ML_STR("headers"));
    ml_json_begin_object(&writer);
    for (size_t i = 0; i < request->header_count; i++)
        ml_json_put_string(&writer, request->headers[i].name, ml_str_of(request->headers[i].value));
    ml_json_end_object(&writer);
    put_base64(&writer, "body", request->body);
    ml_json_end_object(&writer);
}

/* What http.lua returned. */
static int read_answer(struct ml_str json, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO_FREE char *message = ml_json_find_string(json, "message", NULL);
    ML_AUTO_FREE char *kind = ml_json_find_string(json, "kind", NULL);
    ML_AUTO_FREE char *body = ml_json_find_string(json, "body", NULL);
    struct ml_str head;
    if (message)
        return ml_err_set(err, kind && strcmp(kind, "Timeout") == 0 ? ML_ETIMEOUT : ML_ENETWORK,
                          "%s", message);
    if (!body || !ml_json_find(json, &head, "head", NULL))
        return ml_err_set(err, ML_ENETWORK, "world.http: no answer");
    ml_buf_append_str(out, head);
    ml_buf_putc(out, '\n');
    size_t before = out->len;
    if (!ml_base64_decode(ml_str_of(body), out) || out->len - before > ML_OUTBOUND_BODY_MAX)
        return ml_err_set(err, ML_ELIMIT, "the answer has more than 1 MiB");
    return 0;
}

static void call_free(struct ml_outbound_call *call)
{
    ml_task_cancel(&call->task);
    ml_buf_fini(&call->request);
    free(call);
}

static void on_call_turn(void *context)
{
    struct ml_outbound_call *call = context;
    ML_AUTO(ml_buf_fini) struct ml_buf result = ML_BUF_INIT, answer = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    int r = call->may_send ? call->may_send(call->context, &err) : 0;
    if (r == 0 && ml_trusted_call(call->world->trusted, "cluster.testing.http", "answer",
                                  ml_buf_str(&call->request), &result, &err) < 0)
        r = ml_err_set(&err, ML_ENETWORK, "world.http: %s",
                       ml_trusted_traceback(call->world->trusted));
    if (r == 0)
        r = read_answer(ml_buf_str(&result), &answer, &err);
    call->done(call->context, ml_buf_str(&answer), r < 0 ? &err : NULL);
    call_free(call);
}

static struct ml_outbound_call *send_to_test(struct ml_outbound *seam,
                                             const struct ml_outbound_request *request,
                                             ml_outbound_done *done, void *context)
{
    struct world_http *self = ml_container_of(seam, struct world_http, seam);
    struct ml_outbound_call *call = ml_new(struct ml_outbound_call);
    call->world = self;
    call->may_send = request->may_send;
    call->done = done;
    call->context = context;
    write_request(request, &call->request);
    ml_task_init(&call->task, on_call_turn, call);
    ml_task_defer(&call->task, self->loop);
    return call;
}

static void cancel_call(struct ml_outbound *seam, struct ml_outbound_call *call)
{
    (void)seam;
    call_free(call);
}

struct ml_outbound *ml_world_http_new(struct ml_loop *loop, struct ml_trusted *trusted)
{
    struct world_http *self = ml_new(struct world_http);
    self->seam = (struct ml_outbound){allows_all, send_to_test, cancel_call};
    self->loop = loop;
    self->trusted = trusted;
    return &self->seam;
}

void ml_world_http_free(struct ml_outbound *outbound)
{
    if (outbound)
        free(ml_container_of(outbound, struct world_http, seam));
}
