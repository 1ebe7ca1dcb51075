/* For tests of the HTTP client: a peer on loopback that plays a script, byte for byte, however
 * wrong it is as HTTP. */
#pragma once

#include <arpa/inet.h>
#include <unistd.h>

#include "net_unit.h"

#define PEER_CONNECTIONS_MAX 8

/* A step waits, then writes. After the last the connection is closed, reset or left open. */
struct peer_step {
    int pause_ms;
    const char *bytes; /* NULL ends the script */
};

enum peer_end { PEER_CLOSE, PEER_RESET, PEER_HOLD };

struct peer_connection {
    struct peer *peer;
    int fd;
    struct ml_loop_watch *watch;
    struct ml_timer timer;
    struct ml_buf request;
    size_t step;
    bool closed_by_client;
};

struct peer {
    struct net *net;
    int fd;
    int port;
    struct ml_loop_watch *watch;
    const struct peer_step *steps;
    enum peer_end end;
    bool plays_at_once; /* on the first bytes, not on a whole request head */
    struct peer_connection connections[PEER_CONNECTIONS_MAX];
    size_t count;
};

static inline void peer_hang_up(struct peer_connection *connection)
{
    struct linger reset = {.l_onoff = 1};
    if (connection->fd < 0)
        return;
    ml_loop_watch_free(connection->watch);
    ml_timer_stop(&connection->timer);
    if (connection->peer->end == PEER_RESET)
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(connection->fd);
    connection->fd = -1;
}

static inline void peer_play(void *context)
{
    struct peer_connection *connection = context;
    const struct peer_step *step = &connection->peer->steps[connection->step];
    if (step->bytes) {
        ssize_t len = (ssize_t)strlen(step->bytes);
        assert_int_equal(write(connection->fd, step->bytes, (size_t)len), len);
        step++;
        connection->step++;
    }
    if (step->bytes)
        ml_timer_start(&connection->timer, step->pause_ms * ML_NS_PER_MS);
    else if (connection->peer->end != PEER_HOLD)
        peer_hang_up(connection);
}

/* Enough came in for the script to begin. */
static inline bool peer_ready(struct peer_connection *connection)
{
    if (connection->peer->plays_at_once)
        return connection->request.len > 0;
    return strstr(ml_buf_cstr(&connection->request), "\r\n\r\n") != NULL;
}

static inline void peer_read(void *context)
{
    struct peer_connection *connection = context;
    char bytes[4096];
    ssize_t got = read(connection->fd, bytes, sizeof bytes);
    if (got <= 0) {
        connection->closed_by_client = true;
        peer_hang_up(connection);
        return;
    }
    bool was_ready = peer_ready(connection);
    ml_buf_append(&connection->request, bytes, (size_t)got);
    if (!was_ready && peer_ready(connection))
        ml_timer_start(&connection->timer, connection->peer->steps[0].pause_ms * ML_NS_PER_MS);
}

static inline void peer_accept(void *context)
{
    struct peer *peer = context;
    assert_true(peer->count < PEER_CONNECTIONS_MAX);
    struct peer_connection *connection = &peer->connections[peer->count++];
    *connection = (struct peer_connection){.peer = peer};
    connection->fd = accept(peer->fd, NULL, NULL);
    assert_true(connection->fd >= 0);
    ml_timer_init(&connection->timer, peer->net->loop, peer_play, connection);
    connection->watch = ml_loop_watch_fd(peer->net->loop, connection->fd, peer_read, connection);
}

static inline int peer_listen(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static inline void peer_init(struct peer *peer, struct net *net, const struct peer_step *steps,
                             enum peer_end end)
{
    *peer = (struct peer){.net = net, .steps = steps, .end = end};
    peer->fd = peer_listen(&peer->port);
    peer->watch = ml_loop_watch_fd(net->loop, peer->fd, peer_accept, peer);
}

static inline void peer_fini(struct peer *peer)
{
    for (size_t i = 0; i < peer->count; i++) {
        peer_hang_up(&peer->connections[i]);
        ml_buf_fini(&peer->connections[i].request);
    }
    ml_loop_watch_free(peer->watch);
    close(peer->fd);
}

/* What the client sent first, as text. */
static inline const char *peer_request(struct peer *peer)
{
    assert_true(peer->count > 0);
    return ml_buf_cstr(&peer->connections[0].request);
}
