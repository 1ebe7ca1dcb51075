/* Requests to the embedded API server as calls of the transport seam, and the faults that tests
 * inject into them. */
#include "cluster/host/transport_embedded.h"

#include "codec/json.h"
#include "net/http_client.h"

#define HEADERS_MAX 4
#define WAITING_MAX ((size_t)256 * 1024 * 1024)

struct transport_embedded {
    struct ml_transport seam;
    struct ml_loop *loop;
    struct ml_apiserver *server; /* NULL: nobody listens */
    char *authorization;
    struct ml_list rules; /* the faults; oldest first */
    int last_rule;
    void (*observe)(void *context, const struct ml_transport_request *request); /* or NULL */
    void *observer;
    struct ml_list calls;
    struct ml_list ended_calls; /* calls that are over, freed in their next turn */
};

/* ---- faults, and the requests that they fit ---- */

struct rule {
    struct ml_list node;
    int number;
    struct ml_fault fault; /* strings owned */
    size_t times_left;     /* 0: without end */
};

static void rule_free(struct rule *rule)
{
    ml_list_remove(&rule->node);
    free((char *)rule->fault.method);
    free((char *)rule->fault.path);
    free((char *)rule->fault.reason);
    free(rule);
}

/* The oldest fault that fits the request, of those that hold or of the others. */
static struct rule *find_rule(const struct transport_embedded *transport, bool holds,
                              const char *method, const char *path)
{
    ml_list_each_entry (struct rule, rule, &transport->rules) {
        const struct ml_fault *fault = &rule->fault;
        if ((fault->kind == ML_FAULT_HOLD) == holds &&
            (!fault->method || strcmp(fault->method, method) == 0) &&
            (!fault->path || strstr(path, fault->path)))
            return rule;
    }
    return NULL;
}

static void write_refusal_status(const struct ml_fault *fault, struct ml_buf *out)
{
    struct ml_json_writer writer;
    const char *reason = fault->reason ? fault->reason : "";
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("Status"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "status", ML_STR("Failure"));
    ml_json_put_string(&writer, "message", ML_STR("injected fault"));
    ml_json_put_string(&writer, "reason", ml_str_of(reason));
    ml_json_put_int(&writer, "code", fault->status);
    ml_json_end_object(&writer);
}

/* ---- calls ---- */

/* The server's side of a call; the caller's side follows from the loop. */
enum call_stage { CALL_WAITS, CALL_OPEN, CALL_ENDED, CALL_CUT };

struct ml_transport_call {
    struct ml_list node;
    struct transport_embedded *transport;
    struct ml_http_handler handler;
    void *context;
    bool is_gone; /* over for its caller; its next turn frees it */

    char *method, *path, *accept, *content_type; /* as in the request; copies */
    struct ml_buf body;
    bool streaming;

    /* Injected. */
    struct ml_err loss; /* the answer is lost, and the call ends with this; kind 0: it is not */
    bool is_cut;        /* after so many more bytes of the body: */
    size_t bytes_left;
    size_t held_bytes; /* of `waiting`, by a fault that holds the stream */

    enum call_stage stage;
    bool handling;    /* inside ml_apiserver_handle: the call must not be freed */
    bool is_canceled; /* there */
    struct ml_apiserver_call *server_call;
    struct ml_http_head_parser head;
    bool head_delivered;
    struct ml_buf waiting; /* bytes of the answer not delivered yet */
    struct ml_err err;     /* CUT */

    struct ml_task turn;
    struct ml_http_deadlines deadlines;
    struct ml_timer total, quiet; /* quiet: up to the head, then between bytes */
};

static void embedded_call_release(struct ml_transport_call *call)
{
    ml_task_cancel(&call->turn);
    ml_list_remove(&call->node);
    ml_http_head_fini(&call->head);
    ml_buf_fini(&call->waiting);
    ml_buf_fini(&call->body);
    free(call->method);
    free(call->path);
    free(call->accept);
    free(call->content_type);
    free(call);
}

