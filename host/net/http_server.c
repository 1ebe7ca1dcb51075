#include "net/http_server_internal.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "net/http_listen.h"

#define HEADER_BYTES_MAX ((size_t)64 * 1024)
#define BODY_BYTES_MAX   ((size_t)3 * 1024 * 1024)
#define ARRIVAL_MS       INT64_C(30000)
#define IDLE_MS          INT64_C(180000)
#define CONNECTIONS_MAX  1024
#define LINGER_MS        INT64_C(2000) /* for a refused client to stop sending and read why */
#define ACCEPT_AGAIN_MS  INT64_C(1000)

static void timer_start(struct http_connection *connection, int64_t ms)
{
    ml_timer_start(&connection->timer, ms * ML_NS_PER_MS);
}

static void move_to(struct http_connection *connection, struct ml_list *list)
{
    ml_list_remove(&connection->node);
    ml_list_push(list, &connection->node);
}

/* Closes at once. Never inside a callback of this very connection. */
static void connection_end(struct http_connection *connection)
{
    evhttp_connection_free(connection->evcon); /* on_closed frees the rest */
}

static struct ml_str evcon_key(const struct http_connection *connection)
{
    return (struct ml_str){(const char *)&connection->evcon, sizeof connection->evcon};
}

struct http_connection *http_connection_of(struct ml_http_server *server,
                                           struct evhttp_connection *evcon)
{
    struct ml_str key = {(const char *)&evcon, sizeof evcon};
    struct http_connection *connection = ml_map_get(&server->by_evcon, key);
    ml_assert(connection != NULL);
    return connection;
}

void http_connection_take(struct http_connection *connection)
{
    connection->phase = HTTP_BUSY;
    ml_timer_stop(&connection->timer);
    move_to(connection, &connection->server->busy);
}

void http_connection_sending(struct http_connection *connection)
{
    connection->phase = HTTP_SENDING;
    connection->unsent_bytes = SIZE_MAX;
    timer_start(connection, connection->server->opts.limits.arrival_ms);
}

void http_connection_wait(struct http_connection *connection)
{
    const struct ml_http_limits *limits = &connection->server->opts.limits;
    /* Bytes that are here already are the beginning of the next request. */
    connection->arrived_bytes = evbuffer_get_length(bufferevent_get_input(connection->bev));
    connection->phase = connection->arrived_bytes ? HTTP_ARRIVING : HTTP_IDLE;
    timer_start(connection, connection->arrived_bytes ? limits->arrival_ms : limits->idle_ms);
    move_to(connection, &connection->server->waiting);
}

void http_connection_abort(struct http_connection *connection)
{
    /* Later: the caller may stand in a callback of evhttp for this connection. */
    connection->phase = HTTP_ABORTED;
    ml_task_defer(&connection->task, connection->server->opts.loop);
}

/* ---- refusing a request before it is whole ---- */

/* What a refused client goes on sending; closing with bytes unread would reset the connection
 * and take our answer from the client. `context` is not to be trusted: evhttp may have a call
 * of the read callback pending with an argument of its own. */
static void drop_input(struct bufferevent *bev, void *context)
{
    struct evbuffer *input = bufferevent_get_input(bev);
    (void)context;
    evbuffer_drain(input, evbuffer_get_length(input));
}

static void on_refusal_sent(struct bufferevent *bev, void *context)
{
    (void)context;
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    if (evbuffer_get_length(bufferevent_get_output(bev)))
        return;
    if (ssl)
        SSL_shutdown(ssl);
    ERR_clear_error();
    shutdown(bufferevent_getfd(bev), SHUT_WR);
}

static void on_refused_gone(struct bufferevent *bev, short what, void *context)
{
    (void)bev, (void)what;
    connection_end(context);
}

static void send_refusal(struct http_connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->bev);
    struct ml_http_answer answer = {0};
    http_refusal(connection->server, connection->refusal, &answer);
    drop_input(connection->bev, NULL);
    evbuffer_add_printf(output,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                        "Connection: close\r\n\r\n",
                        answer.status, http_reason(answer.status), answer.content_type,
                        answer.body.len);
    evbuffer_add(output, answer.body.ptr, answer.body.len);
    bufferevent_setcb(connection->bev, drop_input, on_refusal_sent, on_refused_gone, connection);
    bufferevent_enable(connection->bev, EV_READ | EV_WRITE);
    timer_start(connection, LINGER_MS);
}

