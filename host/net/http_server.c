/* Requests and answers between evhttp and the handler; accepting connections. A connection before
 * and between requests: http_connection.c. */
#include "net/http_server.h"

#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <strings.h>
#include <sys/resource.h>

#include "net/http_connection.h"
#include "net/tcp.h"

struct ml_http_server {
    struct http_connections connections;
    ml_http_handle *handle;
    void *context;
    struct evhttp *http;
    struct evconnlistener *listener;
    struct ml_timer accepting;
    struct event *adopt;
};

static struct http_connection *exchange_connection(struct ml_http_exchange *exchange)
{
    struct http_connection *connection = ml_container_of(exchange, struct http_connection,
                                                         exchange);
    ml_assert(connection->phase == HTTP_BUSY); /* or the exchange is over */
    return connection;
}

/* ---- requests ---- */

/* NULL for those evhttp does not know: it has not kept the name either. */
static const char *method_name(struct evhttp_request *request)
{
    static const struct {
        enum evhttp_cmd_type command;
        const char *name;
    } methods[] = {
        {EVHTTP_REQ_GET, "GET"},       {EVHTTP_REQ_POST, "POST"},
        {EVHTTP_REQ_HEAD, "HEAD"},     {EVHTTP_REQ_PUT, "PUT"},
        {EVHTTP_REQ_DELETE, "DELETE"}, {EVHTTP_REQ_OPTIONS, "OPTIONS"},
        {EVHTTP_REQ_TRACE, "TRACE"},   {EVHTTP_REQ_CONNECT, "CONNECT"},
        {EVHTTP_REQ_PATCH, "PATCH"},
    };
    for (size_t i = 0; i < ML_COUNT(methods); i++)
        if (methods[i].command == evhttp_request_get_command(request))
            return methods[i].name;
    return NULL;
}

static void exchange_read_headers(struct http_connection *connection,
                                  struct evhttp_request *request)
{
    const struct evkeyvalq *fields = evhttp_request_get_input_headers(request);
    struct ml_http_exchange *exchange = &connection->exchange;
    const struct evkeyval *field;
    size_t count = 0;
    for (field = fields->tqh_first; field; field = field->next.tqe_next)
        count++;
    connection->headers = ml_realloc(connection->headers, (count + 1) * sizeof(*exchange->headers));
    for (field = fields->tqh_first; field; field = field->next.tqe_next)
        connection->headers[exchange->header_count++] = (struct ml_http_header){field->key,
                                                                                field->value};
    exchange->headers = connection->headers;
}

static void exchange_read_request(struct http_connection *connection,
                                  struct evhttp_request *request)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    const char *query = uri ? evhttp_uri_get_query(uri) : NULL;
    char *client = NULL; /* evhttp's own */
    ev_uint16_t port;
    evhttp_connection_get_peer(connection->evcon, &client, &port);
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    connection->exchange = (struct ml_http_exchange){
        .method = method_name(request),
        .path = path && *path ? path : "/",
        .query = query ? query : "",
        .body.len = evbuffer_get_length(input),
        .client = client ? client : "",
    };
    connection->exchange.tls = bufferevent_openssl_get_ssl(connection->bev);
    connection->exchange.body.ptr = (const char *)evbuffer_pullup(input, -1);
    exchange_read_headers(connection, request);
}

static void answer_refusal(struct http_connection *connection, int status)
{
    struct ml_http_answer answer;
    struct evkeyvalq *headers = evhttp_request_get_output_headers(connection->request);
    http_refusal(connection->all, status, &answer);
    evhttp_add_header(headers, "Connection", "close");
    ml_http_answer(&connection->exchange, &answer);
}

/* evhttp treats HEAD, TRACE and unknown methods as requests without a body; if they have one, it
 * would read the body as the next request. */
