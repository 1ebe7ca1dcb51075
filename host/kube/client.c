/* The client: sends requests and streams through the transport, as many at a time as are allowed,
 * makes attempts again where that is safe, counts them, and says which error an answer stands for.
 * Everything above host/kube that talks to the API server does so through this file. */
#include "kube/client.h"

#include "base/escape.h"
#include "base/map.h"
#include "base/wipe.h"
#include "codec/json.h"
#include "net/loop.h"

#include <stdio.h>

#define IN_FLIGHT_DEFAULT 100
#define WAITING_MAX       1000
#define ANSWER_MAX        ((size_t)32 * 1024 * 1024)
#define REFUSAL_MAX       ((size_t)256 * 1024) /* of a stream's answer that is no success */
#define BODY_COPIES       3 /* while it is sent: the client's, the transport's, libcurl's */

/* client-go rest/with_retry.go: an answer is asked for again only where the server says when;
 * a lost connection only for reads. */
#define ATTEMPTS_MAX       10
#define LOST_ATTEMPTS_MAX  4 /* the first, and three more */
#define LOST_DELAY_NS      (200 * ML_NS_PER_MS)
#define RETRY_AFTER_MS_MIN INT64_C(1000)
#define RETRY_AFTER_MS_MAX INT64_C(60000)

#define DOUBT_AFTER_NS (2 * ML_NS_PER_S) /* the last answer */
#define DOUBT_PAUSE_NS (30 * ML_NS_PER_S)
#define DOUBT_MS       5000 /* for the answer about the version */

#define PROBE_NS        (1 * ML_NS_PER_S) /* and up to as much again, at random */
#define SERVER_CODE_MAX 499 /* above, a proxy may speak for a server that is still away */

#define PAUSE_MS_MIN   INT64_C(1000) /* also when the server did not say, or said 0 or nonsense */
#define PAUSE_MS_MAX   INT64_C(60000)
#define UNREADY_LOG_NS (10 * ML_NS_PER_S)

#define WARNINGS_MAX 256
#define NO_ANSWER    "<error>" /* client-go's word */

static const struct ml_http_deadlines ordinary_deadlines = {
    .connect_ms = 10000,
    .first_byte_ms = 34000, /* the limit of the API server for a write */
    .total_ms = 60000,      /* its limit for all requests but watches */
};
/* Nothing that the server does for a read takes longer, and a dead connection is left within 30 s.
 */
#define READ_MS 25000

/* ---- a request on the wire ---- */

/* A request in the form of the transport. */
struct wire {
    const char *method;       /* static */
    const char *content_type; /* static, or NULL */
    char *path;               /* with query */
    char *accept;             /* or NULL */
    struct ml_buf body;
    bool secret; /* body and answer */
};

static const struct {
    const char *method;
    const char *content_type;
} verbs[] = {
    [ML_VERB_GET] = {"GET", NULL},
    [ML_VERB_CREATE] = {"POST", "application/json"},
    [ML_VERB_UPDATE] = {"PUT", "application/json"},
    [ML_VERB_PATCH_MERGE] = {"PATCH", "application/merge-patch+json"},
    [ML_VERB_APPLY] = {"PATCH", "application/apply-patch+yaml"},
    [ML_VERB_DELETE] = {"DELETE", "application/json"},
};

static bool has_field_manager(enum ml_verb verb)
{
    return verb != ML_VERB_GET && verb != ML_VERB_DELETE;
}

static char *make_request_path(const struct ml_client_request *request)
{
    if (!request->kind)
        return ml_strdup(request->path);
    ML_AUTO(ml_buf_fini) struct ml_buf path = ML_BUF_INIT;
    struct ml_str name = request->verb == ML_VERB_CREATE && request->subresource.len == 0
                             ? ML_STR("") /* POST goes to the collection */
                             : request->name;
    ml_kind_path(request->kind, request->ns, name, request->subresource, &path);
    if (request->field_manager && has_field_manager(request->verb))
        ml_url_query(&path, "fieldManager", ml_str_of(request->field_manager));
    if (request->verb == ML_VERB_APPLY && request->force)
        ml_url_query(&path, "force", ML_STR("true"));
    if (request->dry_run)
        ml_url_query(&path, "dryRun", ML_STR("All"));
    return ml_buf_take(&path);
}

