/* cluster.tcp for the server's Lua: TCP connections to pods, as `kubectl port-forward` needs them,
 * and from pods to an address of the host's, with bytes in both directions; each direction ends by
 * itself. */
#include "cluster/host/lua_modules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/host/server_lua_internal.h"
#include "net/tcp.h"

#define CONNECTION      "cluster.tcp.connection"
#define LISTENER        "cluster.tcp.listener"
#define ACCEPT_AGAIN_NS (ML_NS_PER_S / 10)  /* after descriptors have run out */
#define WAITING_LOW     ((size_t)64 * 1024) /* bytes left to send when drained() is called */

/* The functions of the options, as user values in this order. */
static const char *const callbacks[] = {"connected", "data", "ended", "drained", "closed"};
enum { ON_CONNECTED = 1, ON_DATA, ON_ENDED, ON_DRAINED, ON_CLOSED };

/* A full userdata. The registry holds it, under its own address, until it is closed. */
struct connection {
    struct ml_server_lua *lua;
    struct bufferevent *socket; /* NULL: closed */
    bool has_ended;             /* the peer sends no more */
    bool is_ending;             /* Lua sends no more */
};

static void connection_close(struct connection *connection)
{
    bufferevent_free(ml_take(&connection->socket));
    binding_release(connection->lua->running, connection);
}

/* [-(arguments + 1)] Calls the function below the arguments, if it is one. */
static void call_if_any(struct ml_server_lua *lua, int arguments)
{
    if (lua_isnil(lua->running, -(arguments + 1)))
        lua_pop(lua->running, arguments + 1);
    else
        binding_call_back(lua, arguments);
}

/* Both directions have ended, or, with `why`, the connection is broken. Lua may collect it when
 * this returns. */
static void connection_end(struct connection *connection, const char *why)
{
    struct ml_server_lua *lua = connection->lua;
    binding_push_callback(lua->running, connection, ON_CLOSED);
    connection_close(connection);
    lua_pushstring(lua->running, why);
    call_if_any(lua, 1);
}

static size_t connection_waiting(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->socket));
}

/* Passes Lua's end on, once all that it wrote has been sent. */
static void connection_pass_end(struct connection *connection)
{
    if (!connection->is_ending || connection_waiting(connection) > 0)
        return;
    shutdown(bufferevent_getfd(connection->socket), SHUT_WR);
    if (connection->has_ended)
        connection_end(connection, NULL);
}

static void on_tcp_readable(struct bufferevent *socket, void *context)
{
    struct connection *connection = context;
    lua_State *L = connection->lua->running;
    struct evbuffer *input = bufferevent_get_input(socket);
    size_t len = evbuffer_get_length(input);
    binding_push_callback(L, connection, ON_DATA);
    lua_pushlstring(L, (const char *)evbuffer_pullup(input, -1), len);
    evbuffer_drain(input, len);
    call_if_any(connection->lua, 1);
}

static void on_tcp_written(struct bufferevent *socket, void *context)
{
    struct connection *connection = context;
    (void)socket;
    if (connection->is_ending) {
        connection_pass_end(connection);
        return;
    }
    binding_push_callback(connection->lua->running, connection, ON_DRAINED);
    call_if_any(connection->lua, 0);
}

static void on_peer_ended(struct connection *connection)
{
    struct ml_server_lua *lua = connection->lua;
    lua_rawgetp(lua->running, LUA_REGISTRYINDEX, connection); /* Lua may close and drop it */
    connection->has_ended = true;
    binding_push_callback(lua->running, connection, ON_ENDED);
    call_if_any(lua, 0);
    if (connection->socket)
        connection_pass_end(connection);
    lua_pop(lua->running, 1);
}

