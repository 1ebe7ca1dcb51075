#include "net/http_server.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>

#define HEADER_BYTES_MAX (16 * 1024)
#define BODY_BYTES_MAX   (64 * 1024) /* probes and metrics have none */
#define IDLE_TIMEOUT_S   30
#define LISTEN_BACKLOG   128

struct route {
    struct ml_list node;
    char *path;
    ml_http_handle *handle;
    void *context;
};

struct ml_http_server {
    struct evhttp *http;
    int port;
    struct ml_list routes;
};

/* The longest route that covers `path`, or NULL. */
static const struct route *find_route(struct ml_http_server *server, const char *path)
{
    const struct route *best = NULL;
    ml_list_each (node, &server->routes) {
        const struct route *route = ml_container_of(node, struct route, node);
        size_t len = strlen(route->path);
        bool covers = strncmp(path, route->path, len) == 0 &&
                      (path[len] == '\0' || (len > 0 && route->path[len - 1] == '/'));
        if (covers && (!best || len > strlen(best->path)))
            best = route;
    }
    return best;
}

static void answer_plain(struct ml_http_exchange *exchange, int status, const char *text)
{
    exchange->status = status;
    exchange->content_type = "text/plain; charset=utf-8";
    ml_buf_fini(&exchange->reply);
    ml_buf_init(&exchange->reply, 0); /* whatever maximum the handler had set */
    ml_buf_puts(&exchange->reply, text);
}

static void send_reply(struct evhttp_request *request, struct ml_http_exchange *exchange)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    bool is_head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
    struct evbuffer *body = evbuffer_new();
    char length[24];
    ml_assert(body != NULL);
    if (exchange->reply.failed)
        answer_plain(exchange, 500, "answer too large\n");
    evhttp_add_header(headers, "Content-Type", exchange->content_type);
    if (is_head) {
        /* What GET would have sent; evhttp itself leaves the field out. */
        snprintf(length, sizeof length, "%zu", exchange->reply.len);
        evhttp_add_header(headers, "Content-Length", length);
    } else if (exchange->reply.len) {
        evbuffer_add(body, exchange->reply.ptr, exchange->reply.len);
    }
    evhttp_send_reply(request, exchange->status, NULL, body);
    evbuffer_free(body);
}

/* The decoded path, or NULL when it holds a NUL and would mean something else cut off there.
 * The caller frees it. */
static char *decode_path(const struct evhttp_uri *uri)
{
    const char *raw = uri ? evhttp_uri_get_path(uri) : NULL;
    size_t len = 0;
    char *path = evhttp_uridecode(raw && raw[0] ? raw : "/", 0, &len);
    if (path && strlen(path) != len)
        free(ml_take(&path));
    return path;
}

static const char *method_name(struct evhttp_request *request)
{
    switch ((int)evhttp_request_get_command(request)) {
    case EVHTTP_REQ_GET:
        return "GET";
    case EVHTTP_REQ_HEAD:
        return "HEAD";
    default:
        return NULL;
    }
}

static void serve(struct ml_http_server *server, struct evhttp_request *request,
                  struct ml_http_exchange *exchange)
{
    const struct route *route = exchange->path ? find_route(server, exchange->path) : NULL;
    if (!exchange->path) {
        answer_plain(exchange, 400, "bad path\n");
    } else if (!route) {
        answer_plain(exchange, 404, "not found\n");
    } else if (!exchange->method) {
        evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD");
        answer_plain(exchange, 405, "method not allowed\n");
    } else {
        route->handle(route->context, exchange);
    }
}

static void on_request(struct evhttp_request *request, void *context)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *query = uri ? evhttp_uri_get_query(uri) : NULL;
    struct evbuffer *input = evhttp_request_get_input_buffer(request);
    ML_AUTO_FREE char *path = decode_path(uri);
    struct ml_http_exchange exchange = {
        .method = method_name(request),
        .path = path,
        .query = query ? query : "",
        .status = 200,
        .content_type = "text/plain; charset=utf-8",
        .body.len = evbuffer_get_length(input),
    };
    exchange.body.ptr = (const char *)evbuffer_pullup(input, -1);
    serve(context, request, &exchange);
    send_reply(request, &exchange);
    ml_buf_fini(&exchange.reply);
}