/* The call is over. Its next turn frees it, because its own turn or the server may be on the stack
 * now. */
static void embedded_call_free(struct ml_transport_call *call)
{
    ml_timer_stop(&call->total);
    ml_timer_stop(&call->quiet);
    ml_list_remove(&call->node);
    ml_list_push(&call->transport->ended_calls, &call->node);
    call->is_gone = true;
    ml_task_defer(&call->turn, call->transport->loop);
}

/* Tells the server that the client has gone. */
static void embedded_leave_server(struct ml_transport_call *call)
{
    struct ml_apiserver_call *server_call = ml_take(&call->server_call);
    if (server_call)
        ml_apiserver_gone(server_call);
}

static void embedded_call_done(struct ml_transport_call *call, const struct ml_err *err)
{
    const struct ml_http_handler handler = call->handler;
    void *context = call->context;
    if (call->loss.kind)
        err = &call->loss;
    const struct ml_err copy = err ? *err : ML_ERR_INIT;
    embedded_leave_server(call);
    embedded_call_free(call);
    handler.done(context, err ? &copy : NULL);
}

static void embedded_call_wake(struct ml_transport_call *call)
{
    if (!call->handling) /* else its turn goes on */
        ml_task_defer(&call->turn, call->transport->loop);
}

static void embedded_call_cut(struct ml_transport_call *call, const char *why)
{
    call->stage = CALL_CUT;
    ml_err_set(&call->err, ML_ENETWORK, "%s: %s", call->transport->seam.host, why);
    embedded_call_wake(call);
}

static int set_connection_lost(const struct ml_transport_call *call, struct ml_err *err)
{
    return ml_err_set(err, ML_ENETWORK, "%s: connection lost (injected)",
                      call->transport->seam.host);
}

static bool is_call_held(const struct ml_transport_call *call)
{
    return call->streaming && find_rule(call->transport, true, call->method, call->path);
}

static bool is_call_over(const struct ml_transport_call *call)
{
    return call->stage == CALL_ENDED || call->stage == CALL_CUT;
}

/* The sink. Nothing reaches the caller before the loop's next turn. Send, finish and abort end the
 * server's side of the call. */

static void put_head_field(struct ml_transport_call *call, const char *name, const char *value)
{
    ML_AUTO_FREE char *line = ml_asprintf("%s: %s", name, value);
    (void)ml_http_head_line(&call->head, ml_str_of(line));
}

static void embedded_sink_start(void *context, const struct ml_http_answer *head)
{
    struct ml_transport_call *call = context;
    if (head->content_type)
        put_head_field(call, "Content-Type", head->content_type);
    for (size_t i = 0; i < head->header_count; i++)
        put_head_field(call, head->headers[i].name, head->headers[i].value);
    call->head.head.status = head->status;
    call->head.complete = true;
    embedded_call_wake(call);
}

static size_t embedded_sink_write(void *context, struct ml_str bytes)
{
    struct ml_transport_call *call = context;
    ml_buf_append_str(&call->waiting, bytes);
    embedded_call_wake(call);
    return call->waiting.len - call->held_bytes;
}

static void embedded_sink_finish(void *context)
{
    struct ml_transport_call *call = context;
    call->server_call = NULL;
    call->stage = CALL_ENDED;
    embedded_call_wake(call);
}

static void embedded_sink_send(void *context, const struct ml_http_answer *answer)
{
    embedded_sink_start(context, answer);
    (void)embedded_sink_write(context, answer->body);
    embedded_sink_finish(context);
}

static void embedded_sink_abort(void *context)
{
    struct ml_transport_call *call = context;
    call->server_call = NULL;
    embedded_call_cut(call, "connection cut in the middle of an answer");
}

