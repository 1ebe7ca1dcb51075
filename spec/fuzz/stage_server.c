/* The API server of a stage: what it is asked must be a request that a script may cause, and what
 * it answers the input says, well and badly. */
#include "stage_server.h"

#include <stdio.h>

#include "codec/json.h"

#define REQUEST_PATH_MAX ((size_t)16 * 1024)

struct stage_call {
    struct stage_call *next;
    struct stage *stage;
    struct ml_http_handler handler;
    void *context;
    char *method, *path, *body;
    bool streaming, answering, canceled;
};

static void check_request(const struct ml_transport_request *request)
{
    struct ml_err err = ML_ERR_INIT;
    size_t len = strlen(request->path);
    if (len > REQUEST_PATH_MAX || strncmp(request->path, "/api", 4) != 0)
        stage_found("a path of %zu bytes: %.200s", len, request->path);
    for (size_t i = 0; i < len; i++)
        if (request->path[i] <= ' ' || request->path[i] > '~')
            stage_found("a path with the byte %d: %.200s", request->path[i], request->path);
    const char *query = strchr(request->path, '?');
    size_t plain = query ? (size_t)(query - request->path) : len;
    if (memmem(request->path, plain, "/..", 3) || memmem(request->path, plain, "//", 2) ||
        memmem(request->path, plain, "/./", 3) || memmem(request->path, plain, "%2F", 3) ||
        memmem(request->path, plain, "%2f", 3))
        stage_found("a path to somewhere else: %.200s", request->path);
    if (request->body.len > 0 && ml_json_check(request->body, 0, &err) < 0)
        stage_found("%s %s: the body is no JSON: %s", request->method, request->path, err.message);
}

static struct ml_transport_call *submit(struct ml_transport *transport,
                                        const struct ml_transport_request *request,
                                        const struct ml_http_handler *handler, void *context)
{
    struct stage *stage = ml_container_of(transport, struct stage, transport);
    struct stage_call *call = ml_new(struct stage_call);
    check_request(request);
    call->stage = stage;
    call->handler = *handler;
    call->context = context;
    call->method = ml_strdup(request->method);
    call->path = ml_strdup(request->path);
    call->body = ml_strndup(request->body.ptr ? request->body.ptr : "", request->body.len);
    call->streaming = request->streaming;
    *stage->last = call;
    stage->last = &call->next;
    return (struct ml_transport_call *)call;
}

static void call_free(struct stage_call *call)
{
    free(call->method);
    free(call->path);
    free(call->body);
    free(call);
}

static void unlink_call(struct stage *stage, struct stage_call *call)
{
    struct stage_call **link = &stage->first;
    while (*link && *link != call)
        link = &(*link)->next;
    if (!*link)
        return;
    *link = call->next;
    if (stage->last == &call->next)
        stage->last = link;
}

static void cancel(struct ml_transport *transport, struct ml_transport_call *handle)
{
    struct stage *stage = ml_container_of(transport, struct stage, transport);
    struct stage_call *call = (struct stage_call *)handle;
    unlink_call(stage, call);
    if (stage->watch == call)
        stage->watch = NULL;
    call->canceled = true;
    if (!call->answering)
        call_free(call);
}

static void nothing(struct ml_transport *transport ML_UNUSED)
{
}

static void answer(struct stage_call *call, int status, struct ml_str body)
{
    const struct ml_http_head head = {.status = status,
                                      .retry_after_ms = status == 429 ? 1000 : -1,
                                      .content_type = ML_STR("application/json")};
    struct ml_err err = ML_ERR_INIT;
    unlink_call(call->stage, call);
    call->answering = true;
    if (call->handler.head)
        call->handler.head(call->context, &head);
    int r = 0;
    if (!call->canceled && call->handler.data && body.len > 0) {
        ML_AUTO_FREE char *copy = ml_strndup(body.ptr, body.len);
        r = call->handler.data(call->context, (struct ml_str){copy, body.len}, &err);
    }
    if (!call->canceled)
        call->handler.done(call->context, r < 0 ? &err : NULL);
    call_free(call);
}

static void answer_text(struct stage_call *call, int status, const char *text)
{
    answer(call, status, ml_str_of(text));
}

static void fail(struct stage_call *call, int kind)
{
    struct ml_err err = ML_ERR_INIT;
    ml_err_set(&err, kind, "no answer");
    unlink_call(call->stage, call);
    call->answering = true;
    call->handler.done(call->context, &err);
    call_free(call);
}

static void refuse(struct stage_call *call, int status, const char *reason)
{
    ML_AUTO_FREE char *body = ml_asprintf(
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"%s\","
        "\"message\":\"no: \\n2026-01-01T00:00:00.000Z error forged: %s\\u001b[2J\",\"code\":%d}",
        reason, reason, status);
    answer_text(call, status, body);
}