static bool request_leaves_body_unread(const struct ml_http_exchange *exchange)
{
    const char *length = ml_http_header(exchange, "Content-Length");
    bool bodyless = !exchange->method || strcmp(exchange->method, "HEAD") == 0 ||
                    strcmp(exchange->method, "TRACE") == 0;
    return bodyless &&
           ((length && strcmp(length, "0") != 0) || ml_http_header(exchange, "Transfer-Encoding"));
}

static bool is_digits(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Another reader of the same bytes might see other fields, or the end of the body elsewhere (RFC
 * 9112, 5.1 and 6.3). evhttp uses the first of several lengths and accepts signs. */
static bool request_is_ambiguous(const struct ml_http_exchange *exchange)
{
    const char *length = NULL, *host = NULL;
    for (size_t i = 0; i < exchange->header_count; i++) {
        const struct ml_http_header *field = &exchange->headers[i];
        if (!ml_http_is_token(field->name))
            return true;
        if (strcasecmp(field->name, "Content-Length") == 0) {
            if (!is_digits(field->value) || (length && strcmp(length, field->value) != 0))
                return true;
            length = field->value;
        } else if (strcasecmp(field->name, "Host") == 0) {
            if (host)
                return true;
            host = field->value;
        }
    }
    return length && ml_http_header(exchange, "Transfer-Encoding");
}

/* Nobody knows where its body ends: evhttp treats it as a request without one. */
static bool request_has_unknown_coding(const struct ml_http_exchange *exchange)
{
    const char *coding = ml_http_header(exchange, "Transfer-Encoding");
    return coding && strcasecmp(coding, "chunked") != 0;
}

/* The answer has been sent. */
static void on_answer_sent(struct evhttp_request *request, void *context)
{
    struct http_connection *connection = context;
    (void)request; /* evhttp frees it */
    connection->request = NULL;
    http_connection_wait(connection);
}

static void on_request(struct evhttp_request *request, void *context)
{
    struct ml_http_server *server = context;
    struct http_connection *connection = http_connection_of(&server->connections,
                                                            evhttp_request_get_connection(request));
    struct ml_http_exchange *exchange = &connection->exchange;
    connection->request = request;
    connection->streaming = false;
    connection->upgraded = false;
    evhttp_request_set_on_complete_cb(request, on_answer_sent, connection);
    http_connection_begin_request(connection);
    http_connection_guard(connection);
    exchange_read_request(connection, request);
    if (request_leaves_body_unread(exchange))
        evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
    if (connection->has_bad_head || request_is_ambiguous(exchange))
        answer_refusal(connection, 400);
    else if (!exchange->method)
        answer_refusal(connection, 405);
    else if (request_has_unknown_coding(exchange))
        answer_refusal(connection, 501);
    else if (exchange->body.len > server->connections.limits.body_bytes_max)
        answer_refusal(connection, 413);
    else
        server->handle(server->context, exchange);
}

const char *ml_http_header(const struct ml_http_exchange *exchange, const char *name)
{
    for (size_t i = 0; i < exchange->header_count; i++) {
        if (strcasecmp(exchange->headers[i].name, name) == 0)
            return exchange->headers[i].value;
    }
    return NULL;
}

/* ---- answers ---- */

static bool answer_has_body(const struct http_connection *connection, int status)
{
    return status >= 200 && status != 204 && status != 304 &&
           strcmp(connection->exchange.method ? connection->exchange.method : "", "HEAD") != 0;
}

static bool answer_has_length(const struct ml_http_answer *answer)
{
    for (size_t i = 0; i < answer->header_count; i++)
        if (strcasecmp(answer->headers[i].name, "Content-Length") == 0)
            return true;
    return false;
}

static void answer_add_head(struct http_connection *connection, const struct ml_http_answer *answer)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(connection->request);
    if (answer->content_type)
        evhttp_add_header(headers, "Content-Type", answer->content_type);
    for (size_t i = 0; i < answer->header_count; i++)
        evhttp_add_header(headers, answer->headers[i].name, answer->headers[i].value);
}