/* evhttp would read all of it, or answer with an HTML page and a reset. So it hears nothing
 * more of this connection, and we answer ourselves, off the stack of this callback. */
static void refuse(struct http_connection *connection, int status)
{
    connection->phase = HTTP_REFUSED;
    connection->refusal = status;
    bufferevent_setcb(connection->bev, NULL, NULL, on_refused_gone, connection);
    ml_task_defer(&connection->task, connection->server->opts.loop);
}

static void on_task(void *context)
{
    struct http_connection *connection = context;
    if (connection->phase == HTTP_REFUSED)
        send_refusal(connection);
    else
        connection_end(connection);
}

/* ---- one connection ---- */

/* The most that may be read of one request: more than this cannot be within the limits. */
static size_t arrived_max(const struct ml_http_server *server)
{
    return server->opts.limits.header_bytes_max + server->opts.limits.body_bytes_max;
}

/* Runs before evhttp sees the bytes. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *context)
{
    struct http_connection *connection = context;
    struct ml_http_server *server = connection->server;
    (void)input;
    if (info->n_added == 0)
        return;
    if (connection->phase == HTTP_IDLE) {
        connection->phase = HTTP_ARRIVING;
        timer_start(connection, server->opts.limits.arrival_ms);
    }
    if (connection->phase != HTTP_ARRIVING)
        return;
    connection->arrived_bytes += info->n_added;
    if (connection->arrived_bytes > arrived_max(server))
        refuse(connection, 413);
}

/* Over TLS a write callback may come when new bytes have been added since (it is deferred, and
 * the length is not looked at again); evhttp would take it for the end of the answer, and cut
 * that off or mix it up with the next request. */
static void on_written(struct bufferevent *bev, void *context)
{
    struct http_connection *connection = context;
    if (evbuffer_get_length(bufferevent_get_output(bev)) == 0)
        connection->evhttp_write(bev, connection->evcon);
}

static void on_event(struct bufferevent *bev, short what, void *context)
{
    struct http_connection *connection = context;
    connection->evhttp_event(bev, what, connection->evcon); /* frees the connection */
}

void http_connection_guard(struct http_connection *connection)
{
    /* No read callback: evhttp's own would end the process when bytes of the next request come
     * in while this one is being answered. They stay in the input buffer. */
    bufferevent_setcb(connection->bev, NULL, on_written, on_event, connection);
    /* evhttp stops reading while a handler works, and would see a client's close only when it
     * writes the next time. */
    bufferevent_enable(connection->bev, EV_READ);
}

static void on_timer(void *context)
{
    struct http_connection *connection = context;
    size_t unsent = evbuffer_get_length(bufferevent_get_output(connection->bev));
    if (connection->phase == HTTP_SENDING && unsent < connection->unsent_bytes) {
        connection->unsent_bytes = unsent; /* slow, but it takes something */
        timer_start(connection, connection->server->opts.limits.arrival_ms);
        return;
    }
    connection_end(connection);
}

