/* Requests of the API server, from their head to the answer of a review. operator.c makes it;
 * webhook_review.c has what a review means. */
#include "operator/webhook_server.h"

#include "base/repeat.h"

#define BODY_BYTES_MAX  ((size_t)7 * 1024 * 1024)
#define ALL_BYTES_MAX   ((size_t)32 * 1024 * 1024)
#define CONNECTIONS_MAX 256 /* an API server has a few; each may take 90 KB */
#define SECONDS_DEFAULT 30
#define MARGIN_NS       (ML_NS_PER_S / 4) /* for the way back to the API server */
#define TEXT_TYPE       "text/plain; charset=utf-8"

struct ml_webhook_server {
    struct ml_webhook_server_opts opts;
    struct ml_http_server *http;
    struct ml_list calls;
    struct ml_repeats failures; /* of webhooks, for the log */
    struct ml_metric_family *requests, *seconds, *in_flight;
};

/* A request under way. */
struct call {
    struct ml_webhook_server *server;
    struct ml_http_exchange *exchange;
    char *path;
    const char *name; /* of the controller; in `path` */
    struct ml_review *review;
    struct ml_cpu_account *cpu_account;
    struct ml_slice slice;
    struct ml_timer deadline;
    int64_t begun_ns;
    struct ml_metric *in_flight;
    struct ml_list node;
};

static int64_t server_now(const struct ml_webhook_server *self)
{
    return ml_clock_monotonic(ml_loop_clock(self->opts.loop));
}

/* ---- metrics, under controller-runtime's names ---- */