static void on_tcp_event(struct bufferevent *socket, short what, void *context)
{
    struct connection *connection = context;
    if (what & BEV_EVENT_CONNECTED) {
        bufferevent_enable(socket, EV_READ | EV_WRITE);
        binding_push_callback(connection->lua->running, connection, ON_CONNECTED);
        call_if_any(connection->lua, 0);
    } else if (what & BEV_EVENT_EOF) {
        on_peer_ended(connection);
    } else {
        connection_end(connection, strerror(EVUTIL_SOCKET_ERROR()));
    }
}

/* ---- for Lua ---- */

ML_RAISES static struct connection *check_connection(lua_State *L)
{
    struct connection *connection = luaL_checkudata(L, 1, CONNECTION);
    return connection->socket ? connection : NULL;
}

/* connection:write(bytes) -> bytes that wait to be sent; 0 when it is closed */
ML_RAISES static int connection_write(lua_State *L)
{
    struct connection *connection = check_connection(L);
    struct ml_str bytes = binding_check_str(L, 2);
    if (connection && connection->is_ending)
        return luaL_error(L, "connection:write: after its end");
    if (connection)
        bufferevent_write(connection->socket, bytes.ptr, bytes.len);
    lua_pushinteger(L, connection ? (lua_Integer)connection_waiting(connection) : 0);
    return 1;
}