/* DeleteOptions. Background is the default for most kinds, but not for Jobs. */
static void make_delete_body(const struct ml_client_request *request, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("DeleteOptions"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_string(&writer, "propagationPolicy",
                       request->foreground ? ML_STR("Foreground") : ML_STR("Background"));
    if (request->uid || request->resource_version) {
        ml_json_key(&writer, ML_STR("preconditions"));
        ml_json_begin_object(&writer);
        if (request->uid)
            ml_json_put_string(&writer, "uid", ml_str_of(request->uid));
        if (request->resource_version)
            ml_json_put_string(&writer, "resourceVersion", ml_str_of(request->resource_version));
        ml_json_end_object(&writer);
    }
    ml_json_end_object(&writer);
}

static void wire_make(const struct ml_client_request *request, struct wire *out)
{
    ml_assert(!request->kind != !request->path);
    ml_assert(request->kind || request->verb == ML_VERB_GET);
    ml_assert(request->verb != ML_VERB_APPLY || request->field_manager);
    /* Without a name a DELETE would empty the collection. */
    ml_assert(request->verb == ML_VERB_GET || request->verb == ML_VERB_CREATE ||
              request->name.len > 0);
    *out = (struct wire){
        .method = verbs[request->verb].method,
        .content_type = verbs[request->verb].content_type,
        .path = make_request_path(request),
        .accept = ml_strdup(request->accept),
        .secret = request->secret,
    };
    if (request->verb == ML_VERB_DELETE)
        make_delete_body(request, &out->body);
    else if (request->verb != ML_VERB_GET)
        ml_buf_append_str(&out->body, request->body);
}

static void wire_fini(struct wire *wire)
{
    free(wire->path);
    free(wire->accept);
    if (wire->secret)
        ml_wipe_buf(&wire->body);
    ml_buf_fini(&wire->body);
}

/* ---- the error that an answer stands for ----
 *
 * Errors come from a Status object, or from whatever else an answer without success has as its
 * body: reason before code, as apimachinery's pkg/api/errors decides. */

#define TEXT_LEN_MAX 200 /* of an answer that is no Status */

static const struct {
    const char *reason;
    int kind;
} reasons[] = {
    {"Unauthorized", ML_EUNAUTHORIZED},
    {"Forbidden", ML_EFORBIDDEN},
    {"NotFound", ML_ENOT_FOUND},
    {"AlreadyExists", ML_EALREADY_EXISTS},
    {"Conflict", ML_ECONFLICT},
    {"Gone", ML_EGONE},
    {"Expired", ML_EGONE},
    {"Invalid", ML_EINVALID},
    {"BadRequest", ML_EINVALID},
    {"RequestEntityTooLarge", ML_EINVALID},
    {"Timeout", ML_ETIMEOUT},
    {"ServerTimeout", ML_ETIMEOUT},
    {"TooManyRequests", ML_ETOO_MANY},
    {"MethodNotAllowed", ML_EUNSUPPORTED},
    {"NotAcceptable", ML_EUNSUPPORTED},
    {"UnsupportedMediaType", ML_EUNSUPPORTED},
    {"InternalError", ML_ESERVER},
    {"StoreReadError", ML_ESERVER},
    {"ServiceUnavailable", ML_EUNAVAILABLE},
};

static const struct {
    int code;
    int kind;
    const char *text;
} codes[] = {
    {400, ML_EINVALID, "Bad Request"},
    {401, ML_EUNAUTHORIZED, "Unauthorized"},
    {403, ML_EFORBIDDEN, "Forbidden"},
    {404, ML_ENOT_FOUND, "Not Found"},
    {405, ML_EUNSUPPORTED, "Method Not Allowed"},
    {406, ML_EUNSUPPORTED, "Not Acceptable"},
    {407, ML_EFORBIDDEN, "Proxy Authentication Required"},
    {408, ML_ETIMEOUT, "Request Timeout"},
    {409, ML_ECONFLICT, "Conflict"},
    {410, ML_EGONE, "Gone"},
    {413, ML_EINVALID, "Request Entity Too Large"},
    {415, ML_EUNSUPPORTED, "Unsupported Media Type"},
    {422, ML_EINVALID, "Unprocessable Entity"},
    {429, ML_ETOO_MANY, "Too Many Requests"},
    {500, ML_ESERVER, "Internal Server Error"},
    {502, ML_EUNAVAILABLE, "Bad Gateway"},
    {503, ML_EUNAVAILABLE, "Service Unavailable"},
    {504, ML_ETIMEOUT, "Gateway Timeout"},
};

static int kind_of_code(int code)
{
    for (size_t i = 0; i < ML_COUNT(codes); i++)
        if (codes[i].code == code)
            return codes[i].kind;
    if (code >= 500)
        return ML_ESERVER;
    return code >= 400 ? ML_EINVALID : ML_EINTERNAL;
}

static const char *text_of_code(int code)
{
    for (size_t i = 0; i < ML_COUNT(codes); i++)
        if (codes[i].code == code)
            return codes[i].text;
    return "";
}

static int kind_of_reason(struct ml_str reason, int code)
{
    for (size_t i = 0; i < ML_COUNT(reasons); i++)
        if (ml_str_is(reason, reasons[i].reason))
            return reasons[i].kind;
    return kind_of_code(code);
}

/* Server-side apply answers a plain 500 when the object does not fit the schema
 * (apiserver endpoints/handlers/patch.go): trying again does not help. */
static bool is_schema_mismatch(int code, const char *message)
{
    return code == 500 && strstr(message, "typed patch object") != NULL;
}

/* A message for the middle of a sentence: without its full stop. */
static void clean_status_line(struct ml_str text, size_t len_max, char *out)
{
    text = ml_str_head(ml_str_trim(text), len_max);
    while (text.len > 0 && text.ptr[text.len - 1] == '.')
        text.len--;
    ml_clean_line(text, out, len_max + 1);
}

/* "HTTP 502 Bad Gateway", and as much of the body as helps a person. */
static int set_error_without_status(struct ml_err *err, struct ml_str body, int http)
{
    const char *text = text_of_code(http);
    int kind = kind_of_code(http);
    char line[TEXT_LEN_MAX + 1];
    clean_status_line(body, TEXT_LEN_MAX, line);
    const char *detail = line;
    if (*line == '<')
        detail = "an HTML page, so a proxy and not the API server answered";
    else if (*line == '{' || *line == '[')
        detail = "JSON, but no Status object";
    ml_err_set(err, kind, "HTTP %d%s%s%s%s", http, *text ? " " : "", text, *detail ? ": " : "",
               detail);
    err->http = http;
    return kind;
}

static bool status_has_cause(struct ml_str json, const char *reason)
{
    struct ml_str causes;
    if (!ml_json_find(json, &causes, "details", "causes", NULL))
        return false;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, causes, 0);
    bool found = false;
    bool in_reason = false;
    for (;;) {
        enum ml_json_token token = ml_json_next(&reader);
        if (token == ML_JSON_END || token == ML_JSON_ERROR)
            return found;
        found = found || (in_reason && token == ML_JSON_STRING && ml_str_is(reader.text, reason));
        in_reason = token == ML_JSON_KEY && ml_str_is(reader.text, "reason");
    }
}

