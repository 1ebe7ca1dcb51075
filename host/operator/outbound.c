/* Sends the requests of ctx.http: their queue, the limits of answers, and the options of the owner.
 */
#include "operator/outbound.h"

#include "codec/json.h"
#include "net/address.h"
#include "net/http_client.h"
#include "net/tls.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#define IN_FLIGHT_MAX    64
#define ORIGINS_MAX      64
#define CA_MAX           ((size_t)1024 * 1024)
#define FIELDS_MAX       128
#define FIELDS_BYTES_MAX ((size_t)64 * 1024)

struct origin {
    char *text;
    struct ml_metric *seconds; /* NULL: nothing is counted */
};

struct outbound {
    struct ml_outbound seam;
    struct ml_loop *loop;
    struct ml_http_client *http;
    struct origin origins[ORIGINS_MAX];
    size_t origin_count;
    char *proxy;
    struct ml_buf ca;
    struct ml_http_tls tls;
    struct ml_list waiting;
    size_t in_flight;
    struct ml_metric_family *requests;
    struct ml_metric *waits;
    struct ml_metrics_collector collector;
};

/* A field of the answer, several of one name joined. */
struct field {
    char *name; /* in lower case */
    struct ml_buf value;
};

struct ml_outbound_call {
    struct outbound *outbound;
    struct ml_list node; /* while it waits */
    ml_outbound_done *done;
    void *context;
    int (*may_send)(void *context, struct ml_err *err);
    struct ml_budget *budget;
    size_t charged;
    int64_t begun_ns, due_ns; /* monotonic */
    int64_t timeout_ms;
    char *origin;                 /* of the url */
    const struct origin *allowed; /* that covers it; NULL: none */

    /* The request, until it is sent. */
    char *method, *url;
    struct ml_http_header *headers;
    size_t header_count;
    struct ml_str body;

    struct ml_http_call *sent; /* NULL: it waits, or is over */
    int status;
    struct field fields[FIELDS_MAX];
    size_t field_count, field_bytes;
    bool too_many_fields;
    struct ml_buf answer; /* the body */
};

static void send_next(struct outbound *self);

/* ---- metrics ---- */

static void collect_waiting(void *context)
{
    struct outbound *self = context;
    size_t count = 0;
    ml_list_each (node, &self->waiting)
        count++;
    ml_metric_set(self->waits, (double)count);
}

static void register_metrics(struct outbound *self, struct ml_metrics *metrics)
{
    if (!metrics)
        return;
    self->requests = ml_metrics_counter(
        metrics, "moonloop_http_requests_total",
        "Requests of scripts by ctx.http, by origin and status or kind of the error.",
        ml_metric_labels("origin", "code"));
    self->waits = ml_metric_only(
        ml_metrics_gauge(metrics, "moonloop_http_requests_waiting",
                         "Requests of scripts that wait until fewer are under way.", NULL));
    self->collector = (struct ml_metrics_collector){.collect = collect_waiting, .context = self};
    ml_metrics_on_collect(metrics, &self->collector);
}