/* connection:end_output(): the peer reads the end behind what was written */
ML_RAISES static int connection_end_output(lua_State *L)
{
    struct connection *connection = check_connection(L);
    if (!connection || connection->is_ending)
        return 0;
    connection->is_ending = true;
    /* From now on the callback says when nothing is left, not when little is. */
    bufferevent_setwatermark(connection->socket, EV_WRITE, 0, 0);
    if (connection_waiting(connection) == 0)
        bufferevent_trigger(connection->socket, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
    return 0;
}

/* connection:pause(paused): nothing is read meanwhile, and the peer has to wait */
ML_RAISES static int connection_pause(lua_State *L)
{
    struct connection *connection = check_connection(L);
    bool is_paused = lua_toboolean(L, 2);
    if (connection && is_paused)
        bufferevent_disable(connection->socket, EV_READ);
    else if (connection)
        bufferevent_enable(connection->socket, EV_READ);
    return 0;
}

/* connection:close(): at once; no callback follows */
ML_RAISES static int connection_close_at_once(lua_State *L)
{
    struct connection *connection = check_connection(L);
    if (connection)
        connection_close(connection);
    return 0;
}

/* Called for an open one only when the state is closed. */
static int connection_gc(lua_State *L)
{
    struct connection *connection = lua_touserdata(L, 1);
    if (connection->socket)
        bufferevent_free(ml_take(&connection->socket));
    return 0;
}

/* Address and port of the options at 1. */
ML_RAISES static struct sockaddr_in check_place(lua_State *L)
{
    struct sockaddr_in target = {.sin_family = AF_INET};
    lua_getfield(L, 1, "address");
    const char *text = luaL_checkstring(L, -1); /* the table keeps it */
    lua_getfield(L, 1, "port");
    lua_Integer port = luaL_checkinteger(L, -1);
    luaL_argcheck(L, port > 0 && port < 65536, 1, "port");
    if (inet_pton(AF_INET, text, &target.sin_addr) != 1)
        luaL_error(L, "\"%s\": no IPv4 address", text);
    target.sin_port = htons((uint16_t)port);
    lua_pop(L, 2);
    return target;
}

/* In the pod of the options, which may be on its own loopback; else as lua_network_socket. */
static int open_tcp_socket(lua_State *L, const struct ml_tcp_library *library,
                           struct in_addr address, struct ml_err *err)
{
    int fd = -1;
    lua_getfield(L, 1, "pod");
    int pod = lua_network_pod(L, -1);
    lua_pop(L, 1);
    if (pod < 0)
        return lua_network_socket(library->network, SOCK_STREAM, address, err);
    return ml_pod_network_socket_in(library->network, pod, &fd, err) < 0 ? -1 : fd;
}

/* [+1] */
static struct connection *push_new_connection(lua_State *L, struct ml_server_lua *lua)
{
    struct connection *connection = lua_newuserdatauv(L, sizeof *connection, ML_COUNT(callbacks));
    *connection = (struct connection){.lua = lua};
    luaL_setmetatable(L, CONNECTION);
    return connection;
}

/* Gives the connection on top the functions of the table at `options`. */
static void take_callbacks(lua_State *L, int options)
{
    for (size_t i = 0; i < ML_COUNT(callbacks); i++) {
        lua_getfield(L, options, callbacks[i]);
        lua_setiuservalue(L, -2, (int)i + 1);
    }
}

static void connection_take_socket(struct connection *connection, int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->socket = bufferevent_socket_new(ml_loop_base(connection->lua->options.loop), fd,
                                                BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    ml_assert(connection->socket != NULL);
    bufferevent_setcb(connection->socket, on_tcp_readable, on_tcp_written, on_tcp_event,
                      connection);
    bufferevent_setwatermark(connection->socket, EV_WRITE, WAITING_LOW, 0);
}

/* connect(options) -> connection, or nil and why not. options = { address =, port =, pod =,
 * connected =, data =, ended =, drained =, closed = } */
ML_RAISES static int tcp_connect(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    luaL_checktype(L, 1, LUA_TTABLE);
    const struct sockaddr_in target = check_place(L);
    struct connection *connection = push_new_connection(L, server_lua_of(L));
    take_callbacks(L, 1);
    int fd = open_tcp_socket(L, lua_touserdata(L, lua_upvalueindex(1)), target.sin_addr, &err);
    if (fd < 0)
        return binding_push_error(L, err.message);
    connection_take_socket(connection, fd);
    if (bufferevent_socket_connect(connection->socket, (const struct sockaddr *)&target,
                                   sizeof target) < 0) {
        const char *why = strerror(errno);
        bufferevent_free(ml_take(&connection->socket));
        return binding_push_error(L, why);
    }
    binding_hold(L, connection);
    return 1;
}

/* ---- who listens ---- */

enum { ON_ACCEPTED = 1 }; /* user value */

/* A full userdata. The registry holds it, under its own address, while it is open. */
struct listener {
    struct ml_server_lua *lua;
    struct evconnlistener *socket; /* NULL: closed */
    struct ml_timer again;         /* accepts again */
};

/* [-2] Gives the new connection the functions that Lua has returned for it, on top; without them
 * it is closed, if Lua has not done that. */
static void connection_begin(lua_State *L, struct connection *connection)
{
    if (connection->socket && lua_istable(L, -1)) {
        int options = lua_absindex(L, -1);
        lua_pushvalue(L, -2);
        take_callbacks(L, options);
        lua_pop(L, 1);
        bufferevent_enable(connection->socket, EV_READ | EV_WRITE);
    } else if (connection->socket) {
        connection_close(connection);
    }
    lua_pop(L, 2);
}

static void on_tcp_accepted(struct evconnlistener *socket, evutil_socket_t fd,
                            struct sockaddr *address, int len, void *context)
{
    struct listener *listener = context; /* Lua may close and drop it */
    struct ml_server_lua *lua = listener->lua;
    lua_State *L = lua->running;
    (void)socket, (void)address, (void)len;
    struct connection *connection = push_new_connection(L, lua);
    connection_take_socket(connection, (int)fd);
    lua_pushvalue(L, -1);
    binding_hold(L, connection);
    binding_push_callback(L, listener, ON_ACCEPTED);
    lua_pushvalue(L, -2);
    if (binding_call(lua, 1, 1) < 0) {
        binding_report_failure(lua);
        lua_pushnil(L);
    }
    connection_begin(L, connection);
}

static void accept_again(void *context)
{
    struct listener *listener = context;
    evconnlistener_enable(listener->socket);
}

static void on_accept_failed(struct evconnlistener *socket, void *context)
{
    struct listener *listener = context;
    evconnlistener_disable(socket);
    ml_timer_start(&listener->again, ACCEPT_AGAIN_NS);
}

/* In the pods' network, or where there is none on the machine. -1 and a reason. */
static int open_listening_socket(struct ml_pod_network *network, const struct sockaddr_in *at,
                                 struct ml_err *err)
{
    const struct ml_pod_socket spec = {
        .type = SOCK_STREAM, .address = at->sin_addr, .port = ntohs(at->sin_port)};
    char address[INET_ADDRSTRLEN], where[INET_ADDRSTRLEN + 8];
    int fd = -1;
    if (network)
        return ml_pod_network_socket(network, &spec, &fd, err) < 0 ? -1 : fd;
    inet_ntop(AF_INET, &at->sin_addr, address, sizeof address);
    snprintf(where, sizeof where, "%s:%u", address, spec.port);
    return ml_tcp_listen(where, &fd, err) < 0 ? -1 : fd;
}

static void listener_open(struct listener *listener, int fd)
{
    struct ml_loop *loop = listener->lua->options.loop;
    listener->socket = evconnlistener_new(ml_loop_base(loop), on_tcp_accepted, listener,
                                          LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    ml_assert(listener->socket != NULL);
    evconnlistener_set_error_cb(listener->socket, on_accept_failed);
    ml_timer_init(&listener->again, loop, accept_again, listener);
}

/* listen(options) -> listener, or nil and why not. options = { address =, port =, accepted =
 * function(connection) -> the functions of connect's options, or nil: it is closed } */
ML_RAISES static int tcp_listen(lua_State *L)
{
    const struct ml_tcp_library *library = lua_touserdata(L, lua_upvalueindex(1));
    struct ml_err err = ML_ERR_INIT;
    luaL_checktype(L, 1, LUA_TTABLE);
    const struct sockaddr_in at = check_place(L);
    struct listener *listener = lua_newuserdatauv(L, sizeof *listener, 1);
    *listener = (struct listener){.lua = server_lua_of(L)};
    luaL_setmetatable(L, LISTENER);
    if (lua_getfield(L, 1, "accepted") != LUA_TFUNCTION)
        return luaL_error(L, "tcp.listen: options.accepted: a function");
    lua_setiuservalue(L, -2, ON_ACCEPTED);
    int fd = open_listening_socket(library->network, &at, &err);
    if (fd < 0)
        return binding_push_error(L, err.message);
    listener_open(listener, fd);
    binding_hold(L, listener);
    return 1;
}

static void listener_free(struct listener *listener)
{
    if (!listener->socket)
        return;
    ml_timer_stop(&listener->again);
    evconnlistener_free(ml_take(&listener->socket));
}

/* listener:close(); what is connected stays so */
ML_RAISES static int tcp_listener_close(lua_State *L)
{
    struct listener *listener = luaL_checkudata(L, 1, LISTENER);
    if (listener->socket)
        binding_release(L, listener);
    listener_free(listener);
    return 0;
}

/* Called for an open one only when the state is closed. */
static int tcp_listener_gc(lua_State *L)
{
    listener_free(lua_touserdata(L, 1));
    return 0;
}

void ml_server_lua_add_tcp(struct ml_server_lua *lua, const struct ml_tcp_library *library)
{
    static const luaL_Reg methods[] = {{"write", connection_write},
                                       {"end_output", connection_end_output},
                                       {"pause", connection_pause},
                                       {"close", connection_close_at_once},
                                       {NULL, NULL}};
    static const luaL_Reg listener_methods[] = {{"close", tcp_listener_close}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"connect", tcp_connect}, {"listen", tcp_listen}, {NULL, NULL}};
    lua_State *L = lua->running;
    binding_new_type(L, CONNECTION, methods, connection_gc);
    binding_new_type(L, LISTENER, listener_methods, tcp_listener_gc);
    binding_add_module(lua, "cluster.tcp", functions, library, sizeof *library);
}