static int64_t find_status_int(struct ml_str json, const char *first, const char *second)
{
    struct ml_str raw;
    int64_t value = -1;
    if (ml_json_find(json, &raw, first, second, NULL) && !ml_str_to_i64(raw, &value))
        return -1;
    return value;
}

static int64_t status_retry_after_ms(struct ml_str json)
{
    int64_t seconds = find_status_int(json, "details", "retryAfterSeconds");
    return seconds > 0 && seconds < INT32_MAX ? seconds * 1000 : -1;
}

int ml_status_error(struct ml_str json, int http, struct ml_err *err)
{
    ML_AUTO_FREE char *kind = ml_json_find_string(json, "kind", NULL);
    if (!kind || strcmp(kind, "Status") != 0)
        return set_error_without_status(err, json, http);
    ML_AUTO_FREE char *reason = ml_json_find_string(json, "reason", NULL);
    ML_AUTO_FREE char *message = ml_json_find_string(json, "message", NULL);
    int64_t stated = find_status_int(json, "code", NULL);
    int code = http >= 400 || stated < 100 || stated > 999 ? http : (int)stated;
    char line[ML_ERR_MESSAGE_MAX];
    clean_status_line(ml_str_of(message ? message : ""), sizeof line - 1, line);
    if (!*line)
        snprintf(line, sizeof line, "HTTP %d %s", code, reason ? reason : text_of_code(code));
    int result = kind_of_reason(ml_str_of(reason ? reason : ""), code);
    if (is_schema_mismatch(code, line))
        result = ML_EINVALID;
    bool rv_too_large = status_has_cause(json, "ResourceVersionTooLarge");
    ml_err_set(err, rv_too_large ? ML_ETIMEOUT : result, "%s", line);
    err->http = code;
    err->retry_after_ms = status_retry_after_ms(json);
    snprintf(err->reason, sizeof err->reason, "%s",
             rv_too_large ? "ResourceVersionTooLarge"
             : reason     ? reason
                          : "");
    return err->kind;
}

/* ---- the requests that wait for a place ---- */

/* Requests that wait for a place, in flows: one flow for each controller. The flows take turns, so
 * that a controller with many requests does not delay the others. Requests that yield come last. */
struct client_waiter {
    struct ml_list node;
    struct client_flow *flow; /* NULL: yields, or does not wait */
};

struct client_queue {
    struct ml_list flows; /* the next one first */
    struct ml_list yielding;
    size_t len;
};

/* The requests of one controller; freed when none of them waits. */
struct client_flow {
    struct ml_list node;
    struct ml_list waiters;
    char name[];
};

static void client_queue_init(struct client_queue *queue)
{
    *queue = (struct client_queue){.len = 0};
    ml_list_init(&queue->flows);
    ml_list_init(&queue->yielding);
}

/* A linear search: there are as many flows as controllers, a few. */
static struct client_flow *find_or_add_flow(struct client_queue *queue, const char *name)
{
    ml_list_each_entry (struct client_flow, flow, &queue->flows) {
        if (strcmp(flow->name, name) == 0)
            return flow;
    }
    size_t size = strlen(name) + 1;
    struct client_flow *flow = ml_zalloc(sizeof *flow + size);
    memcpy(flow->name, name, size);
    ml_list_init(&flow->waiters);
    ml_list_push(&queue->flows, &flow->node);
    return flow;
}

/* `flow` is copied; NULL is a flow too. */
static void client_queue_add(struct client_queue *queue, struct client_waiter *waiter,
                             const char *flow, bool yields)
{
    waiter->flow = yields ? NULL : find_or_add_flow(queue, flow ? flow : "");
    ml_list_push(yields ? &queue->yielding : &waiter->flow->waiters, &waiter->node);
    queue->len++;
}

static void client_queue_remove(struct client_queue *queue, struct client_waiter *waiter)
{
    struct client_flow *flow = ml_take(&waiter->flow);
    ml_list_remove(&waiter->node);
    queue->len--;
    if (flow && ml_list_empty(&flow->waiters)) {
        ml_list_remove(&flow->node);
        free(flow);
    }
}

/* The next request, which stays in the queue; NULL: none waits. Each call moves on to the next
 * flow. */
static struct client_waiter *client_queue_next(struct client_queue *queue)
{
    struct ml_list *first = queue->flows.next;
    if (first != &queue->flows) {
        struct client_flow *flow = ml_container_of(first, struct client_flow, node);
        ml_list_remove(first);
        ml_list_push(&queue->flows, first);
        return ml_container_of(flow->waiters.next, struct client_waiter, node);
    }
    first = queue->yielding.next;
    return first == &queue->yielding ? NULL : ml_container_of(first, struct client_waiter, node);
}

/* ---- the pause after a 429 ---- */

/* After a 429 of an overloaded server the process sends nothing at all for a while. */
struct client_pause {
    struct ml_loop *loop;
    struct ml_random *random;
    struct ml_log *log;
    struct ml_timer over;
    int64_t until_ns;
    bool logged;
    int64_t unready_until_ns; /* no second line about a resource that cannot be served until then */
    struct ml_metric *count;  /* or NULL */
};

static bool client_is_paused(const struct client_pause *pause)
{
    return ml_timer_active(&pause->over);
}

static void client_pause_init(struct client_pause *pause, const struct ml_client_opts *opts,
                              void (*over)(void *context), void *context)
{
    pause->loop = opts->loop;
    pause->random = opts->random;
    pause->log = opts->log;
    ml_timer_init(&pause->over, opts->loop, over, context);
    if (opts->metrics)
        pause->count = ml_metric_only(ml_metrics_counter(
            opts->metrics, "moonloop_throttled_total",
            "Answers 429 of an overloaded API server; each paused the process.", NULL));
}

