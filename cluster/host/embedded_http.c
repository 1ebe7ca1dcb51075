#include "cluster/host/embedded_http.h"

#include <openssl/ssl.h>

#include "net/tls.h"

#define VALID_S        INT64_C(31536000)         /* a year; longer than any start lives */
#define BODY_BYTES_MAX ((size_t)3 * 1024 * 1024) /* kube-apiserver's, and named in its answer */

struct ml_embedded_http {
    struct ml_apiserver *apiserver;
    struct ml_http_server *http;
    struct ml_tls_clients *clients;
    const char *ca_pem; /* the authority's */
};

/* ---- answers, from Lua to the client ---- */

static void http_sink_send(void *exchange, const struct ml_http_answer *answer)
{
    ml_http_answer(exchange, answer);
}

static void http_sink_start(void *exchange, const struct ml_http_answer *head)
{
    ml_http_stream(exchange, head);
}

static size_t http_sink_write(void *exchange, struct ml_str bytes)
{
    return ml_http_write(exchange, bytes);
}

static void http_sink_finish(void *exchange)
{
    ml_http_finish(exchange);
}

static void http_sink_abort(void *exchange)
{
    ml_http_abort(exchange);
}

static bool http_sink_upgrade(void *exchange, const struct ml_http_header *headers, size_t count)
{
    return ml_http_upgrade(exchange, headers, count);
}

static void http_sink_pause(void *exchange, bool paused)
{
    ml_http_pause(exchange, paused);
}

static const struct ml_apiserver_sink sink = {
    .send = http_sink_send,
    .start = http_sink_start,
    .write = http_sink_write,
    .finish = http_sink_finish,
    .abort = http_sink_abort,
    .upgrade = http_sink_upgrade,
    .pause = http_sink_pause,
};

/* ---- requests, from the client to Lua ---- */

/* The client disconnected before the answer ended. */
static void on_client_closed(void *call)
{
    ml_apiserver_gone(call);
}

static void on_client_bytes(void *call, struct ml_str bytes)
{
    ml_apiserver_received(call, bytes);
}

static void on_client_request(void *context, struct ml_http_exchange *exchange)
{
    struct ml_embedded_http *self = context;
    exchange->closed = on_client_closed;
    exchange->received = on_client_bytes;
    struct ml_tls_client client;
    bool has_certificate = ml_tls_client_of(self->clients, exchange->tls, &client);
    struct ml_apiserver_call *call = ml_apiserver_handle(
        self->apiserver,
        &(struct ml_apiserver_request){.method = exchange->method,
                                       .path = ml_str_of(exchange->path),
                                       .query = ml_str_of(exchange->query),
                                       .headers = exchange->headers,
                                       .header_count = exchange->header_count,
                                       .body = exchange->body,
                                       .client = exchange->client,
                                       .certificate = has_certificate ? &client : NULL},
        &sink, exchange);
    if (has_certificate)
        ml_tls_client_fini(&client);
    if (call) /* else the exchange is over */
        exchange->context = call;
}

/* As kube-apiserver: apimachinery/pkg/api/errors (NewRequestEntityTooLargeError,
 * NewGenericServerResponse), without naming a resource, because none has been looked for. */
static void fill_http_refusal(void *context, int status, struct ml_http_answer *answer)
{
    (void)context;
    answer->content_type = "application/json";
    switch (status) {
    case 400: /* as Go's server, below Kubernetes */
        answer->content_type = "text/plain; charset=utf-8";
        answer->body = ML_STR("400 Bad Request");
        break;
    case 413:
        answer->body = ML_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                              "\"status\":\"Failure\","
                              "\"message\":\"Request entity too large: limit is 3145728\","
                              "\"reason\":\"RequestEntityTooLarge\",\"code\":413}\n");
        break;
    case 405:
        answer->body = ML_STR("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                              "\"status\":\"Failure\",\"message\":\"the server does not allow this "
                              "method on the requested resource\",\"reason\":\"MethodNotAllowed\","
                              "\"details\":{},\"code\":405}\n");
        break;
    default:
        answer->content_type = "text/plain; charset=utf-8";
        break;
    }
}

/* ---- start and end ---- */

static int make_server_tls(struct ml_embedded_http *self, const struct ml_embedded_http_opts *opts,
                           struct ssl_ctx_st **out, struct ml_err *err)
{
    struct ml_clock *clock = opts->clock ? opts->clock : ml_clock_real();
    struct ml_tls_authority *authority = ml_server_lua_authority(ml_apiserver_lua(opts->server),
                                                                 err);
    if (!authority)
        return err->kind;
    const struct ml_tls_authority_opts server = {
        .clock = clock,
        .valid_s = VALID_S,
        .names = opts->names,
        .name_count = opts->name_count,
    };
    self->ca_pem = ml_tls_authority_pem(authority);
    struct ml_str ca_pem = ml_str_of(self->ca_pem);
    int r = ml_tls_authority_serve(authority, &server, out, err);
    if (r == 0)
        r = ml_tls_ask_clients(*out, ca_pem, err);
    return r < 0 ? r : ml_tls_clients_new(ca_pem, clock, &self->clients, err);
}

int ml_embedded_http_new(const struct ml_embedded_http_opts *opts, struct ml_embedded_http **out,
                         struct ml_err *err)
{
    struct ml_embedded_http *self = ml_new(struct ml_embedded_http);
    struct ssl_ctx_st *tls = NULL;
    struct ml_http_limits limits = opts->limits;
    limits.body_bytes_max = BODY_BYTES_MAX;
    self->apiserver = opts->server;
    int r = make_server_tls(self, opts, &tls, err);
    if (r == 0)
        r = ml_http_server_new(&(struct ml_http_server_opts){.loop = opts->loop,
                                                             .address = opts->address,
                                                             .tls = tls,
                                                             .handle = on_client_request,
                                                             .context = self,
                                                             .refusal = fill_http_refusal,
                                                             .limits = limits},
                               &self->http, err);
    SSL_CTX_free(tls);
    if (r < 0) {
        ml_embedded_http_free(self);
        return r;
    }
    *out = self;
    return 0;
}

void ml_embedded_http_free(struct ml_embedded_http *self)
{
    if (!self)
        return;
    ml_http_server_free(self->http);
    ml_tls_clients_free(self->clients);
    free(self);
}

int ml_embedded_http_port(const struct ml_embedded_http *self)
{
    return ml_http_server_port(self->http);
}

const char *ml_embedded_http_ca(const struct ml_embedded_http *self)
{
    return self->ca_pem;
}