/* A Pod as it might be answered; mostly what was asked for. */
static char *some_pod(struct stage *stage)
{
    static const char *const parts[] = {
        "\"spec\":{\"items\":[1,2.5,\"x\",{},[],null,1e400,12345678901234567890123]}",
        "\"spec\":{\"number\":1e999,\"\":{\"\":\"\"}},\"status\":{\"phase\":\"Running\"}",
        "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{},null,1]}",
        "\"spec\":null,\"status\":[],\"data\":\"\\u0000\\ud83d\\ude00\\n\\u001b[2J\""};
    static const char *const owners[] = {
        "[{\"controller\":true,\"uid\":\"at-uid\",\"kind\":\"At\",\"name\":\"x\",\"apiVersion\":"
        "\"example.com/v1\"}]",
        "[{\"controller\":true,\"uid\":\"another\",\"kind\":\"At\",\"name\":\"y\",\"apiVersion\":"
        "\"example.com/v1\"}]",
        "[]", "null", "[1,{},null,{\"controller\":\"true\"}]"};
    const char *part = parts[choose(stage->answers, ML_COUNT(parts))];
    const char *owner = owners[choose(stage->answers, ML_COUNT(owners))];
    return ml_asprintf("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x-pod\","
                       "\"namespace\":\"default\",\"uid\":\"pod-uid\",\"resourceVersion\":\"%llu\","
                       "\"labels\":{\"app\":\"x\"},\"ownerReferences\":%s},%s}",
                       (unsigned long long)++stage->rv, owner, part);
}

static void tell_watch(struct stage *stage, const char *type, const char *object)
{
    struct stage_call *watch = stage->watch;
    if (!watch)
        return;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *line = ml_asprintf("{\"type\":\"%s\",\"object\":%s}\n", type, object);
    watch->answering = true;
    int r = watch->handler.data(watch->context, ml_str_of(line), &err);
    watch->answering = false;
    if (!watch->canceled && r == 0)
        return;
    stage->watch = NULL;
    if (!watch->canceled)
        watch->handler.done(watch->context, &err);
    call_free(watch);
}

static void answer_well(struct stage *stage, struct stage_call *call)
{
    bool is_list = strcmp(call->method, "GET") == 0 && !strstr(call->path, "/x") &&
                   !strstr(call->path, "/y") && !strstr(call->path, "/z");
    ML_AUTO_FREE char *pod = some_pod(stage);
    if (is_list) {
        ML_AUTO_FREE char *list = ml_asprintf(
            "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
            "\"resourceVersion\":\"%llu\"},\"items\":[%s,%s]}",
            (unsigned long long)stage->rv, pod, choose(stage->answers, 2) ? pod : "{}");
        answer_text(call, 200, list);
        return;
    }
    bool is_write = strcmp(call->method, "GET") != 0 && strstr(call->path, "/pods");
    answer_text(call, strcmp(call->method, "POST") == 0 ? 201 : 200, pod);
    if (is_write && choose(stage->answers, 4) > 0)
        tell_watch(stage, "MODIFIED", pod);
}

static void answer_badly(struct stage *stage, struct stage_call *call)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"metadata\":1}",
        "{\"metadata\":{\"resourceVersion\":{}}}",
        "\xff",
        "{\"items\":{}}",
        "{\"items\":[[[[1]]],\"x\"]}",
        "{\"items\":[{\"metadata\":[]}]}",
        "<html>",
        "{\"metadata\":{\"uid\":\"at-uid\",\"ownerReferences\":{}}",
        "{\"a\":1,\"a\":{\"a\":2}}",
        "{\"metadata\":{\"name\":\"../x\",\"namespace\":\"a/b\",\"resourceVersion\":\"\\n\"}}"};
    answer_text(call, 200, bodies[choose(stage->answers, ML_COUNT(bodies))]);
}

static void answer_somehow(struct stage *stage, struct stage_call *call)
{
    switch (choose(stage->answers, 12)) {
    case 0:
        refuse(call, 404, "NotFound");
        break;
    case 1:
        refuse(call, 409, "Conflict");
        break;
    case 2:
        refuse(call, 409, "AlreadyExists");
        break;
    case 3:
        refuse(call, 422, "Invalid");
        break;
    case 4:
        refuse(call, 403, "Forbidden");
        break;
    case 5:
        refuse(call, 500, "InternalError");
        break;
    case 6:
        fail(call, choose(stage->answers, 2) ? ML_ENETWORK : ML_ETIMEOUT);
        break;
    case 7:
        answer_badly(stage, call);
        break;
    default:
        answer_well(stage, call);
    }
}

/* A watch, of an informer, stays open. False: it is none. */
static bool open_watch(struct stage *stage, struct stage_call *call)
{
    if (!call->streaming || !strstr(call->path, "watch=1"))
        return false;
    const struct ml_http_head head = {
        .status = 200, .retry_after_ms = -1, .content_type = ML_STR("application/json")};
    unlink_call(stage, call);
    if (stage->watch) {
        fail(call, ML_ENETWORK);
        return true;
    }
    stage->watch = call;
    call->answering = true;
    call->handler.head(call->context, &head);
    call->answering = false;
    if (call->canceled)
        call_free(call);
    return true;
}

struct ml_transport stage_server(void)
{
    return (struct ml_transport){
        .submit = submit, .cancel = cancel, .free = nothing, .host = "fuzz.test:6443"};
}

void stage_server_answer(struct stage *stage, const char *text)
{
    if (text)
        answer_text(stage->first, 200, text);
    else if (!open_watch(stage, stage->first))
        answer_somehow(stage, stage->first);
}