void ml_http_answer(struct ml_http_exchange *exchange, const struct ml_http_answer *answer)
{
    struct http_connection *connection = exchange_connection(exchange);
    struct evhttp_request *request = connection->request;
    char length[24];
    ml_assert(!connection->streaming);
    answer_add_head(connection, answer);
    /* Set by us: evhttp leaves it out for HEAD, where it has to be what GET would have sent. */
    snprintf(length, sizeof length, "%zu", answer->body.len);
    if (answer->status >= 200 && answer->status != 204 && answer->status != 304)
        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", length);
    if (answer_has_body(connection, answer->status))
        http_unsent_add_text(evhttp_request_get_output_buffer(request), answer->body);
    http_connection_sending(connection);
    evhttp_send_reply(request, answer->status, http_reason(answer->status), NULL);
    http_connection_guard(connection);
    http_connection_bound_unsent(connection);
}

void ml_http_stream(struct ml_http_exchange *exchange, const struct ml_http_answer *head)
{
    struct http_connection *connection = exchange_connection(exchange);
    struct evhttp_request *request = connection->request;
    ml_assert(!connection->streaming);
    bool is_1_0 = request->major == 1 && request->minor == 0;
    connection->streaming = true;
    /* A stream may last: it does not keep what was sent along with the request. */
    evbuffer_drain(evhttp_request_get_input_buffer(request), exchange->body.len);
    exchange->body = ML_STR("");
    http_connection_set_held(connection,
                             evbuffer_get_length(bufferevent_get_input(connection->bev)));
    connection->chunked = !is_1_0 && !answer_has_length(head) &&
                          answer_has_body(connection, head->status);
    /* Asked by HTTP/1.0 to keep the connection, evhttp would say "Content-Length: 0". */
    if (is_1_0)
        evhttp_remove_header(evhttp_request_get_input_headers(request), "Connection");
    answer_add_head(connection, head);
    evhttp_send_reply_start(request, head->status, http_reason(head->status));
    http_connection_guard(connection);
}

size_t ml_http_write(struct ml_http_exchange *exchange, struct ml_str piece)
{
    struct http_connection *connection = exchange_connection(exchange);
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    ml_assert(connection->streaming);
    if (connection->cut)
        return SIZE_MAX / 2;
    if (piece.len && connection->upgraded)
        http_unsent_add_text(output, piece);
    else if (piece.len && connection->chunked)
        http_unsent_add_chunk(connection->all->unsent, output, piece);
    else if (piece.len && answer_has_body(connection, connection->request->response_code))
        http_unsent_add_text(output, piece);
    http_connection_bound_unsent(connection);
    return evbuffer_get_length(output);
}

void ml_http_finish(struct ml_http_exchange *exchange)
{
    struct http_connection *connection = exchange_connection(exchange);
    ml_assert(connection->streaming);
    if (connection->cut) { /* a regular end would make the cut answer look complete */
        http_connection_abort(connection);
        return;
    }
    if (connection->upgraded) {
        http_connection_finish_upgraded(connection);
        return;
    }
    http_connection_sending(connection);
    if (!connection->chunked && evbuffer_get_length(bufferevent_get_output(connection->bev)) == 0) {
        evhttp_send_reply_end(connection->request); /* and may have closed the connection */
        return;
    }
    evhttp_send_reply_end(connection->request);
    http_connection_guard(connection);
}

bool ml_http_upgrade(struct ml_http_exchange *exchange, const struct ml_http_header *headers,
                     size_t count)
{
    struct http_connection *connection = exchange_connection(exchange);
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    ml_assert(!connection->streaming && exchange->received);
    if (connection->request->major != 1 || connection->request->minor == 0 ||
        connection->request->type == EVHTTP_REQ_HEAD)
        return false;
    evbuffer_drain(evhttp_request_get_input_buffer(connection->request), exchange->body.len);
    exchange->body = ML_STR("");
    http_connection_set_held(connection,
                             evbuffer_get_length(bufferevent_get_input(connection->bev)));
    evbuffer_add_printf(output, "HTTP/1.1 101 Switching Protocols\r\n");
    for (size_t i = 0; i < count; i++) {
        if (!strpbrk(headers[i].value, "\r\n"))
            evbuffer_add_printf(output, "%s: %s\r\n", headers[i].name, headers[i].value);
    }
    evbuffer_add(output, "\r\n", 2);
    connection->streaming = true;
    http_connection_upgrade(connection);
    return true;
}

