#include "cluster/host/relay.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"

#define WAITING_MAX     ((size_t)256 * 1024) /* bytes for a peer; then its sender waits */
#define WAITING_LOW     ((size_t)64 * 1024)  /* until so few are left */
#define IDLE_S          60                   /* then a peer is asked whether it is still there */
#define ASK_EVERY_S     10                   /* without an answer to some of these it is not */
#define ACCEPT_AGAIN_NS (100 * ML_NS_PER_MS) /* after descriptors have run out */

struct ml_relay {
    struct ml_loop *loop;
    struct ml_list connections, listeners;
    size_t connection_count, connections_max;
};

struct ml_relay_listener {
    struct ml_list node;
    struct ml_relay *relay;
    struct evconnlistener *listener;
    struct ml_timer again;
    ml_relay_find *find;
    void *context;
};

enum { CLIENT, TARGET, SIDES };

struct side {
    struct connection *connection;
    struct bufferevent *socket;
    bool has_ended; /* it sends no more */
};

struct connection {
    struct ml_list node;
    struct ml_relay *relay;
    struct side sides[SIDES];
    bool is_connected;
};

static struct side *other_side(struct side *side)
{
    return &side->connection->sides[side == side->connection->sides ? TARGET : CLIENT];
}

/* ---- the end of a connection ---- */