/* Up to a tenth more: clients that were refused together come back apart. */
static int64_t pause_length_ms(struct client_pause *pause, int64_t asked_ms)
{
    int64_t ms = ML_MAX(PAUSE_MS_MIN, ML_MIN(asked_ms, PAUSE_MS_MAX));
    return ML_MIN(ms + ml_random_between(pause->random, 0, ms / 10 + 1), PAUSE_MS_MAX);
}

/* An attempt is over: its answer's code, 0 without one, and after a 429 how long the server asked
 * us to wait (below 0: no Retry-After). */
static void client_pause_note(struct client_pause *pause, int status, int64_t retry_after_ms)
{
    if (status != 429) {
        if (pause->logged && status > 0)
            ml_info(pause->log, "client", "the API server takes requests again");
        pause->logged = pause->logged && status == 0;
        return;
    }
    if (pause->count)
        ml_metric_add(pause->count, 1);
    int64_t ms = pause_length_ms(pause, retry_after_ms);
    int64_t until_ns = ml_clock_monotonic(ml_loop_clock(pause->loop)) + ms * ML_NS_PER_MS;
    if (!pause->logged)
        ml_warn(pause->log, "client", "the API server is overloaded; pausing all requests",
                ML_F("seconds", (double)ms / 1000));
    pause->logged = true;
    /* Of several answers the longest counts. */
    if (client_is_paused(pause) && until_ns <= pause->until_ns)
        return;
    pause->until_ns = until_ns;
    ml_timer_start(&pause->over, ms * ML_NS_PER_MS);
}

/* The same after a 429 that is about its request alone: nothing pauses, and a line is logged, at
 * most one in ten seconds. */
static void client_pause_note_unready(struct client_pause *pause, const char *path,
                                      const struct ml_err *err)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(pause->loop));
    struct ml_str resource = {path, strcspn(path, "?")};
    if (now_ns < pause->unready_until_ns)
        return;
    pause->unready_until_ns = now_ns + UNREADY_LOG_NS;
    ml_warn(pause->log, "client",
            "the API server cannot serve a resource for now; only its requests wait",
            ML_STR_FIELD("path", resource), ML_ERR(err));
}

/* ---- metrics, and the warnings of the server ---- */

/* Metrics of the client's requests, as in client-go; and the server's warnings. */
struct client_metrics {
    struct ml_metric_family *requests, *duration; /* NULL: nothing is counted */
    struct ml_metric *waiting;                    /* or NULL */
    const char *host;
    struct ml_log *log;
    struct ml_map warnings; /* the texts of Warning headers that were logged */
    bool warnings_full;
};

/* Answers of trouble are there at 0 from the start: increase() sees the first one. */
static void register_troubles(const struct client_metrics *self)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    static const char *const labels[] = {"401", "403", "429", "500",
                                         "502", "503", "504", NO_ANSWER};
    for (size_t i = 0; i < ML_COUNT(methods); i++)
        for (size_t j = 0; j < ML_COUNT(labels); j++)
            (void)ml_metric_with(self->requests,
                                 ml_metric_labels(labels[j], methods[i], self->host));
}

static void client_metrics_init(struct client_metrics *self, const struct ml_client_opts *opts)
{
    static const char *const request_labels[] = {"code", "method", "host", NULL};
    static const char *const duration_labels[] = {"verb", "host", NULL};
    static const double buckets[] = {0.005, 0.025, 0.1, 0.25, 0.5,  1.0,
                                     2.0,   4.0,   8.0, 15.0, 30.0, 60.0};
    struct ml_metrics *metrics = opts->metrics;
    *self = (struct client_metrics){.host = opts->transport->host, .log = opts->log};
    if (!metrics)
        return;
    self->requests = ml_metrics_counter(metrics, "rest_client_requests_total",
                                        "Number of HTTP requests, partitioned by status code, "
                                        "method, and host.",
                                        request_labels);
    self->duration = ml_metrics_histogram(metrics, "rest_client_request_duration_seconds",
                                          "Request latency in seconds until the answer's head. "
                                          "Broken down by verb, and host.",
                                          duration_labels, buckets, ML_COUNT(buckets));
    register_troubles(self);
    self->waiting = ml_metric_only(
        ml_metrics_gauge(metrics, "moonloop_requests_waiting",
                         "Requests that wait for a place, or for the end of a pause.", NULL));
}

static void client_metrics_fini(struct client_metrics *self)
{
    ml_map_each (&self->warnings, cursor, text)
        free(text);
    ml_map_fini(&self->warnings);
}

/* An attempt got the head of its answer; `status` 0: it ended without one. */
static void client_metrics_attempt(const struct client_metrics *self, const char *method,
                                   int status, int64_t took_ns)
{
    if (!self->requests)
        return;
    char code[16] = NO_ANSWER;
    if (status > 0)
        snprintf(code, sizeof code, "%d", status);
    ml_metric_add(ml_metric_with(self->requests, ml_metric_labels(code, method, self->host)), 1);
    ml_metric_observe(ml_metric_with(self->duration, ml_metric_labels(method, self->host)),
                      (double)took_ns / (double)ML_NS_PER_S);
}