/* Counters that any origin can have exist at 0 from the start: an alert sees the first event. */
static void register_origin(struct outbound *self, struct origin *origin,
                            struct ml_metrics *metrics)
{
    static const double buckets[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
    static const char *const codes[] = {"200", "Timeout",   "Network",
                                        "TLS", "Forbidden", "LimitExceeded"};
    if (!metrics)
        return;
    origin->seconds = ml_metric_with(
        ml_metrics_histogram(metrics, "moonloop_http_request_duration_seconds",
                             "Time of a request by ctx.http until its answer is complete, with its "
                             "wait.",
                             ml_metric_labels("origin"), buckets, ML_COUNT(buckets)),
        ml_metric_labels(origin->text));
    for (size_t i = 0; i < ML_COUNT(codes); i++)
        (void)ml_metric_with(self->requests, ml_metric_labels(origin->text, codes[i]));
}

/* The origin itself wins over patterns of it. */
static const struct origin *find_origin(const struct outbound *self, const char *text)
{
    const struct origin *found = NULL;
    for (size_t i = 0; i < self->origin_count; i++) {
        const struct origin *origin = &self->origins[i];
        if (strcasecmp(origin->text, text) == 0)
            return origin;
        if (!found && ml_origin_covers(origin->text, text))
            found = origin;
    }
    return found;
}

static void count_call(const struct ml_outbound_call *call, const struct ml_err *err)
{
    const struct outbound *self = call->outbound;
    const struct origin *origin = call->allowed;
    char code[16];
    if (!origin || !origin->seconds)
        return;
    snprintf(code, sizeof code, "%d", call->status);
    ml_metric_add(
        ml_metric_with(self->requests,
                       ml_metric_labels(origin->text, err ? ml_err_name(err->kind) : code)),
        1);
    ml_metric_observe(origin->seconds,
                      (double)(ml_clock_monotonic(ml_loop_clock(self->loop)) - call->begun_ns) /
                          (double)ML_NS_PER_S);
}

/* ---- life of a call ---- */

static void forget_request(struct ml_outbound_call *call)
{
    for (size_t i = 0; i < call->header_count; i++) {
        free((char *)call->headers[i].name);
        free((char *)call->headers[i].value);
    }
    free(ml_take(&call->headers));
    free(ml_take(&call->method));
    free(ml_take(&call->url));
    free((char *)call->body.ptr);
    call->header_count = 0;
    call->body = (struct ml_str){NULL, 0};
}

static void call_free(struct ml_outbound_call *call)
{
    forget_request(call);
    ml_budget_give(call->budget, call->charged);
    free(call->origin);
    for (size_t i = 0; i < call->field_count; i++) {
        free(call->fields[i].name);
        ml_buf_fini(&call->fields[i].value);
    }
    ml_buf_fini(&call->answer);
    free(call);
}

/* Whom the budget belongs to may be gone when done() returns: nothing is charged to it then. */
static void call_finish(struct ml_outbound_call *call, struct ml_str answer,
                        const struct ml_err *err)
{
    ml_budget_give(call->budget, call->charged);
    call->charged = 0;
    call->budget = NULL;
    count_call(call, err);
    call->done(call->context, answer, err);
    call_free(call);
}

static bool call_charge(struct ml_outbound_call *call, size_t bytes)
{
    if (!ml_budget_take(call->budget, bytes))
        return false;
    call->charged += bytes;
    return true;
}

static int no_memory(const struct ml_outbound_call *call, struct ml_err *err)
{
    return ml_err_set(err, ML_ELIMIT, "no memory left for it in the budget of the script (%zu KiB)",
                      call->budget ? call->budget->max / 1024 : 0);
}

/* ---- the answer ---- */

static struct field *field_get(struct ml_outbound_call *call, struct ml_str name)
{
    for (size_t i = 0; i < call->field_count; i++)
        if (strlen(call->fields[i].name) == name.len &&
            strncasecmp(call->fields[i].name, name.ptr, name.len) == 0)
            return &call->fields[i];
    if (call->field_count == FIELDS_MAX)
        return NULL;
    struct field *field = &call->fields[call->field_count++];
    field->name = ml_str_dup(name);
    for (char *at = field->name; *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + ('a' - 'A') : *at);
    ml_buf_init(&field->value, FIELDS_BYTES_MAX);
    return field;
}

static void on_field(void *context, struct ml_str name, struct ml_str value)
{
    struct ml_outbound_call *call = context;
    call->field_bytes += name.len + value.len + 2;
    struct field *field = call->field_bytes <= FIELDS_BYTES_MAX ? field_get(call, name) : NULL;
    if (!field) {
        call->too_many_fields = true;
        return;
    }
    if (field->value.len > 0)
        ml_buf_puts(&field->value, ", ");
    ml_buf_append_str(&field->value, value);
}

static void on_head(void *context, const struct ml_http_head *head)
{
    struct ml_outbound_call *call = context;
    call->status = head->status;
}

static int on_piece(void *context, struct ml_str piece, struct ml_err *err)
{
    struct ml_outbound_call *call = context;
    if (call->too_many_fields)
        return ml_err_set(err, ML_ELIMIT, "the answer has more than %d header fields or 64 KiB",
                          FIELDS_MAX);
    if (piece.len > ML_OUTBOUND_BODY_MAX - call->answer.len)
        return ml_err_set(err, ML_ELIMIT, "the answer has more than 1 MiB");
    if (!call_charge(call, piece.len))
        return no_memory(call, err);
    ml_buf_append_str(&call->answer, piece);
    return 0;
}

/* A text of JSON is UTF-8; bytes of other encodings become '?'. */
static void put_field(struct ml_json_writer *writer, const struct field *field)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ml_buf_append_str(&text, ml_buf_str(&field->value));
    if (!ml_str_is_utf8(ml_buf_str(&text)))
        for (size_t i = 0; i < text.len; i++)
            text.ptr[i] = (char)((unsigned char)text.ptr[i] < 0x80 ? text.ptr[i] : '?');
    ml_json_put_string(writer, field->name, ml_buf_str(&text));
}