static void register_metrics(struct ml_webhook_server *self)
{
    static const double buckets[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
    struct ml_metrics *metrics = self->opts.metrics;
    self->requests = ml_metrics_counter(metrics, "controller_runtime_webhook_requests_total",
                                        "Requests of the API server, by path and HTTP status.",
                                        ml_metric_labels("webhook", "code"));
    self->seconds = ml_metrics_histogram(metrics, "controller_runtime_webhook_latency_seconds",
                                         "From the last byte of a request to its answer.",
                                         ml_metric_labels("webhook"), buckets, ML_COUNT(buckets));
    self->in_flight = ml_metrics_gauge(metrics, "controller_runtime_webhook_requests_in_flight",
                                       "Requests that are being answered.",
                                       ml_metric_labels("webhook"));
}

static void expect(struct ml_webhook_server *self, enum ml_webhook webhook, const char *name)
{
    static const char *const codes[] = {"200", "500", "504"};
    ML_AUTO_FREE char *path = ml_asprintf("/%s/%s", ml_webhook_name(webhook), name);
    for (size_t i = 0; i < ML_COUNT(codes); i++)
        (void)ml_metric_with(self->requests, ml_metric_labels(path, codes[i]));
    (void)ml_metric_with(self->seconds, ml_metric_labels(path));
    (void)ml_metric_with(self->in_flight, ml_metric_labels(path));
}

void ml_webhook_server_expect(struct ml_webhook_server *self,
                              const struct ml_declaration *declaration)
{
    if (declaration->webhooks.defaults)
        expect(self, ML_WEBHOOK_DEFAULT, declaration->name);
    if (declaration->webhooks.validates)
        expect(self, ML_WEBHOOK_VALIDATE, declaration->name);
    if (declaration->webhooks.version_count > 0)
        expect(self, ML_WEBHOOK_CONVERT, declaration->name);
}

/* ---- a call ---- */

static void call_free(struct call *call)
{
    ml_list_remove(&call->node);
    ml_slice_cancel(&call->slice);
    ml_timer_stop(&call->deadline);
    ml_metric_add(call->in_flight, -1);
    ml_review_free(call->review);
    free(call->path);
    free(call);
}

/* As they are; and ends the call. */
static void call_answer(struct call *call, int status, const char *content_type, struct ml_str body)
{
    struct ml_webhook_server *self = call->server;
    ML_AUTO_FREE char *code = ml_asprintf("%d", status);
    double seconds = (double)(server_now(self) - call->begun_ns) / (double)ML_NS_PER_S;
    ml_metric_add(ml_metric_with(self->requests, ml_metric_labels(call->path, code)), 1);
    ml_metric_observe(ml_metric_with(self->seconds, ml_metric_labels(call->path)), seconds);
    ml_http_answer(
        call->exchange,
        &(struct ml_http_answer){.status = status, .content_type = content_type, .body = body});
    call_free(call);
}

static void log_failure(struct call *call, const struct ml_err *err)
{
    struct ml_webhook_server *self = call->server;
    struct ml_repeat *repeat = ml_repeats_get(&self->failures, ml_str_of(call->path));
    if (ml_repeat_failed(repeat, ml_str_of(err->message), server_now(self)))
        ml_error(self->opts.log, call->name, "webhook failed", ML_S("controller", call->name),
                 ML_S("webhook", call->path), ML_ERR_FIELDS(err), ML_REPEAT_FIELDS(repeat, -1));
}

static void call_end(struct call *call, const struct ml_review_answer *answer)
{
    if (answer->failure)
        log_failure(call, answer->failure);
    else if (answer->status == 200)
        ml_repeats_over(&call->server->failures, ml_str_of(call->path));
    call_answer(call, answer->status, answer->content_type, answer->body);
}

static void on_call_slice(void *context)
{
    struct call *call = context;
    struct ml_review_answer answer;
    while (!ml_review_step(call->review, &answer)) {
        if (ml_cpu_account_may_go_on(call->cpu_account))
            continue;
        ml_slice_wait(&call->slice, call->cpu_account);
        return;
    }
    call_end(call, &answer);
}

/* The API server does not wait any longer. */
static void on_call_deadline(void *context)
{
    struct call *call = context;
    struct ml_err err;
    ml_err_set(&err, ML_ETIMEOUT,
               "no answer within the deadline: the script has used up its share of the CPU");
    log_failure(call, &err);
    call_answer(call, 504, TEXT_TYPE, ml_str_of(err.message));
}

static void on_client_gone(void *context)
{
    call_free(context);
}

/* ---- requests ---- */

static void refuse(struct ml_http_exchange *exchange, int status, const char *text)
{
    ml_http_answer(exchange, &(struct ml_http_answer){.status = status,
                                                      .content_type = TEXT_TYPE,
                                                      .body = ml_str_of(text)});
}

/* "application/json", also with parameters. */
static bool is_json(const struct ml_http_exchange *exchange)
{
    const char *type = ml_http_header(exchange, "Content-Type");
    struct ml_str rest = ml_str_of(type ? type : "");
    return ml_str_is(ml_str_trim(ml_str_cut(&rest, ';')), "application/json");
}

/* The rest of the time that ?timeout=10s allows, in ns. */
static int64_t deadline_of(const struct ml_http_exchange *exchange)
{
    struct ml_str query = ml_str_of(exchange->query);
    uint64_t seconds = SECONDS_DEFAULT;
    while (query.len > 0) {
        struct ml_str value = ml_str_cut(&query, '&'), name = ml_str_cut(&value, '=');
        if (ml_str_is(name, "timeout") && ml_str_ends(value, "s") &&
            ml_str_to_u64(ml_str_head(value, value.len - 1), &seconds))
            seconds = ML_MAX((uint64_t)1, ML_MIN(seconds, (uint64_t)SECONDS_DEFAULT));
    }
    return (int64_t)seconds * ML_NS_PER_S - MARGIN_NS;
}

static void begin_call(struct ml_webhook_server *self, struct ml_http_exchange *exchange,
                       enum ml_webhook webhook, const struct ml_webhook_target *target)
{
    struct call *call = ml_new(struct call);
    call->server = self;
    call->exchange = exchange;
    call->path = ml_strdup(exchange->path);
    call->name = strrchr(call->path, '/') + 1;
    call->cpu_account = target->cpu_account;
    call->begun_ns = server_now(self);
    call->in_flight = ml_metric_with(self->in_flight, ml_metric_labels(call->path));
    ml_metric_add(call->in_flight, 1);
    ml_list_push(&self->calls, &call->node);
    ml_slice_init(&call->slice, on_call_slice, call);
    ml_timer_init(&call->deadline, self->opts.loop, on_call_deadline, call);
    ml_timer_start(&call->deadline, deadline_of(exchange));
    exchange->closed = on_client_gone;
    exchange->context = call;
    call->review = ml_review_new(webhook, target->script, exchange->body);
    if (ml_cpu_account_may_go_on(call->cpu_account))
        on_call_slice(call);
    else
        ml_slice_wait(&call->slice, call->cpu_account);
}

static void on_request(void *context, struct ml_http_exchange *exchange)
{
    struct ml_webhook_server *self = context;
    struct ml_webhook_target target;
    enum ml_webhook webhook;
    struct ml_str name;
    if (!ml_webhook_parse(ml_str_of(exchange->path), &webhook, &name))
        refuse(exchange, 404, "expected /default/NAME, /validate/NAME or /convert/NAME\n");
    else if (strcmp(exchange->method, "POST") != 0)
        refuse(exchange, 405, "expected a POST with a review\n");
    else if (!is_json(exchange))
        refuse(exchange, 415, "expected Content-Type: application/json\n");
    else if (!self->opts.find(self->opts.context, name, &target))
        refuse(exchange, 404, "no script of this name has been loaded\n");
    else
        begin_call(self, exchange, webhook, &target);
}

static void fill_refusal(void *context, int status, struct ml_http_answer *answer)
{
    (void)context;
    answer->content_type = TEXT_TYPE;
    if (status == 413)
        answer->body = ML_STR("a review has at most 7 MiB\n");
}

/* ---- life ---- */

int ml_webhook_server_new(const struct ml_webhook_server_opts *opts, struct ml_webhook_server **out,
                          struct ml_err *err)
{
    struct ml_webhook_server *self = ml_new(struct ml_webhook_server);
    self->opts = *opts;
    ml_list_init(&self->calls);
    register_metrics(self);
    const struct ml_http_server_opts http = {
        .loop = opts->loop,
        .address = opts->address,
        .tls = opts->tls,
        .handle = on_request,
        .refusal = fill_refusal,
        .context = self,
        .limits = {.body_bytes_max = BODY_BYTES_MAX,
                   .connections_max = CONNECTIONS_MAX,
                   .unsent_bytes_max = ALL_BYTES_MAX,
                   .arrived_bytes_max = ALL_BYTES_MAX},
    };
    int r = ml_http_server_new(&http, &self->http, err);
    if (r < 0) {
        free(self);
        return r;
    }
    *out = self;
    return 0;
}

void ml_webhook_server_free(struct ml_webhook_server *self)
{
    if (!self)
        return;
    ml_http_server_free(self->http); /* and the calls under way */
    ml_assert(ml_list_empty(&self->calls));
    ml_repeats_clear(&self->failures);
    free(self);
}

int ml_webhook_server_port(const struct ml_webhook_server *self)
{
    return ml_http_server_port(self->http);
}

void ml_webhook_server_set_tls(struct ml_webhook_server *self, struct ssl_ctx_st *tls)
{
    ml_http_server_set_tls(self->http, tls);
}