/* Logs each text once, with the first request that got it. */
static void client_metrics_warning(struct client_metrics *self, const struct wire *request,
                                   struct ml_str text)
{
    if (text.len == 0 || self->warnings_full || ml_map_get(&self->warnings, text))
        return;
    if (self->warnings.len == WARNINGS_MAX) {
        self->warnings_full = true;
        ml_warn(self->log, "client", "further warnings of the API server are not logged",
                ML_I("distinct", WARNINGS_MAX));
        return;
    }
    char *copy = ml_str_dup(text);
    ml_map_put(&self->warnings, (struct ml_str){copy, text.len}, copy);
    const char *query = strchr(request->path, '?');
    size_t len = query ? (size_t)(query - request->path) : strlen(request->path);
    ml_warn(self->log, "client", "warning of the API server", ML_STR_FIELD("warning", text),
            ML_S("verb", request->method),
            ML_STR_FIELD("path", ((struct ml_str){request->path, len})));
}

/* ---- client and calls ---- */

struct ml_client {
    struct ml_loop *loop;
    struct ml_transport *transport;
    struct ml_random *random;
    ml_client_fence *fence;
    void *fence_context;
    bool exempt;
    size_t calls; /* of any state */
    size_t in_flight;
    size_t in_flight_max;
    struct client_queue queue;
    struct ml_list held; /* streams, until the pause is over */
    struct client_pause pause;
    int64_t answered_ns;          /* the last answer, monotonic */
    int64_t answers_since_ns;     /* INT64_MAX: it does not */
    struct ml_client_call *doubt; /* NULL: not under way */
    int64_t doubt_again_ns;
    struct ml_client *same_server;
    struct ml_list awaiting; /* struct ml_client_await */
    struct ml_timer probe;   /* until one of them is to look whether the server is back */
    struct client_metrics metrics;
    struct ml_server_clock server_clock; /* unused with `same_server` */
};

/* WAITING -> SENT -> over, or SENT -> BACKOFF -> WAITING for another attempt. REFUSED: the client
 * itself refuses it, done() comes from the loop. A stream is HELD or SENT. */
enum call_state { CALL_NEW, CALL_WAITING, CALL_SENT, CALL_BACKOFF, CALL_REFUSED, CALL_HELD };

struct ml_client_call {
    struct ml_client *client;
    struct client_waiter waiter; /* in the queue, or held */
    enum call_state state;
    char *flow;
    bool yields;
    struct wire wire;
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
    struct ml_timer backoff;
    struct ml_task refused;
    struct ml_err *refusal; /* NULL: none */
};

static int64_t client_now_ns(const struct ml_client *client)
{
    return ml_clock_monotonic(ml_loop_clock(client->loop));
}

static struct ml_server_clock *client_server_clock(struct ml_client *client)
{
    return client->same_server ? &client->same_server->server_clock : &client->server_clock;
}

/* ---- waiting for a server that can be reached ---- */

static void start_probe_timer(struct ml_client *client)
{
    ml_timer_start(&client->probe, PROBE_NS + ml_random_between(client->random, 0, PROBE_NS));
}

static void let_one_probe(void *context)
{
    struct ml_client *client = context;
    ml_list_each_entry (struct ml_client_await, await, &client->awaiting) {
        if (!await->probes)
            continue;
        ml_list_remove(&await->node);
        start_probe_timer(client);
        await->again(await->context, false);
        return;
    }
}

static bool is_awaiting(const struct ml_client_await *await)
{
    return await->node.next && !ml_list_empty(&await->node);
}

void ml_client_await(struct ml_client *client, struct ml_client_await *await)
{
    if (!is_awaiting(await))
        ml_list_push(&client->awaiting, &await->node);
    if (await->probes)
        start_probe_timer(client); /* it has just looked */
}

void ml_client_await_stop(struct ml_client_await *await)
{
    if (is_awaiting(await))
        ml_list_remove(&await->node);
}

bool ml_client_unanswered(const struct ml_err *err)
{
    if (err->http == 0)
        return err->kind == ML_ENETWORK || err->kind == ML_ETIMEOUT || err->kind == ML_ETLS;
    return err->http >= 502 && err->http <= 504 && err->retry_after_ms < 0;
}

static void notify_awaiting(struct ml_client *client)
{
    for (struct ml_list *node; (node = ml_list_shift(&client->awaiting)) != NULL;) {
        struct ml_client_await *await = ml_container_of(node, struct ml_client_await, node);
        await->again(await->context, true);
    }
}

static void note_answer(struct ml_client *client, int status)
{
    if (status == 401)
        return;
    client->answered_ns = client_now_ns(client);
    client->answers_since_ns = ML_MIN(client->answers_since_ns, client->answered_ns);
}

static void notify_server_answered(struct ml_client *client, int status)
{
    if (status > SERVER_CODE_MAX)
        return;
    note_answer(client, status);
    notify_awaiting(client);
    if (client->same_server) {
        note_answer(client->same_server, status);
        notify_awaiting(client->same_server);
    }
}

static void on_doubt_answered(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_client *client = context;
    (void)body;
    client->doubt = NULL;
    if (err && (ml_client_unanswered(err) || err->http == 401))
        client->answers_since_ns = INT64_MAX;
}

void ml_client_doubt(struct ml_client *client)
{
    const struct ml_client_request request = {
        .verb = ML_VERB_GET,
        .path = "/version",
        .timeout_ms = DOUBT_MS,
    };
    int64_t now_ns = client_now_ns(client);
    if (client->doubt || now_ns - client->answered_ns < DOUBT_AFTER_NS ||
        now_ns < client->doubt_again_ns)
        return;
    client->doubt_again_ns = now_ns + DOUBT_PAUSE_NS;
    client->doubt = ml_client_send(client, &request, on_doubt_answered, client);
}

int64_t ml_client_answers_since(const struct ml_client *client)
{
    return client->doubt ? INT64_MAX : client->answers_since_ns;
}

/* ---- a call, be it a request or a stream ---- */