static void write_answer(struct ml_outbound_call *call, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("status"));
    ml_json_int(&writer, call->status);
    ml_json_key(&writer, ML_STR("headers"));
    ml_json_begin_object(&writer);
    for (size_t i = 0; i < call->field_count; i++)
        put_field(&writer, &call->fields[i]);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
    ml_buf_putc(out, '\n');
    ml_buf_append_str(out, ml_buf_str(&call->answer));
}

/* The advice of the HTTP client is about a kubeconfig; here it would mislead. */
static void reword(struct ml_err *err)
{
    char *advice = strstr(err->message, " (check ");
    if (!advice || !strstr(advice, "kubeconfig"))
        return;
    snprintf(advice, sizeof(err->message) - (size_t)(advice - err->message),
             "; --http-ca-file names another authority");
}

static void on_sent_done(void *context, const struct ml_err *failure)
{
    struct ml_outbound_call *call = context;
    struct outbound *self = call->outbound;
    struct ml_err err = failure ? *failure : ML_ERR_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    call->sent = NULL;
    self->in_flight--;
    if (!failure && call->too_many_fields)
        (void)on_piece(call, ML_STR(""), &err);
    if (!err.kind && !call_charge(call, call->answer.len + call->field_bytes * 2))
        no_memory(call, &err);
    if (err.kind) {
        reword(&err);
        call_finish(call, ML_STR(""), &err);
    } else {
        write_answer(call, &answer);
        call_finish(call, ml_buf_str(&answer), NULL);
    }
    send_next(self);
}

/* ---- the request ---- */

static int may_connect(void *context, const struct sockaddr *address, struct ml_err *err)
{
    const struct ml_outbound_call *call = context;
    return ml_address_check(address, ml_origin_is_loopback(call->origin), err);
}

static int may_send(void *context, struct ml_err *err)
{
    struct ml_outbound_call *call = context;
    return call->may_send ? call->may_send(call->context, err) : 0;
}

static int64_t left_ms(const struct ml_outbound_call *call)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(call->outbound->loop));
    return (call->due_ns - now_ns) / ML_NS_PER_MS;
}

static void send_call(struct ml_outbound_call *call)
{
    static const struct ml_http_handler handler = {on_head, on_piece, on_sent_done};
    struct outbound *self = call->outbound;
    const struct ml_http_request request = {
        .method = call->method,
        .url = call->url,
        .headers = call->headers,
        .header_count = call->header_count,
        .body = call->body,
        .tls = &self->tls,
        .deadlines = {.total_ms = left_ms(call)},
        .may_send = may_send,
        .may_connect = may_connect,
        .field = on_field,
    };
    self->in_flight++;
    call->sent = ml_http_send(self->http, &request, &handler, call);
    forget_request(call);
}

