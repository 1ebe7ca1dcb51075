/* For tests of the HTTP server: a client that sends bytes as they stand, plain or over TLS, and
 * keeps what comes back. */
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "net_unit.h"

struct raw {
    struct net *net;
    int fd;
    SSL *ssl;
    struct ml_loop_watch *watch; /* NULL: does not read */
    struct ml_buf got;
    const char *until; /* stops the loop when it has come; NULL: when the server closes */
    bool closed;
    bool reset;
};

static inline bool raw_satisfied(struct raw *raw)
{
    if (raw->closed)
        return true;
    return raw->until && strstr(ml_buf_cstr(&raw->got), raw->until);
}

static inline ssize_t raw_read_once(struct raw *raw, char *bytes, size_t size)
{
    if (!raw->ssl)
        return recv(raw->fd, bytes, size, MSG_DONTWAIT);
    ERR_clear_error();
    int got = SSL_read(raw->ssl, bytes, (int)size);
    if (got > 0)
        return got;
    bool blocked = SSL_get_error(raw->ssl, got) == SSL_ERROR_WANT_READ;
    errno = blocked ? EAGAIN : ECONNRESET;
    return SSL_get_error(raw->ssl, got) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

static inline void raw_readable(void *context)
{
    struct raw *raw = context;
    char bytes[32 * 1024];
    ssize_t got;
    while ((got = raw_read_once(raw, bytes, sizeof bytes)) > 0)
        ml_buf_append(&raw->got, bytes, (size_t)got);
    if (got == 0 || errno != EAGAIN) {
        raw->closed = true;
        raw->reset = got < 0;
        ml_loop_watch_free(ml_take(&raw->watch));
    }
    if (raw_satisfied(raw))
        ml_loop_stop(raw->net->loop);
}

static inline void raw_connect(struct raw *raw, struct net *net, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *raw = (struct raw){.net = net};
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(raw->fd, (struct sockaddr *)&address, sizeof address), 0);
    fcntl(raw->fd, F_SETFL, O_NONBLOCK);
    raw->watch = ml_loop_watch_fd(net->loop, raw->fd, raw_readable, raw);
}

static inline void raw_handshake(void *context)
{
    struct raw *raw = context;
    if (SSL_do_handshake(raw->ssl) == 1)
        ml_loop_stop(raw->net->loop);
    else
        assert_int_equal(SSL_get_error(raw->ssl, -1), SSL_ERROR_WANT_READ);
}

static inline void raw_connect_tls(struct raw *raw, struct net *net, int port)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    raw_connect(raw, net, port);
    ml_loop_watch_free(raw->watch);
    raw->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    SSL_set_fd(raw->ssl, raw->fd);
    SSL_set_connect_state(raw->ssl);
    raw->watch = ml_loop_watch_fd(net->loop, raw->fd, raw_handshake, raw);
    raw_handshake(raw);
    net_run(net);
    ml_loop_watch_free(raw->watch);
    raw->watch = ml_loop_watch_fd(net->loop, raw->fd, raw_readable, raw);
}

/* Sends what the socket takes; returns how much that was. */
static inline size_t raw_send_some(struct raw *raw, const char *bytes, size_t len)
{
    ssize_t sent = raw->ssl ? SSL_write(raw->ssl, bytes, (int)len)
                            : send(raw->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent > 0 ? (size_t)sent : 0;
}

static inline void raw_send(struct raw *raw, const char *text)
{
    assert_int_equal(raw_send_some(raw, text, strlen(text)), strlen(text));
}

/* Serves the loop until `text` has come; NULL: until the server closes. */
static inline void raw_wait(struct raw *raw, const char *text)
{
    raw->until = text;
    if (!raw_satisfied(raw))
        net_run(raw->net);
    if (text && raw->closed)
        assert_has(ml_buf_cstr(&raw->got), text);
}

static inline void raw_send_large(struct raw *raw, const char *bytes, size_t len)
{
    for (size_t sent; len && !raw->closed; bytes += sent, len -= sent) {
        sent = raw_send_some(raw, bytes, len);
        if (sent == 0)
            net_settle(raw->net, 1);
    }
}

static inline void raw_stop_reading(struct raw *raw)
{
    ml_loop_watch_free(ml_take(&raw->watch));
}

static inline void raw_close(struct raw *raw)
{
    ml_loop_watch_free(raw->watch);
    SSL_free(raw->ssl);
    close(raw->fd);
    ml_buf_fini(&raw->got);
}