/* Splits "host:port", "[v6]:port" or ":port". */
static bool split_address(const char *address, char *host, size_t host_size, char *port,
                          size_t port_size)
{
    const char *colon = strrchr(address, ':');
    uint64_t number = 0;
    if (!colon || !ml_str_to_u64(ml_str_of(colon + 1), &number) || number > 65535)
        return false;
    struct ml_str name = {address, (size_t)(colon - address)};
    if (name.len >= 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']')
        name = (struct ml_str){name.ptr + 1, name.len - 2};
    else if (memchr(name.ptr, ':', name.len))
        return false;
    if (name.len >= host_size)
        return false;
    snprintf(host, host_size, ML_STR_FMT, ML_STR_ARG(name));
    snprintf(port, port_size, "%u", (unsigned)number);
    return true;
}

/* A listening socket, or -1 with errno set. All addresses means both families on one socket. */
static int listen_on(const struct addrinfo *info)
{
    int on = 1, off = 0;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static int open_socket(const char *address, int *out, struct ml_err *err)
{
    char host[256], port[8];
    if (!split_address(address, host, sizeof host, port, sizeof port))
        return ml_err_set(err, ML_EINVALID, "address \"%s\": not host:port or :port", address);
    /* IPv6 first where both are meant: only that socket can serve the two. */
    static const int families[] = {AF_INET6, AF_INET};
    int fd = -1, failed = EADDRNOTAVAIL;
    bool resolved = false;
    for (size_t i = 0; i < ML_COUNT(families) && fd < 0; i++) {
        struct addrinfo hints = {.ai_family = families[i],
                                 .ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
        struct addrinfo *info = NULL;
        if (getaddrinfo(host[0] ? host : NULL, port, &hints, &info) != 0)
            continue;
        resolved = true;
        fd = listen_on(info);
        failed = errno;
        freeaddrinfo(info);
    }
    if (fd < 0 && !resolved)
        return ml_err_set(err, ML_EINVALID, "address \"%s\": no such host", address);
    if (fd < 0)
        return ml_err_set(err, ML_EIO, "listen on %s: %s", address, strerror(failed));
    *out = fd;
    return 0;
}

static int socket_port(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    char port[8] = "0";
    if (getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        getnameinfo((struct sockaddr *)&address, len, NULL, 0, port, sizeof port, NI_NUMERICSERV);
    return atoi(port);
}

int ml_http_server_new(struct ml_loop *loop, const char *address, struct ml_http_server **out,
                       struct ml_err *err)
{
    int fd = -1;
    int r = open_socket(address, &fd, err);
    if (r < 0)
        return r;
    struct ml_http_server *server = ml_new(struct ml_http_server);
    ml_list_init(&server->routes);
    server->port = socket_port(fd);
    server->http = evhttp_new(ml_loop_base(loop));
    ml_assert(server->http != NULL);
    evhttp_set_timeout(server->http, IDLE_TIMEOUT_S);
    evhttp_set_max_headers_size(server->http, HEADER_BYTES_MAX);
    evhttp_set_max_body_size(server->http, BODY_BYTES_MAX);
    /* All of them: the refusal is ours, a 405 where evhttp would say 501. */
    evhttp_set_allowed_methods(server->http, UINT16_MAX);
    evhttp_set_gencb(server->http, on_request, server);
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(server->http, fd);
    ml_assert(bound != NULL);
    *out = server;
    return 0;
}

void ml_http_server_free(struct ml_http_server *server)
{
    if (!server)
        return;
    evhttp_free(server->http); /* and the socket */
    ml_list_each (node, &server->routes) {
        struct route *route = ml_container_of(node, struct route, node);
        free(route->path);
        free(route);
    }
    free(server);
}

int ml_http_server_port(const struct ml_http_server *server)
{
    return server->port;
}

void ml_http_server_route(struct ml_http_server *server, const char *path, ml_http_handle *handle,
                          void *context)
{
    struct route *route = ml_new(struct route);
    route->path = ml_strdup(path);
    route->handle = handle;
    route->context = context;
    ml_list_push(&server->routes, &route->node);
}