/* Sends waiting requests as long as there is room. A request that has waited too long ends. */
static void send_next(struct outbound *self)
{
    struct ml_list *node;
    while (self->in_flight < IN_FLIGHT_MAX && (node = ml_list_shift(&self->waiting))) {
        struct ml_outbound_call *call = ml_container_of(node, struct ml_outbound_call, node);
        struct ml_err err = ML_ERR_INIT;
        if (left_ms(call) > 0) {
            send_call(call);
            continue;
        }
        ml_err_set(&err, ML_ETIMEOUT, "%d other requests were under way for %g s", IN_FLIGHT_MAX,
                   (double)call->timeout_ms / 1000);
        call_finish(call, ML_STR(""), &err);
    }
}

static void copy_request(struct ml_outbound_call *call, const struct ml_outbound_request *request)
{
    call->method = ml_strdup(request->method);
    call->url = ml_strdup(request->url);
    call->origin = ml_strdup(request->origin);
    call->allowed = find_origin(call->outbound, call->origin);
    call->body = (struct ml_str){ml_str_dup(request->body), request->body.len};
    call->headers = ml_zalloc((request->header_count + 1) * sizeof *call->headers);
    for (size_t i = 0; i < request->header_count; i++)
        call->headers[call->header_count++] = (struct ml_http_header){
            ml_strdup(request->headers[i].name), ml_strdup(request->headers[i].value)};
}

static struct ml_outbound_call *outbound_send(struct ml_outbound *seam,
                                              const struct ml_outbound_request *request,
                                              ml_outbound_done *done, void *context)
{
    struct outbound *self = ml_container_of(seam, struct outbound, seam);
    struct ml_outbound_call *call = ml_new(struct ml_outbound_call);
    call->outbound = self;
    call->done = done;
    call->context = context;
    call->may_send = request->may_send;
    call->budget = request->budget;
    call->timeout_ms = request->timeout_ms;
    call->begun_ns = ml_clock_monotonic(ml_loop_clock(self->loop));
    call->due_ns = call->begun_ns + request->timeout_ms * ML_NS_PER_MS;
    ml_buf_init(&call->answer, ML_OUTBOUND_BODY_MAX);
    copy_request(call, request);
    size_t bytes = sizeof *call + 2 * request->body.len;
    ml_budget_force(call->budget, bytes); /* the script has as much in its own strings */
    call->charged = bytes;
    if (self->in_flight < IN_FLIGHT_MAX)
        send_call(call);
    else
        ml_list_push(&self->waiting, &call->node);
    return call;
}

static void outbound_cancel(struct ml_outbound *seam, struct ml_outbound_call *call)
{
    struct outbound *self = ml_container_of(seam, struct outbound, seam);
    if (call->sent) {
        ml_http_cancel(call->sent);
        self->in_flight--;
    } else {
        ml_list_remove(&call->node);
    }
    call_free(call);
    send_next(self);
}

/* ---- the owner's options ---- */

static bool outbound_allows(struct ml_outbound *seam, const char *origin)
{
    const struct outbound *self = ml_container_of(seam, struct outbound, seam);
    if (find_origin(self, origin))
        return true;
    for (size_t i = 0; i < self->origin_count; i++)
        if (ml_origin_covers(origin, self->origins[i].text))
            return true;
    return false;
}

static int add_origin(struct outbound *self, const char *text, struct ml_err *err)
{
    struct ml_str origin = ml_str_of(text);
    if (ml_str_ends(origin, "/"))
        origin.len--;
    bool has_scheme = ml_str_starts(origin, "https://") || ml_str_starts(origin, "http://");
    size_t scheme = has_scheme ? (size_t)(strstr(text, "://") - text) + 3 : 0;
    if (!has_scheme || origin.len == scheme ||
        strcspn(text + scheme, "/?#@ ") + scheme < origin.len)
        return ml_err_set(
            err, ML_EINVALID,
            "--allow-http %s: expected an origin, such as https://billing.example.com", text);
    if (self->origin_count == ORIGINS_MAX)
        return ml_err_set(err, ML_EINVALID, "--allow-http: at most %d origins", ORIGINS_MAX);
    self->origins[self->origin_count] = (struct origin){.text = ml_str_dup(origin)};
    int r = ml_origin_check(self->origins[self->origin_count++].text, err);
    if (r == ML_EFORBIDDEN)
        return ml_err_set(err, ML_EINVALID, "--allow-http %s: scripts may never ask this address",
                          text);
    return r < 0 ? ml_err_wrap(err, "--allow-http %s", text) : 0;
}