/* Who speaks plain HTTP to a TLS port is told so, as Go's server does. */
static void tell_plain_client(struct bufferevent *bev)
{
    static const char text[] = "HTTP/1.0 400 Bad Request\r\n\r\n"
                               "Client sent an HTTP request to an HTTPS server.\n";
    char rest[4096];
    bool is_http = false;
    for (unsigned long error; (error = bufferevent_get_openssl_error(bev));)
        is_http |= ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST;
    if (!is_http)
        return;
    /* What is left unread would make the close a reset. */
    while (recv(bufferevent_getfd(bev), rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
    send(bufferevent_getfd(bev), text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* libevent frees the TLS state without a close_notify, and a client could not tell the end of an
 * answer without a length from a cut. */
static void end_tls(struct bufferevent *bev)
{
    SSL *ssl = bufferevent_openssl_get_ssl(bev);
    if (ssl && SSL_is_init_finished(ssl)) {
        SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN); /* do not wait for the client's */
        SSL_shutdown(ssl);
        ERR_clear_error();
    } else if (ssl) {
        tell_plain_client(bev);
    }
}

static void connection_forget(struct http_connection *connection)
{
    ml_timer_stop(&connection->timer);
    ml_task_cancel(&connection->task);
    ml_list_remove(&connection->node);
    connection->server->connection_count--;
    free(connection->headers);
    free(connection);
}

static void on_closed(struct evhttp_connection *evcon, void *context)
{
    struct http_connection *connection = context;
    (void)evcon;
    evbuffer_remove_cb(bufferevent_get_input(connection->bev), on_input, connection);
    end_tls(connection->bev);
    ml_map_remove(&connection->server->by_evcon, evcon_key(connection));
    http_exchange_close(connection);
    connection_forget(connection);
}

/* ---- accepting ---- */

/* Matches a new bufferevent with the connection that evhttp has made of it meanwhile. */
static void connection_adopt(struct http_connection *connection)
{
    struct ml_http_server *server = connection->server;
    int on = 1;
    void *evcon = NULL;
    bufferevent_getcb(connection->bev, NULL, &connection->evhttp_write, &connection->evhttp_event,
                      &evcon);
    bufferevent_decref(connection->bev);
    if (!evcon) { /* evhttp has given it up already */
        connection_forget(connection);
        return;
    }
    connection->evcon = evcon;
    ml_map_put(&server->by_evcon, evcon_key(connection), connection);
    evhttp_connection_set_closecb(connection->evcon, on_closed, connection);
    evbuffer_add_cb(bufferevent_get_input(connection->bev), on_input, connection);
    /* What a client sends ahead while a request is being answered; room for the largest request
     * and a read that goes beyond it. */
    bufferevent_setwatermark(connection->bev, EV_READ, 0, arrived_max(server) + 64 * 1024);
    setsockopt(bufferevent_getfd(connection->bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    http_connection_wait(connection);
    connection->phase = HTTP_ARRIVING;
    timer_start(connection, server->opts.limits.arrival_ms);
}

static void make_room(struct ml_http_server *server, struct http_connection *newest)
{
    if (server->connection_count <= server->opts.limits.connections_max)
        return;
    struct ml_list *first = server->waiting.next; /* `newest` itself when all others are busy */
    connection_end(
        first == &server->waiting ? newest : ml_container_of(first, struct http_connection, node));
}

/* Runs in the same round of the loop as the accept, so before any byte has been read. */
static void on_adopt(evutil_socket_t fd, short what, void *context)
{
    struct ml_http_server *server = context;
    (void)fd, (void)what;
    for (struct ml_list *node; (node = ml_list_shift(&server->fresh));) {
        struct http_connection *connection = ml_container_of(node, struct http_connection, node);
        connection_adopt(connection);
        make_room(server, connection);
    }
}

/* evhttp's hook for the bufferevent of a new connection, the first we hear of it. Must not
 * fail: evhttp would go on without TLS. */
static struct bufferevent *on_accept(struct event_base *base, void *context)
{
    struct ml_http_server *server = context;
    struct http_connection *connection = ml_new(struct http_connection);
    SSL *ssl = server->opts.tls ? SSL_new(server->opts.tls) : NULL;
    ml_assert(!server->opts.tls || ssl);
    connection->server = server;
    connection->bev = ssl ? bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                           BEV_OPT_CLOSE_ON_FREE)
                          : bufferevent_socket_new(base, -1, 0);
    ml_assert(connection->bev != NULL);
    bufferevent_incref(connection->bev); /* until it is adopted */
    ml_timer_init(&connection->timer, server->opts.loop, on_timer, connection);
    ml_task_init(&connection->task, on_task, connection);
    ml_list_init(&connection->node);
    ml_list_push(&server->fresh, &connection->node);
    server->connection_count++;
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
        limits->connections_max = CONNECTIONS_MAX;
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
    ml_map_fini(&server->by_evcon);
    SSL_CTX_free(server->opts.tls);
    free(server);
}

int ml_http_server_port(const struct ml_http_server *server)
{
    return server->port;
}

size_t ml_http_server_connections(const struct ml_http_server *server)
{
    return server->connection_count;
}