void ml_http_pause(struct ml_http_exchange *exchange, bool paused)
{
    struct http_connection *connection = exchange_connection(exchange);
    ml_assert(connection->upgraded);
    http_connection_pause(connection, paused);
}

void ml_http_abort(struct ml_http_exchange *exchange)
{
    http_connection_abort(exchange_connection(exchange));
}

#define HEADER_BYTES_MAX  ((size_t)64 * 1024)
#define BODY_BYTES_MAX    ((size_t)3 * 1024 * 1024)
#define ARRIVAL_MS        INT64_C(30000)
#define IDLE_MS           INT64_C(180000)
#define CONNECTIONS_MAX   1024
#define UNSENT_BYTES_MAX  ((size_t)64 * 1024 * 1024)
#define ARRIVED_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define ACCEPT_AGAIN_MS   INT64_C(1000)

/* ---- accepting ---- */

static void server_make_room(struct ml_http_server *server, struct http_connection *newest)
{
    struct http_connections *all = &server->connections;
    if (all->count <= all->limits.connections_max)
        return;
    struct ml_list *first = all->waiting.next; /* `newest` itself when all others are busy */
    http_connection_end(
        first == &all->waiting ? newest : ml_container_of(first, struct http_connection, node));
}

/* Runs in the same round of the loop as the accept, so before any byte has been read. */
static void on_connections_accepted(evutil_socket_t fd, short what, void *context)
{
    struct ml_http_server *server = context;
    (void)fd, (void)what;
    for (struct ml_list *node; (node = ml_list_shift(&server->connections.fresh));) {
        struct http_connection *connection = ml_container_of(node, struct http_connection, node);
        if (http_connection_adopt(connection))
            server_make_room(server, connection);
    }
}

/* evhttp's hook for the bufferevent of a new connection, our first notice of it. Must not fail:
 * evhttp would continue without TLS. */
static struct bufferevent *on_accepting(struct event_base *base, void *context)
{
    struct ml_http_server *server = context;
    struct http_connection *connection = http_connection_new(&server->connections, base);
    event_active(server->adopt, EV_TIMEOUT, 0);
    return connection->bev;
}

/* Most likely no descriptors are left. The pending connection would wake us again and again.
 * evhttp keeps the listener's context for itself, so a timer that always runs enables it again. */
static void on_accept_error(struct evconnlistener *listener, void *evhttp)
{
    (void)evhttp;
    evconnlistener_disable(listener);
}

static void on_accept_again(void *context)
{
    struct ml_http_server *server = context;
    evconnlistener_enable(server->listener);
    ml_timer_start(&server->accepting, ACCEPT_AGAIN_MS * ML_NS_PER_MS);
}

/* ---- the server ---- */

/* Clients that hold connections must leave descriptors for those to the API server. */
static size_t limit_by_descriptors(size_t connections_max)
{
    struct rlimit descriptors = {0};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    return ML_MIN(connections_max, ML_MAX(descriptors.rlim_cur / 4, (rlim_t)1));
}