static void embedded_call_ask_server(struct ml_transport_call *call)
{
    static const struct ml_apiserver_sink sink = {.send = embedded_sink_send,
                                                  .start = embedded_sink_start,
                                                  .write = embedded_sink_write,
                                                  .finish = embedded_sink_finish,
                                                  .abort = embedded_sink_abort};
    struct transport_embedded *transport = call->transport;
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_apiserver_request request = {
        .method = call->method, .headers = headers, .body = ml_buf_str(&call->body)};
    size_t count = 0;
    headers[count++] = (struct ml_http_header){"accept", call->accept};
    headers[count++] = (struct ml_http_header){"user-agent", "moonloop/" MOONLOOP_VERSION};
    if (call->content_type)
        headers[count++] = (struct ml_http_header){"content-type", call->content_type};
    if (transport->authorization)
        headers[count++] = (struct ml_http_header){"authorization", transport->authorization};
    request.header_count = count;
    request.query = ml_str_of(call->path);
    request.path = ml_str_cut(&request.query, '?');
    call->stage = CALL_OPEN;
    call->handling = true;
    call->server_call = ml_apiserver_handle(transport->server, &request, &sink, call);
    call->handling = false;
    if (!call->is_canceled)
        return;
    embedded_leave_server(call);
    embedded_call_free(call);
}

static void deliver_answer_head(struct ml_transport_call *call)
{
    call->head_delivered = true;
    if (call->handler.head && !call->loss.kind)
        call->handler.head(call->context, &call->head.head);
}

/* Passes on as much of the piece as no fault takes away. */
static int deliver_piece(struct ml_transport_call *call, struct ml_str piece, struct ml_err *err)
{
    bool is_cut_here = call->is_cut && piece.len >= call->bytes_left;
    int r = 0;
    if (call->is_cut) {
        piece.len = ML_MIN(piece.len, call->bytes_left);
        call->bytes_left -= piece.len;
    }
    if (call->handler.data && !call->loss.kind && piece.len > 0)
        r = call->handler.data(call->context, piece, err);
    return r == 0 && is_cut_here ? set_connection_lost(call, err) : r;
}

static void deliver_answer_bytes(struct ml_transport_call *call)
{
    ML_AUTO(ml_buf_fini) struct ml_buf bytes = call->waiting;
    struct ml_err err = ML_ERR_INIT;
    ml_buf_init(&call->waiting, WAITING_MAX);
    call->held_bytes = 0;
    int r = bytes.failed ? ml_err_set(&err, ML_ENETWORK, "%s: more than 256 MiB at once",
                                      call->transport->seam.host)
                         : deliver_piece(call, ml_buf_str(&bytes), &err);
    if (!call->is_gone && r != 0)
        embedded_call_done(call, &err);
}

/* All that came has been delivered, or is held. */
static void finish_call_turn(struct ml_transport_call *call)
{
    if (is_call_over(call) && is_call_held(call)) {
        ml_timer_stop(&call->total);
        ml_timer_stop(&call->quiet);
    } else if (is_call_over(call)) {
        embedded_call_done(call, call->stage == CALL_CUT ? &call->err : NULL);
    } else if (call->head_delivered && call->deadlines.idle_ms > 0) {
        ml_timer_start(&call->quiet, call->deadlines.idle_ms * ML_NS_PER_MS);
    } else if (call->head_delivered) {
        ml_timer_stop(&call->quiet);
    }
}

/* Each step may end the call. */
static void on_call_turn(void *context)
{
    struct ml_transport_call *call = context;
    if (call->is_gone) {
        embedded_call_release(call);
        return;
    }
    if (call->stage == CALL_WAITS && !call->transport->server)
        embedded_call_cut(call, "connection refused");
    if (call->stage == CALL_WAITS)
        embedded_call_ask_server(call);
    if (!call->is_gone && call->head.complete && !call->head_delivered)
        deliver_answer_head(call);
    if (!call->is_gone && is_call_held(call))
        call->held_bytes = call->waiting.len;
    else if (!call->is_gone && call->waiting.len > 0)
        deliver_answer_bytes(call);
    if (!call->is_gone)
        finish_call_turn(call);
}