static int read_ca(struct outbound *self, const char *path, struct ml_err *err)
{
    FILE *file = fopen(path, "re");
    char piece[4096];
    size_t len;
    ml_buf_init(&self->ca, CA_MAX);
    if (!file)
        return ml_err_set(err, ML_EINVALID, "--http-ca-file %s: %s", path, strerror(errno));
    while ((len = fread(piece, 1, sizeof piece, file)) > 0 && ml_buf_append(&self->ca, piece, len))
        ;
    bool whole = !ferror(file) && !self->ca.failed;
    fclose(file);
    if (!whole)
        return ml_err_set(err, ML_EINVALID, "--http-ca-file %s: cannot be read, or too large",
                          path);
    ml_buf_drop_byte_order_marks(&self->ca);
    if (ml_tls_check_ca(ml_buf_str(&self->ca), err) < 0)
        return ml_err_wrap(err, "--http-ca-file %s", path);
    self->tls.ca_pem = ml_buf_str(&self->ca);
    return 0;
}

/* Where distributions, and our image, keep the roots; libcurl's own default may be none of these.
 */
static const char *find_roots(void)
{
    const char *const files[] = {getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt",
                                 "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                 "/etc/ssl/cert.pem"};
    for (size_t i = 0; i < ML_COUNT(files); i++)
        if (files[i] && *files[i] && access(files[i], R_OK) == 0)
            return files[i];
    return NULL;
}

static void use_roots(struct outbound *self, struct ml_log *log)
{
    self->tls.ca_file = find_roots();
    for (size_t i = 0; i < self->origin_count && !self->tls.ca_file && log; i++) {
        if (strncasecmp(self->origins[i].text, "https:", 6) != 0)
            continue;
        ml_warn(log, "host",
                "no file of authorities is on this machine: requests of scripts over https will "
                "fail; name one with --http-ca-file",
                ML_S("server", self->origins[i].text));
        return;
    }
}

int ml_outbound_new(const struct ml_outbound_opts *opts, struct ml_outbound **out,
                    struct ml_err *err)
{
    struct outbound *self = ml_new(struct outbound);
    self->seam = (struct ml_outbound){outbound_allows, outbound_send, outbound_cancel};
    self->loop = opts->loop;
    self->http = ml_http_client_new(opts->loop, "moonloop/" MOONLOOP_VERSION);
    ml_list_init(&self->waiting);
    self->proxy = ml_strdup(opts->proxy);
    self->tls.proxy_url = self->proxy;
    register_metrics(self, opts->metrics);
    int r = opts->ca_file ? read_ca(self, opts->ca_file, err) : 0;
    for (size_t i = 0; r == 0 && opts->origins[i]; i++)
        r = add_origin(self, opts->origins[i], err);
    for (size_t i = 0; r == 0 && i < self->origin_count; i++)
        register_origin(self, &self->origins[i], opts->metrics);
    if (r < 0) {
        ml_outbound_free(&self->seam);
        return r;
    }
    if (!opts->ca_file)
        use_roots(self, opts->log);
    *out = &self->seam;
    return 0;
}

void ml_outbound_free(struct ml_outbound *outbound)
{
    if (!outbound)
        return;
    struct outbound *self = ml_container_of(outbound, struct outbound, seam);
    ml_assert(self->in_flight == 0 && ml_list_empty(&self->waiting));
    ml_metrics_collector_remove(&self->collector);
    ml_http_client_free(self->http);
    for (size_t i = 0; i < self->origin_count; i++)
        free(self->origins[i].text);
    free(self->proxy);
    ml_buf_fini(&self->ca);
    free(self);
}