static bool call_is_stream(const struct ml_client_call *call)
{
    return call->done == NULL;
}

static bool call_writes(const struct ml_client_call *call)
{
    return strcmp(call->wire.method, "GET") != 0;
}

/* `status` 0: no answer came. */
static void count_attempt(const struct ml_client_call *call, int status)
{
    const struct ml_client *client = call->client;
    client_metrics_attempt(&client->metrics, call->wire.method, status,
                           client_now_ns(client) - call->sent_ns);
}

static void client_call_set_state(struct ml_client_call *call, enum call_state state)
{
    struct ml_client *client = call->client;
    if (call->state == CALL_WAITING)
        client_queue_remove(&client->queue, &call->waiter);
    if (state == CALL_WAITING)
        client_queue_add(&client->queue, &call->waiter, call->flow, call->yields);
    if (call->state == CALL_HELD)
        ml_list_remove(&call->waiter.node);
    if (state == CALL_HELD)
        ml_list_push(&client->held, &call->waiter.node);
    if (client->metrics.waiting)
        ml_metric_add(client->metrics.waiting,
                      (state == CALL_WAITING) - (call->state == CALL_WAITING));
    call->state = state;
}

/* It must not be under way. */
static void client_call_free(struct ml_client_call *call)
{
    client_call_set_state(call, CALL_NEW);
    call->client->calls--;
    ml_timer_stop(&call->backoff);
    ml_task_cancel(&call->refused);
    if (call->wire.secret)
        ml_wipe_buf(&call->answer);
    wire_fini(&call->wire);
    ml_buf_fini(&call->answer);
    ml_budget_give(call->budget, call->request_charged + call->answer_charged);
    free(call->flow);
    free(call->refusal);
    free(call);
}

static int refuse_oversized(const struct ml_client_call *call, const char *what, struct ml_err *err)
{
    return ml_err_set(err, ML_ELIMIT, "%s %s: out of memory for the %s (limit %zu KiB)",
                      call->wire.method, call->wire.path, what, call->budget->max / 1024);
}

static int charge_request(struct ml_client_call *call, struct ml_budget *budget, struct ml_err *err)
{
    size_t bytes = strlen(call->wire.path) + BODY_COPIES * call->wire.body.len;
    call->budget = budget;
    if (!ml_budget_take(budget, bytes))
        return refuse_oversized(call, "request", err);
    call->request_charged = bytes;
    return 0;
}

static int ask_fence(const struct ml_client_call *call, struct ml_err *err)
{
    const struct ml_client *client = call->client;
    if (!client->fence || !call_writes(call))
        return 0;
    return client->fence(client->fence_context, call->wire.method, call->wire.path, err);
}

/* The last moment of all: the request may have waited for a connection, and the process may have
 * been suspended since the fence was asked first. */
static int ask_fence_before_bytes_leave(void *context, struct ml_err *err)
{
    return ask_fence(context, err);
}

static void client_call_submit(struct ml_client_call *call, const struct ml_http_handler *handler)
{
    struct ml_transport *transport = call->client->transport;
    const struct ml_transport_request request = {
        .method = call->wire.method,
        .path = call->wire.path,
        .accept = call->wire.accept,
        .content_type = call->wire.content_type,
        .body = ml_buf_str(&call->wire.body),
        .deadlines = call->deadlines,
        .streaming = call_is_stream(call),
        .may_send = call_writes(call) ? ask_fence_before_bytes_leave : NULL,
    };
    client_call_set_state(call, CALL_SENT);
    call->status = 0;
    call->retry_after_ms = -1;
    ml_buf_fini(&call->answer); /* of the attempt before */
    ml_budget_give(call->budget, call->answer_charged);
    call->answer_charged = 0;
    call->attempts++;
    call->sent_ns = client_now_ns(call->client);
    call->sent = transport->submit(transport, &request, handler, call);
}

static void on_request_head(void *context, const struct ml_http_head *head)
{
    struct ml_client_call *call = context;
    call->status = head->status;
    call->retry_after_ms = head->retry_after_ms;
    count_attempt(call, head->status);
    client_metrics_warning(&call->client->metrics, &call->wire, head->warning);
    ml_server_clock_note(client_server_clock(call->client),
                         client_now_ns(call->client) - call->sent_ns, head->date_s);
    notify_server_answered(call->client, head->status);
}

static int on_request_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_client_call *call = context;
    if (!ml_budget_take(call->budget, piece.len))
        return refuse_oversized(call, "answer", err);
    call->answer_charged += piece.len;
    if (!ml_buf_append_str(&call->answer, piece))
        return ml_err_set(err, ML_ELIMIT, "%s %s: the answer is larger than %zu bytes",
                          call->wire.method, call->wire.path, call->answer.len_max);
    return 0;
}

/* A success may still carry a Status that says Failure. Searching the plain bytes first spares
 * us parsing all other answers. */
static bool is_hidden_failure(struct ml_str body)
{
    static const char needle[] = "\"Failure\"";
    if (body.len == 0 || !memmem(body.ptr, body.len, needle, sizeof needle - 1))
        return false;
    ML_AUTO_FREE char *kind = ml_json_find_string(body, "kind", NULL);
    ML_AUTO_FREE char *status = ml_json_find_string(body, "status", NULL);
    return kind && status && !strcmp(kind, "Status") && !strcmp(status, "Failure");
}