/* The same messages as http_client.c. */

static void end_late_call(struct ml_transport_call *call)
{
    embedded_leave_server(call);
    call->stage = CALL_CUT;
    finish_call_turn(call);
}

static void on_total_deadline(void *context)
{
    struct ml_transport_call *call = context;
    ml_err_set(&call->err, ML_ETIMEOUT, "request to %s: not done within %g s",
               call->transport->seam.host, (double)call->deadlines.total_ms / 1000);
    end_late_call(call);
}

static void on_quiet_deadline(void *context)
{
    struct ml_transport_call *call = context;
    const char *host = call->transport->seam.host;
    if (call->head_delivered)
        ml_err_set(&call->err, ML_ETIMEOUT, "answer of %s stalled: no byte for %g s", host,
                   (double)call->deadlines.idle_ms / 1000);
    else
        ml_err_set(&call->err, ML_ETIMEOUT, "no answer from %s within %g s", host,
                   (double)call->deadlines.first_byte_ms / 1000);
    end_late_call(call);
}

static void start_call_deadlines(struct ml_transport_call *call)
{
    struct ml_loop *loop = call->transport->loop;
    ml_timer_init(&call->total, loop, on_total_deadline, call);
    ml_timer_init(&call->quiet, loop, on_quiet_deadline, call);
    if (call->deadlines.total_ms > 0)
        ml_timer_start(&call->total, call->deadlines.total_ms * ML_NS_PER_MS);
    if (call->deadlines.first_byte_ms > 0)
        ml_timer_start(&call->quiet, call->deadlines.first_byte_ms * ML_NS_PER_MS);
}

static void refuse_call(struct ml_transport_call *call, const struct ml_fault *fault)
{
    ML_AUTO(ml_buf_fini) struct ml_buf status = ML_BUF_INIT;
    write_refusal_status(fault, &status);
    embedded_sink_send(call, &(struct ml_http_answer){.status = fault->status,
                                                      .content_type = "application/json",
                                                      .body = ml_buf_str(&status)});
}

/* Applies the oldest fault that fits a new call, other than HOLD, and counts down its `times`. */
static void strike_call(struct ml_transport_call *call)
{
    struct rule *rule = find_rule(call->transport, false, call->method, call->path);
    if (!rule)
        return;
    const struct ml_fault *fault = &rule->fault;
    call->is_cut = fault->kind == ML_FAULT_CUT;
    call->bytes_left = fault->bytes;
    if (fault->kind == ML_FAULT_REFUSE) {
        refuse_call(call, fault);
    } else if (fault->kind == ML_FAULT_LOSE) {
        set_connection_lost(call, &call->err);
        call->stage = CALL_CUT;
    } else if (fault->kind == ML_FAULT_LOSE_REPLY) {
        set_connection_lost(call, &call->loss);
    } else if (fault->kind == ML_FAULT_TIME_OUT) {
        ml_err_set(&call->loss, ML_ETIMEOUT, "%s: no answer in time (injected)",
                   call->transport->seam.host);
    }
    if (rule->times_left && --rule->times_left == 0)
        rule_free(rule);
}

static struct ml_transport_call *embedded_submit(struct ml_transport *seam,
                                                 const struct ml_transport_request *request,
                                                 const struct ml_http_handler *handler,
                                                 void *context)
{
    struct transport_embedded *transport = ml_container_of(seam, struct transport_embedded, seam);
    struct ml_transport_call *call = ml_new(struct ml_transport_call);
    call->transport = transport;
    call->handler = *handler;
    call->context = context;
    call->method = ml_strdup(request->method);
    call->path = ml_strdup(request->path);
    call->accept = ml_strdup(request->accept ? request->accept : "application/json");
    call->content_type = ml_strdup(request->content_type);
    call->streaming = request->streaming;
    call->deadlines = request->deadlines;
    call->err = call->loss = ML_ERR_INIT;
    ml_buf_init(&call->waiting, WAITING_MAX);
    ml_buf_init(&call->body, request->body.len + 1);
    ml_buf_append_str(&call->body, request->body);
    ml_http_head_init(&call->head);
    ml_task_init(&call->turn, on_call_turn, call);
    ml_list_push(&transport->calls, &call->node);
    start_call_deadlines(call);
    if (transport->observe)
        transport->observe(transport->observer, request);
    strike_call(call);
    embedded_call_wake(call);
    return call;
}