static void server_fill_limits(struct ml_http_limits *limits)
{
    if (!limits->header_bytes_max)
        limits->header_bytes_max = HEADER_BYTES_MAX;
    if (!limits->body_bytes_max)
        limits->body_bytes_max = BODY_BYTES_MAX;
    if (!limits->arrival_ms)
        limits->arrival_ms = ARRIVAL_MS;
    if (!limits->idle_ms)
        limits->idle_ms = IDLE_MS;
    if (!limits->connections_max)
        limits->connections_max = CONNECTIONS_MAX;
    limits->connections_max = limit_by_descriptors(limits->connections_max);
    if (!limits->unsent_bytes_max)
        limits->unsent_bytes_max = UNSENT_BYTES_MAX;
    if (!limits->arrived_bytes_max)
        limits->arrived_bytes_max = ARRIVED_BYTES_MAX;
}

static void server_start_evhttp(struct ml_http_server *server, int fd)
{
    server->http = evhttp_new(ml_loop_base(server->connections.loop));
    ml_assert(server->http != NULL);
    evhttp_set_max_headers_size(server->http,
                                (ev_ssize_t)server->connections.limits.header_bytes_max);
    evhttp_set_max_body_size(server->http, -1); /* ours: see on_connection_input and on_request */
    evhttp_set_allowed_methods(server->http, UINT16_MAX); /* the refusal is ours */
    evhttp_set_default_content_type(server->http, NULL);
    evhttp_set_bevcb(server->http, on_accepting, server);
    evhttp_set_gencb(server->http, on_request, server);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(server->http, fd);
    ml_assert(bound != NULL);
    server->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(server->listener, on_accept_error);
}

int ml_http_server_new(const struct ml_http_server_opts *opts, struct ml_http_server **out,
                       struct ml_err *err)
{
    int fd = -1;
    int r = ml_tcp_listen(opts->address, &fd, err);
    if (r < 0)
        return r;
    struct ml_http_server *server = ml_new(struct ml_http_server);
    server->handle = opts->handle;
    server->context = opts->context;
    server->connections = (struct http_connections){
        .loop = opts->loop,
        .tls = opts->tls,
        .limits = opts->limits,
        .refusal = opts->refusal,
        .context = opts->context,
        .unsent = http_unsent_new(),
    };
    ml_list_init(&server->connections.fresh);
    ml_list_init(&server->connections.waiting);
    ml_list_init(&server->connections.busy);
    server_fill_limits(&server->connections.limits);
    if (opts->tls)
        SSL_CTX_up_ref(opts->tls);
    server->adopt = event_new(ml_loop_base(opts->loop), -1, 0, on_connections_accepted, server);
    ml_assert(server->adopt != NULL);
    server_start_evhttp(server, fd);
    ml_timer_init(&server->accepting, opts->loop, on_accept_again, server);
    ml_timer_start(&server->accepting, ACCEPT_AGAIN_MS * ML_NS_PER_MS);
    *out = server;
    return 0;
}

void ml_http_server_free(struct ml_http_server *server)
{
    if (!server)
        return;
    on_connections_accepted(-1, 0, server); /* so that all are known to each other */
    ml_timer_stop(&server->accepting);
    evhttp_free(server->http); /* and its connections and the socket */
    struct http_connections *all = &server->connections;
    ml_assert(all->count == 0);
    event_free(server->adopt);
    http_unsent_free(all->unsent);
    ml_map_fini(&all->by_evcon);
    SSL_CTX_free(all->tls);
    free(server);
}

void ml_http_server_set_tls(struct ml_http_server *server, struct ssl_ctx_st *tls)
{
    ml_assert(server->connections.tls && tls);
    SSL_CTX_up_ref(tls);
    SSL_CTX_free(server->connections.tls);
    server->connections.tls = tls;
}

int ml_http_server_port(const struct ml_http_server *server)
{
    return ml_tcp_local_port(ml_http_server_listener(server));
}

int ml_http_server_listener(const struct ml_http_server *server)
{
    return evconnlistener_get_fd(server->listener);
}

size_t ml_http_server_connections(const struct ml_http_server *server)
{
    return server->connections.count;
}

size_t ml_http_server_unsent(const struct ml_http_server *server)
{
    return http_unsent_bytes(server->connections.unsent, server->connections.unsent_bytes);
}