/* 0, or the error that the attempt ended with. */
static int attempt_result(const struct ml_client_call *call, const struct ml_err *transport_err,
                          struct ml_err *err)
{
    struct ml_str body = ml_buf_str(&call->answer);
    bool stream = call_is_stream(call);
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

/* A 429 that is no overload. A server that has too much to do refuses with a plain text, before it
 * looks at the request (apiserver's server/filters, tooManyRequests); one that cannot serve this
 * resource for now, or this object, says so in a Status. */
static bool is_about_the_request(const struct ml_client_call *call, const struct ml_err *err)
{
    return call->status == 429 && err->kind == ML_ETOO_MANY && err->reason[0];
}

static int end_attempt(struct ml_client_call *call, const struct ml_err *transport_err,
                       struct ml_err *err)
{
    call->sent = NULL;
    if (call->status == 0)
        count_attempt(call, 0);
    int r = attempt_result(call, transport_err, err);
    if (is_about_the_request(call, err))
        client_pause_note_unready(&call->client->pause, call->wire.path, err);
    else if (!call->client->exempt)
        client_pause_note(&call->client->pause, call->status, r < 0 ? err->retry_after_ms : -1);
    return r;
}

/* ---- one request and one answer ---- */

/* Nothing of client or call is touched once done() was called, so that it may free the client. */
static void request_finish(struct ml_client_call *call, const struct ml_err *err)
{
    ml_client_done *done = call->done;
    void *context = call->context;
    ML_AUTO(ml_buf_fini) struct ml_buf answer = call->answer;
    call->answer = ML_BUF_INIT;
    client_call_free(call);
    done(context, ml_buf_str(&answer), err);
}

static void on_request_refused(void *context)
{
    struct ml_client_call *call = context;
    ML_AUTO_FREE struct ml_err *err = ml_take(&call->refusal);
    request_finish(call, err);
}

/* Ends it with the error; nothing is sent. */
static void request_refuse(struct ml_client_call *call, const struct ml_err *err)
{
    call->refusal = ml_new(struct ml_err);
    *call->refusal = *err;
    client_call_set_state(call, CALL_REFUSED);
    ml_task_defer(&call->refused, call->client->loop);
}

/* Up to half as much again: clients that were refused together come back apart. */
static int64_t add_jitter(const struct ml_client_call *call, int64_t delay_ns)
{
    return delay_ns + ml_random_between(call->client->random, 0, delay_ns / 2 + 1);
}

static int64_t delay_after_lost_connection(const struct ml_client_call *call)
{
    if (call_writes(call) || call->attempts >= LOST_ATTEMPTS_MAX)
        return -1;
    return add_jitter(call, LOST_DELAY_NS << (call->attempts - 1));
}

static int64_t delay_that_was_asked(const struct ml_client_call *call, int64_t asked_ms)
{
    int64_t delay_ms = ML_MAX(RETRY_AFTER_MS_MIN, ML_MIN(asked_ms, RETRY_AFTER_MS_MAX));
    return add_jitter(call, delay_ms * ML_NS_PER_MS);
}

/* A write may have happened all the same. */
static int64_t delay_after_server_error(const struct ml_client_call *call)
{
    if (call_writes(call) || call->retry_after_ms < 0 || call->attempts >= ATTEMPTS_MAX)
        return -1;
    return delay_that_was_asked(call, call->retry_after_ms);
}

/* It was not executed, so a write is sent again as well. */
static int64_t delay_after_429(const struct ml_client_call *call, const struct ml_err *err)
{
    if (call->client->exempt || err->retry_after_ms < 0 || call->attempts >= ATTEMPTS_MAX)
        return -1;
    return is_about_the_request(call, err) ? delay_that_was_asked(call, err->retry_after_ms) : 0;
}

/* Nanoseconds until the next attempt; 0: when the pause is over; below 0: this was the last. */
static int64_t retry_delay(const struct ml_client_call *call, const struct ml_err *err)
{
    if (call->status == 429)
        return delay_after_429(call, err);
    if (err->http == 0)
        return err->kind == ML_ENETWORK ? delay_after_lost_connection(call) : -1;
    return err->http >= 500 ? delay_after_server_error(call) : -1;
}

static void client_pump(struct ml_client *client);

static void on_backoff_over(void *context)
{
    struct ml_client_call *call = context;
    client_call_set_state(call, CALL_WAITING);
    client_pump(call->client);
}

static void on_request_done(void *context, const struct ml_err *transport_err)
{
    struct ml_client_call *call = context;
    struct ml_client *client = call->client;
    struct ml_err err = ML_ERR_INIT;
    client->in_flight--;
    bool failed = end_attempt(call, transport_err, &err) < 0;
    int64_t delay_ns = failed ? retry_delay(call, &err) : -1;
    if (delay_ns == 0) {
        client_call_set_state(call, CALL_WAITING);
    } else if (delay_ns > 0) {
        client_call_set_state(call, CALL_BACKOFF);
        ml_timer_start(&call->backoff, delay_ns);
    }
    client_pump(client);
    if (delay_ns < 0)
        request_finish(call, failed ? &err : NULL);
}

/* Sends requests while there are places. */
static void client_pump(struct ml_client *client)
{
    static const struct ml_http_handler handler = {on_request_head, on_request_data,
                                                   on_request_done};
    struct client_waiter *waiter;
    while (!client_is_paused(&client->pause) && client->in_flight < client->in_flight_max &&
           (waiter = client_queue_next(&client->queue))) {
        struct ml_client_call *call = ml_container_of(waiter, struct ml_client_call, waiter);
        struct ml_err err = ML_ERR_INIT;
        /* Only now: the fence may have been shut since the request was queued. */
        if (ask_fence(call, &err) < 0) {
            request_refuse(call, &err);
            continue;
        }
        client->in_flight++;
        client_call_submit(call, &handler);
    }
}

static struct ml_client_call *client_call_new(struct ml_client *client, void *context)
{
    struct ml_client_call *call = ml_new(struct ml_client_call);
    call->client = client;
    call->context = context;
    client->calls++;
    ml_list_init(&call->waiter.node);
    ml_timer_init(&call->backoff, client->loop, on_backoff_over, call);
    ml_task_init(&call->refused, on_request_refused, call);
    return call;
}

static struct ml_http_deadlines request_deadlines(const struct ml_client_request *request)
{
    struct ml_http_deadlines deadlines = ordinary_deadlines;
    if (request->verb == ML_VERB_GET)
        deadlines.first_byte_ms = READ_MS;
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
    struct ml_client_call *call = client_call_new(client, context);
    call->done = done;
    call->flow = ml_strdup(request->flow);
    call->yields = request->yields;
    call->deadlines = request_deadlines(request);
    wire_make(request, &call->wire);
    ml_buf_init(&call->answer, ANSWER_MAX);
    struct ml_err err = ML_ERR_INIT;
    if (charge_request(call, request->budget, &err) < 0) {
        request_refuse(call, &err);
        return call;
    }
    if (client->queue.len >= WAITING_MAX) {
        ml_err_set(&err, ML_EUNAVAILABLE,
                   "%s %s was not sent: %d requests wait for the API server already",
                   call->wire.method, call->wire.path, WAITING_MAX);
        request_refuse(call, &err);
        return call;
    }
    client_call_set_state(call, CALL_WAITING);
    client_pump(client);
    return call;
}

/* ---- lists and watches: the answer is passed on as it comes ---- */

static void on_stream_head(void *context, const struct ml_http_head *head)
{
    struct ml_client_call *call = context;
    on_request_head(call, head);
    if (head->status == 200 && call->stream.open)
        call->stream.open(call->context); /* may cancel: the last thing done here */
}

static int on_stream_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_client_call *call = context;
    if (call->status == 200)
        return call->stream.data(call->context, piece, err);
    return on_request_data(call, piece, err);
}