static void embedded_cancel(struct ml_transport *seam, struct ml_transport_call *call)
{
    (void)seam;
    call->is_canceled = true;
    if (call->handling)
        return;
    embedded_leave_server(call);
    embedded_call_free(call);
}

static void embedded_free(struct ml_transport *seam)
{
    struct transport_embedded *transport = ml_container_of(seam, struct transport_embedded, seam);
    ml_assert(ml_list_empty(&transport->calls));
    ml_list_each (node, &transport->ended_calls)
        embedded_call_release(ml_container_of(node, struct ml_transport_call, node));
    ml_list_each_entry (struct rule, rule, &transport->rules)
        rule_free(rule);
    free(transport->authorization);
    free(transport);
}

struct ml_transport *ml_transport_embedded_new(struct ml_loop *loop, struct ml_apiserver *server,
                                               const char *token)
{
    struct transport_embedded *transport = ml_new(struct transport_embedded);
    transport->seam = (struct ml_transport){
        .submit = embedded_submit,
        .cancel = embedded_cancel,
        .free = embedded_free,
        .host = "embedded",
        .local = true,
        .bookmarks = true,
    };
    transport->loop = loop;
    transport->server = server;
    transport->authorization = token ? ml_asprintf("Bearer %s", token) : NULL;
    ml_list_init(&transport->rules);
    ml_list_init(&transport->calls);
    ml_list_init(&transport->ended_calls);
    return &transport->seam;
}

void ml_transport_embedded_set_server(struct ml_transport *seam, struct ml_apiserver *server)
{
    struct transport_embedded *transport = ml_container_of(seam, struct transport_embedded, seam);
    transport->server = server;
    ml_list_each_entry (struct ml_transport_call, call, &transport->calls) {
        if (call->stage != CALL_OPEN)
            continue;
        embedded_leave_server(call);
        embedded_call_cut(call, "connection cut in the middle of an answer");
    }
}

int ml_transport_embedded_add_fault(struct ml_transport *seam, const struct ml_fault *fault)
{
    struct transport_embedded *transport = ml_container_of(seam, struct transport_embedded, seam);
    struct rule *rule = ml_new(struct rule);
    rule->number = ++transport->last_rule;
    rule->fault = *fault;
    rule->fault.method = ml_strdup(fault->method);
    rule->fault.path = ml_strdup(fault->path);
    rule->fault.reason = ml_strdup(fault->reason);
    rule->times_left = fault->times;
    ml_list_push(&transport->rules, &rule->node);
    return rule->number;
}

void ml_transport_embedded_remove_fault(struct ml_transport *seam, int number)
{
    struct transport_embedded *transport = ml_container_of(seam, struct transport_embedded, seam);
    ml_list_each_entry (struct rule, rule, &transport->rules)
        if (rule->number == number)
            rule_free(rule);
    ml_list_each_entry (struct ml_transport_call, call, &transport->calls) {
        if ((call->held_bytes > 0 || is_call_over(call)) && !is_call_held(call))
            embedded_call_wake(call);
    }
}

void ml_transport_embedded_observe(struct ml_transport *seam,
                                   void (*observe)(void *context,
                                                   const struct ml_transport_request *request),
                                   void *context)
{
    struct transport_embedded *transport = ml_container_of(seam, struct transport_embedded, seam);
    transport->observe = observe;
    transport->observer = context;
}
