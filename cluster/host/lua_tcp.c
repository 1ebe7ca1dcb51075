/* cluster.tcp for the server's Lua: TCP connections to pods, as `kubectl port-forward` needs them,
 * with bytes in both directions; each direction ends by itself. */
#include "cluster/host/lua_modules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/host/server_lua_internal.h"

#define CONNECTION  "cluster.tcp.connection"
#define WAITING_LOW ((size_t)64 * 1024) /* bytes left to send when drained() is called */

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

ML_RAISES static struct sockaddr_in check_target(lua_State *L)
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

/* connect(options) -> connection, or nil and why not. options = { address =, port =, pod =,
 * connected =, data =, ended =, drained =, closed = } */
ML_RAISES static int tcp_connect(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    const int on = 1;
    luaL_checktype(L, 1, LUA_TTABLE);
    const struct sockaddr_in target = check_target(L);
    struct connection *connection = lua_newuserdatauv(L, sizeof *connection, ML_COUNT(callbacks));
    *connection = (struct connection){.lua = server_lua_of(L)};
    luaL_setmetatable(L, CONNECTION);
    for (size_t i = 0; i < ML_COUNT(callbacks); i++) {
        lua_getfield(L, 1, callbacks[i]);
        lua_setiuservalue(L, -2, (int)i + 1);
    }
    int fd = open_tcp_socket(L, lua_touserdata(L, lua_upvalueindex(1)), target.sin_addr, &err);
    if (fd < 0)
        return binding_push_error(L, err.message);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->socket = bufferevent_socket_new(ml_loop_base(connection->lua->options.loop), fd,
                                                BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    ml_assert(connection->socket != NULL);
    bufferevent_setcb(connection->socket, on_tcp_readable, on_tcp_written, on_tcp_event,
                      connection);
    bufferevent_setwatermark(connection->socket, EV_WRITE, WAITING_LOW, 0);
    if (bufferevent_socket_connect(connection->socket, (const struct sockaddr *)&target,
                                   sizeof target) < 0) {
        const char *why = strerror(errno);
        bufferevent_free(ml_take(&connection->socket));
        return binding_push_error(L, why);
    }
    binding_hold(L, connection);
    return 1;
}

void ml_server_lua_add_tcp(struct ml_server_lua *lua, const struct ml_tcp_library *library)
{
    static const luaL_Reg methods[] = {{"write", connection_write},
                                       {"end_output", connection_end_output},
                                       {"pause", connection_pause},
                                       {"close", connection_close_at_once},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {{"connect", tcp_connect}, {NULL, NULL}};
    lua_State *L = lua->running;
    binding_new_type(L, CONNECTION, methods, connection_gc);
    binding_add_module(lua, "cluster.tcp", functions, library, sizeof *library);
}