static void on_stream_done(void *context, const struct ml_err *transport_err)
{
    struct ml_client_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    bool failed = end_attempt(call, transport_err, &err) < 0;
    struct ml_client_stream handler = call->stream;
    void *user = call->context;
    client_call_free(call);
    handler.done(user, failed ? &err : NULL);
}

static const struct ml_http_handler stream_handler = {on_stream_head, on_stream_data,
                                                      on_stream_done};

struct ml_client_call *ml_client_stream(struct ml_client *client, const char *path,
                                        const struct ml_http_deadlines *deadlines,
                                        const struct ml_client_stream *handler, void *context)
{
    struct ml_client_call *call = client_call_new(client, context);
    call->stream = *handler;
    call->deadlines = *deadlines;
    call->wire = (struct wire){
        .method = "GET",
        .path = ml_strdup(path),
        .accept = ml_strdup(handler->accept),
    };
    ml_buf_init(&call->answer, REFUSAL_MAX);
    if (client_is_paused(&client->pause))
        client_call_set_state(call, CALL_HELD);
    else
        client_call_submit(call, &stream_handler);
    return call;
}

/* ---- the client ---- */

void ml_client_cancel(struct ml_client_call *call)
{
    struct ml_client *client = call->client;
    if (call->sent)
        client->transport->cancel(client->transport, call->sent);
    if (call->state == CALL_SENT && !call_is_stream(call))
        client->in_flight--;
    client_call_free(call);
    client_pump(client);
}

static void on_pause_over(void *context)
{
    struct ml_client *client = context;
    while (!ml_list_empty(&client->held)) {
        struct client_waiter *waiter = ml_container_of(client->held.next, struct client_waiter,
                                                       node);
        client_call_submit(ml_container_of(waiter, struct ml_client_call, waiter), &stream_handler);
    }
    client_pump(client);
}

struct ml_client *ml_client_new(const struct ml_client_opts *opts)
{
    struct ml_client *client = ml_new(struct ml_client);
    client->loop = opts->loop;
    client->transport = opts->transport;
    client->random = opts->random;
    client->exempt = opts->exempt;
    client->same_server = opts->same_server;
    client->answers_since_ns = INT64_MAX;
    client->in_flight_max = opts->in_flight_max ? opts->in_flight_max : IN_FLIGHT_DEFAULT;
    client_queue_init(&client->queue);
    ml_list_init(&client->held);
    ml_list_init(&client->awaiting);
    ml_timer_init(&client->probe, client->loop, let_one_probe, client);
    client_pause_init(&client->pause, opts, on_pause_over, client);
    client_metrics_init(&client->metrics, opts);
    ml_server_clock_init(&client->server_clock, ml_loop_clock(client->loop), opts->log,
                         client->same_server ? NULL : opts->metrics);
    return client;
}

void ml_client_free(struct ml_client *client)
{
    if (!client)
        return;
    if (client->doubt)
        ml_client_cancel(ml_take(&client->doubt));
    ml_assert(client->calls == 0);
    ml_timer_stop(&client->pause.over);
    ml_timer_stop(&client->probe);
    client_metrics_fini(&client->metrics);
    free(client);
}

const struct ml_server_clock *ml_client_server_clock(const struct ml_client *client)
{
    return client->same_server ? &client->same_server->server_clock : &client->server_clock;
}

bool ml_client_is_local(const struct ml_client *client)
{
    return client->transport->local;
}

bool ml_client_has_bookmarks(const struct ml_client *client)
{
    return client->transport->bookmarks;
}

int ml_client_ask_fence(const struct ml_client *client, const char *method, const char *path,
                        struct ml_err *err)
{
    return client->fence ? client->fence(client->fence_context, method, path, err) : 0;
}

void ml_client_set_fence(struct ml_client *client, ml_client_fence *fence, void *context)
{
    client->fence = fence;
    client->fence_context = context;
}
