#include <event2/event.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include "net/http_exchange.h"
#include "net/http_listen.h"

#define HEADER_BYTES_MAX  ((size_t)64 * 1024)
#define BODY_BYTES_MAX    ((size_t)3 * 1024 * 1024)
#define ARRIVAL_MS        INT64_C(30000)
#define IDLE_MS           INT64_C(180000)
#define CONNECTIONS_MAX   1024 /* and no more than a quarter of the descriptors there are */
#define UNSENT_BYTES_MAX  ((size_t)64 * 1024 * 1024)
#define ARRIVED_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define ACCEPT_AGAIN_MS   INT64_C(1000)

/* ---- accepting ---- */

static void make_room(struct ml_http_server *server, struct http_connection *newest)
{
    if (server->connection_count <= server->opts.limits.connections_max)
        return;
    struct ml_list *first = server->waiting.next; /* `newest` itself when all others are busy */
    http_connection_end(
        first == &server->waiting ? newest : ml_container_of(first, struct http_connection, node));
}

/* Runs in the same round of the loop as the accept, so before any byte has been read. */
static void on_adopt(evutil_socket_t fd, short what, void *context)
{
    struct ml_http_server *server = context;
    (void)fd, (void)what;
    for (struct ml_list *node; (node = ml_list_shift(&server->fresh));) {
        struct http_connection *connection = ml_container_of(node, struct http_connection, node);
        if (http_connection_adopt(connection))
            make_room(server, connection);
    }
}

/* evhttp's hook for the bufferevent of a new connection, the first we hear of it. Must not
 * fail: evhttp would go on without TLS. */
static struct bufferevent *on_accept(struct event_base *base, void *context)
{
    struct ml_http_server *server = context;
    struct http_connection *connection = http_connection_new(server, base);
    event_active(server->adopt, EV_TIMEOUT, 0);
    return connection->bev;
}

/* No descriptors, most likely. The pending connection would wake us again at once, and for
 * ever. evhttp keeps the listener's context for itself, so that the way back is a timer that
 * always runs. */
static void on_accept_error(struct evconnlistener *listener, void *evhttp)
{
    (void)evhttp;
    evconnlistener_disable(listener);
}

static void accept_again(void *context)
{
    struct ml_http_server *server = context;
    evconnlistener_enable(server->listener);
    ml_timer_start(&server->accepting, ACCEPT_AGAIN_MS * ML_NS_PER_MS);
}

/* ---- the server ---- */

/* So that clients that hold connections leave some for those to the API server. */
static size_t connections_max(void)
{
    struct rlimit descriptors = {0};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    return ML_MIN(CONNECTIONS_MAX, ML_MAX(descriptors.rlim_cur / 4, (rlim_t)1));
}

static void fill_limits(struct ml_http_limits *limits)
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
        limits->connections_max = connections_max();
    if (!limits->unsent_bytes_max)
        limits->unsent_bytes_max = UNSENT_BYTES_MAX;
    if (!limits->arrived_bytes_max)
        limits->arrived_bytes_max = ARRIVED_BYTES_MAX;
}

static void start_http(struct ml_http_server *server, int fd)
{
    server->http = evhttp_new(ml_loop_base(server->opts.loop));
    ml_assert(server->http != NULL);
    evhttp_set_max_headers_size(server->http, (ev_ssize_t)server->opts.limits.header_bytes_max);
    evhttp_set_max_body_size(server->http, -1); /* ours: see on_input and http_exchange_begin */
    evhttp_set_allowed_methods(server->http, UINT16_MAX); /* the refusal is ours */
    evhttp_set_default_content_type(server->http, NULL);
    evhttp_set_bevcb(server->http, on_accept, server);
    evhttp_set_gencb(server->http, http_exchange_begin, server);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(server->http, fd);
    ml_assert(bound != NULL);
    server->listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(server->listener, on_accept_error);
}

int ml_http_server_new(const struct ml_http_server_opts *opts, struct ml_http_server **out,
                       struct ml_err *err)
{
    int fd = -1;
    int r = ml_http_listen(opts->address, &fd, err);
    if (r < 0)
        return r;
    struct ml_http_server *server = ml_new(struct ml_http_server);
    server->opts = *opts;
    server->opts.address = NULL;
    fill_limits(&server->opts.limits);
    server->port = ml_http_listen_port(fd);
    server->unsent = http_unsent_new();
    ml_list_init(&server->fresh);
    ml_list_init(&server->waiting);
    ml_list_init(&server->busy);
    if (opts->tls)
        SSL_CTX_up_ref(opts->tls);
    server->adopt = event_new(ml_loop_base(opts->loop), -1, 0, on_adopt, server);
    ml_assert(server->adopt != NULL);
    start_http(server, fd);
    ml_timer_init(&server->accepting, opts->loop, accept_again, server);
    ml_timer_start(&server->accepting, ACCEPT_AGAIN_MS * ML_NS_PER_MS);
    *out = server;
    return 0;
}

void ml_http_server_free(struct ml_http_server *server)
{
    if (!server)
        return;
    on_adopt(-1, 0, server); /* so that all are known to each other */
    ml_timer_stop(&server->accepting);
    evhttp_free(server->http); /* and its connections and the socket */
    ml_assert(server->connection_count == 0);
    event_free(server->adopt);
    http_block_unref(server->last_block);
    http_unsent_unref(server->unsent);
    ml_map_fini(&server->by_evcon);
    SSL_CTX_free(server->opts.tls);
    free(server);
}

int ml_http_server_port(const struct ml_http_server *server)
{
    return server->port;
}

int ml_http_server_listener(const struct ml_http_server *server)
{
    return evconnlistener_get_fd(server->listener);
}

size_t ml_http_server_connections(const struct ml_http_server *server)
{
    return server->connection_count;
}