/* A close of the socket then resets the connection. */
static void reset_on_close(int fd)
{
    const struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void connection_free(struct connection *connection, bool reset)
{
    for (size_t i = 0; i < SIDES; i++) {
        struct bufferevent *socket = connection->sides[i].socket;
        if (socket && reset)
            reset_on_close(bufferevent_getfd(socket));
        if (socket)
            bufferevent_free(socket);
    }
    ml_list_remove(&connection->node);
    connection->relay->connection_count--;
    free(connection);
}

/* Passes the end of a stream on, once all that came before it has been. */
static void pass_end_on(struct side *from)
{
    struct side *to = other_side(from);
    if (!from->has_ended || evbuffer_get_length(bufferevent_get_output(to->socket)) > 0)
        return;
    shutdown(bufferevent_getfd(to->socket), SHUT_WR);
}

static bool is_finished(const struct connection *connection)
{
    for (size_t i = 0; i < SIDES; i++) {
        const struct side *side = &connection->sides[i];
        if (!side->has_ended || evbuffer_get_length(bufferevent_get_output(side->socket)) > 0)
            return false;
    }
    return true;
}

/* ---- bytes ---- */

static void on_readable(struct bufferevent *socket, void *context)
{
    struct side *from = context, *to = other_side(from);
    struct evbuffer *out = bufferevent_get_output(to->socket);
    evbuffer_add_buffer(out, bufferevent_get_input(socket));
    if (evbuffer_get_length(out) > WAITING_MAX)
        bufferevent_disable(socket, EV_READ);
}

/* Few bytes wait for this side any more. */
static void on_written(struct bufferevent *socket, void *context)
{
    struct side *to = context, *from = other_side(to);
    if (!from->has_ended) {
        bufferevent_enable(from->socket, EV_READ);
        return;
    }
    if (evbuffer_get_length(bufferevent_get_output(socket)) > 0)
        return;
    pass_end_on(from);
    if (is_finished(to->connection))
        connection_free(to->connection, false);
}

static void on_connected(struct connection *connection)
{
    connection->is_connected = true;
    for (size_t i = 0; i < SIDES; i++)
        bufferevent_enable(connection->sides[i].socket, EV_READ | EV_WRITE);
}

static void on_side_event(struct bufferevent *socket, short what, void *context)
{
    struct side *side = context;
    (void)socket;
    if (what & BEV_EVENT_CONNECTED) {
        on_connected(side->connection);
        return;
    }
    if (!(what & BEV_EVENT_EOF) || !side->connection->is_connected) {
        connection_free(side->connection, true);
        return;
    }
    side->has_ended = true;
    /* From now on its peer's buffer says when it is empty, not when it is almost. */
    bufferevent_setwatermark(other_side(side)->socket, EV_WRITE, 0, 0);
    pass_end_on(side);
    if (is_finished(side->connection))
        connection_free(side->connection, false);
}

/* ---- new connections ---- */

static void set_up_side(struct connection *connection, size_t which, int fd)
{
    struct side *side = &connection->sides[which];
    const int on = 1, idle_s = IDLE_S, every_s = ASK_EVERY_S;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    side->connection = connection;
    side->socket = bufferevent_socket_new(ml_loop_base(connection->relay->loop), fd,
                                          BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    ml_assert(side->socket != NULL);
    bufferevent_setcb(side->socket, on_readable, on_written, on_side_event, side);
    bufferevent_setwatermark(side->socket, EV_WRITE, WAITING_LOW, 0);
    bufferevent_disable(side->socket, EV_READ); /* nothing is read before there is a target */
}

static struct connection *connection_new(struct ml_relay *relay, int client, int target)
{
    struct connection *connection = ml_new(struct connection);
    connection->relay = relay;
    relay->connection_count++;
    ml_list_push(&relay->connections, &connection->node);
    set_up_side(connection, CLIENT, client);
    set_up_side(connection, TARGET, target);
    return connection;
}

bool ml_relay_has_room(const struct ml_relay *relay)
{
    return relay->connection_count < relay->connections_max;
}

void ml_relay_join(struct ml_relay *relay, int client, int target)
{
    on_connected(connection_new(relay, client, target));
}

static void pass_connection_on(struct ml_relay *relay, int client,
                               const struct ml_relay_target *target)
{
    struct connection *connection = connection_new(relay, client, target->socket);
    if (bufferevent_socket_connect(connection->sides[TARGET].socket,
                                   (const struct sockaddr *)&target->address,
                                   sizeof target->address) < 0)
        connection_free(connection, true);
}

static void on_accepted(struct evconnlistener *listener, evutil_socket_t fd,
                        struct sockaddr *address, int len, void *context)
{
    struct ml_relay_listener *self = context;
    struct ml_relay *relay = self->relay; /* find() may free the listener */
    struct ml_relay_target target = {.socket = -1};
    struct in_addr client = {0};
    (void)listener;
    if (len == (int)sizeof(struct sockaddr_in) && address->sa_family == AF_INET)
        client = ((const struct sockaddr_in *)address)->sin_addr;
    if (ml_relay_has_room(relay) && self->find(self->context, client, &target)) {
        pass_connection_on(relay, (int)fd, &target);
        return;
    }
    reset_on_close((int)fd);
    close((int)fd);
}

/* ---- listeners ---- */

static void accept_again(void *context)
{
    struct ml_relay_listener *self = context;
    evconnlistener_enable(self->listener);
}

/* Descriptors have run out. */
static void on_accept_failed(struct evconnlistener *listener, void *context)
{
    struct ml_relay_listener *self = context;
    evconnlistener_disable(listener);
    ml_timer_start(&self->again, ACCEPT_AGAIN_NS);
}

struct ml_relay_listener *ml_relay_listen(struct ml_relay *relay, int fd, ml_relay_find *find,
                                          void *context)
{
    struct ml_relay_listener *self = ml_new(struct ml_relay_listener);
    self->relay = relay;
    self->find = find;
    self->context = context;
    self->listener = evconnlistener_new(ml_loop_base(relay->loop), on_accepted, self,
                                        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    ml_assert(self->listener != NULL);
    evconnlistener_set_error_cb(self->listener, on_accept_failed);
    ml_timer_init(&self->again, relay->loop, accept_again, self);
    ml_list_push(&relay->listeners, &self->node);
    return self;
}

void ml_relay_listener_free(struct ml_relay_listener *listener)
{
    if (!listener)
        return;
    ml_timer_stop(&listener->again);
    evconnlistener_free(listener->listener);
    ml_list_remove(&listener->node);
    free(listener);
}

/* A connection takes two descriptors; pods must leave some for others. */
static size_t connections_max(void)
{
    struct rlimit descriptors = {0};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    return ML_MIN((rlim_t)ML_RELAY_CONNECTIONS_MAX, ML_MAX(descriptors.rlim_cur / 8, (rlim_t)1));
}

struct ml_relay *ml_relay_new(struct ml_loop *loop)
{
    struct ml_relay *relay = ml_new(struct ml_relay);
    relay->loop = loop;
    relay->connections_max = connections_max();
    ml_list_init(&relay->connections);
    ml_list_init(&relay->listeners);
    return relay;
}

void ml_relay_free(struct ml_relay *relay)
{
    if (!relay)
        return;
    while (!ml_list_empty(&relay->listeners))
        ml_relay_listener_free(
            ml_container_of(relay->listeners.next, struct ml_relay_listener, node));
    while (!ml_list_empty(&relay->connections))
        connection_free(ml_container_of(relay->connections.next, struct connection, node), true);
    free(relay);
}
