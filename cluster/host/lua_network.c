/* cluster.network for the server's Lua: the network namespaces of pods, TCP listeners whose
 * connections the relay passes on, and sockets for datagrams in the pods' network. */
#include "cluster/host/lua_modules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/ip.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/host/server_lua_internal.h"
#include "net/tcp.h"

#define POD               "cluster.network.pod"
#define LISTENER          "cluster.network.listener"
#define BACKLOG           512
#define DATAGRAM_MAX      65536
#define DATAGRAMS_AT_ONCE 64 /* before others have their turn */

/* The library that the module was opened with; each function has it as its upvalue. */
static inline const struct ml_network_library *network_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

ML_RAISES static struct in_addr check_address(lua_State *L, const char *text)
{
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1)
        luaL_error(L, "\"%s\": no IPv4 address", text);
    return address;
}

/* ---- pods ---- */

struct pod {
    int fd; /* of its network namespace; -1: closed */
};

int lua_network_pod(lua_State *L, int index)
{
    const struct pod *pod = luaL_testudata(L, index, POD);
    return pod ? pod->fd : -1;
}

/* pod(address, sysctls?) -> pod, or nil and why not */
ML_RAISES static int network_pod(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    struct in_addr address = check_address(L, luaL_checkstring(L, 1));
    const char *sysctls = luaL_optstring(L, 2, "");
    struct pod *pod = lua_newuserdatauv(L, sizeof *pod, 0);
    pod->fd = -1;
    luaL_setmetatable(L, POD);
    if (ml_pod_network_add(network_of(L)->network, address, sysctls, &pod->fd, &err) < 0)
        return binding_push_error(L, err.message);
    return 1;
}

/* pod:close(); its network goes with the last process in it */
ML_RAISES static int pod_close(lua_State *L)
{
    struct pod *pod = luaL_checkudata(L, 1, POD);
    ml_close_fd(&pod->fd);
    return 0;
}

/* ---- sockets ---- */

int lua_network_socket(struct ml_pod_network *network, int type, struct in_addr address,
                       struct ml_err *err)
{
    int fd = -1;
    if (network && ml_pod_network_has(address)) {
        const struct ml_pod_socket spec = {.type = type};
        return ml_pod_network_socket(network, &spec, &fd, err) < 0 ? -1 : fd;
    }
    fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        ml_err_set(err, ML_EIO, "socket: %s", strerror(errno));
    return fd;
}

int lua_network_socket_to(struct ml_pod_network *network, const struct sockaddr *address)
{
    struct ml_err err = ML_ERR_INIT;
    if (address->sa_family == AF_INET)
        return lua_network_socket(network, SOCK_STREAM,
                                  ((const struct sockaddr_in *)address)->sin_addr, &err);
    return socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* ---- who listens ---- */

enum { ON_CONNECTION = 1, ON_DATAGRAM = 1 }; /* user values */

/* A full userdata. The registry holds it, under its own address, while it is open. */
struct listener {
    struct ml_server_lua *lua;
    struct ml_pod_network *network;
    struct ml_relay_listener *connections; /* either of these, or neither: closed */
    struct ml_loop_watch *datagrams;
    int fd; /* of datagrams */
};

/* [-2] What Lua said of a new connection: address and port, or nil. */
static bool take_target(lua_State *L, struct sockaddr_in *out)
{
    const char *address = lua_tostring(L, -2);
    lua_Integer port = lua_tointeger(L, -1);
    *out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool is_target = address && port > 0 && port < 65536 &&
                     inet_pton(AF_INET, address, &out->sin_addr) == 1;
    lua_pop(L, 2);
    return is_target;
}

static bool find_target(void *context, struct in_addr client, struct ml_relay_target *out)
{
    const struct listener *listener = context;
    struct ml_server_lua *lua = listener->lua;
    struct ml_pod_network *network = listener->network; /* Lua may close and drop the listener */
    struct ml_err err = ML_ERR_INIT;
    lua_State *L = lua->running;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &client, text, sizeof text);
    binding_push_callback(L, listener, ON_CONNECTION);
    lua_pushstring(L, text);
    if (binding_call(lua, 1, 2) < 0) {
        binding_report_failure(lua);
        return false;
    }
    if (!take_target(L, &out->address))
        return false;
    out->socket = lua_network_socket(network, SOCK_STREAM, out->address.sin_addr, &err);
    return out->socket >= 0;
}

/* Passes one datagram to Lua, and sends what it answers at once; false when there is none. */
static bool answer_datagram(struct ml_server_lua *lua, const struct listener *listener)
{
    static char bytes[DATAGRAM_MAX];
    struct sockaddr_storage from;
    socklen_t from_len = sizeof from;
    int fd = listener->fd;
    lua_State *L = lua->running;
    ssize_t len = recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &from_len);
    if (len < 0)
        return false;
    binding_push_callback(L, listener, ON_DATAGRAM);
    lua_pushlstring(L, bytes, (size_t)len);
    lua_pushlstring(L, (const char *)&from, from_len);
    if (binding_call(lua, 2, 1) < 0) {
        binding_report_failure(lua);
        return true;
    }
    size_t answer_len = 0;
    const char *answer = lua_tolstring(L, -1, &answer_len);
    if (answer && listener->datagrams)
        sendto(fd, answer, answer_len, MSG_NOSIGNAL, (struct sockaddr *)&from, from_len);
    lua_pop(L, 1);
    return true;
}

static void on_datagrams(void *context)
{
    struct listener *listener = context;
    struct ml_server_lua *lua = listener->lua;
    lua_State *L = lua->running;
    lua_rawgetp(L, LUA_REGISTRYINDEX, listener); /* Lua may close it: it stays until we are done */
    for (int i = 0; i < DATAGRAMS_AT_ONCE && listener->datagrams; i++)
        if (!answer_datagram(lua, listener))
            break;
    lua_pop(L, 1);
}

/* Text field of the options at 1; NULL when it is missing. */
ML_RAISES static const char *address_field(lua_State *L)
{
    lua_getfield(L, 1, "address");
    const char *text = luaL_checkstring(L, -1); /* the table keeps it */
    lua_pop(L, 1);
    return text;
}

ML_RAISES static uint16_t port_field(lua_State *L, lua_Integer least)
{
    lua_getfield(L, 1, "port");
    lua_Integer port = luaL_checkinteger(L, -1);
    luaL_argcheck(L, port >= least && port < 65536, 1, "port");
    lua_pop(L, 1);
    return (uint16_t)port;
}

/* [+1] A listener with options[name] as its function. */
ML_RAISES static struct listener *push_new_listener(lua_State *L, const char *name)
{
    struct listener *listener = lua_newuserdatauv(L, sizeof *listener, 1);
    *listener = (struct listener){
        .lua = server_lua_of(L), .network = network_of(L)->network, .fd = -1};
    luaL_setmetatable(L, LISTENER);
    luaL_argcheck(L, lua_getfield(L, 1, name) == LUA_TFUNCTION, 1, name);
    lua_setiuservalue(L, -2, 1);
    return listener;
}

/* Drops all packets that do not come from that address, before there is a connection: only
 * processes of this machine are at an address of its own. */
static bool filter_by_source(int fd, struct in_addr address)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + offsetof(struct iphdr, saddr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(address.s_addr), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog program = {.len = ML_COUNT(code), .filter = code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

/* A port at an address of the machine's that others reach, too, for clients on the machine alone.
 * -1: errno says why. */
static int listen_for_machine(struct in_addr address, uint16_t port)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        (!filter_by_source(fd, address) ||
         setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
         bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 || listen(fd, BACKLOG) < 0))
        ml_close_fd(&fd);
    return fd;
}

/* A listening socket, in the machine's network or in that of pods; -1 with an error. */
static int open_listener(struct ml_pod_network *network, bool is_machine, struct in_addr address,
                         uint16_t port, struct ml_err *err)
{
    const struct ml_pod_socket spec = {.type = SOCK_STREAM, .address = address, .port = port};
    char text[INET_ADDRSTRLEN], where[INET_ADDRSTRLEN + 8];
    int fd = -1;
    inet_ntop(AF_INET, &address, text, sizeof text);
    snprintf(where, sizeof where, "%s:%u", text, port);
    if (!is_machine)
        return ml_pod_network_socket(network, &spec, &fd, err) < 0 ? -1 : fd;
    if (ntohl(address.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET)
        return ml_tcp_listen(where, &fd, err) < 0 ? -1 : fd;
    fd = listen_for_machine(address, port);
    if (fd < 0)
        ml_err_set(err, ML_EIO, "listen on %s: %s", where, strerror(errno));
    return fd;
}

/* listen(options) -> listener, or nil and why not. options = { address =, port =, target =
 * function(client) -> address, port | nil, machine = bool } */
ML_RAISES static int network_listen(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    luaL_checktype(L, 1, LUA_TTABLE);
    struct in_addr address = check_address(L, address_field(L));
    uint16_t port = port_field(L, 1);
    struct listener *listener = push_new_listener(L, "target");
    lua_getfield(L, 1, "machine");
    bool is_machine = lua_toboolean(L, -1);
    lua_pop(L, 1);
    int fd = open_listener(listener->network, is_machine, address, port, &err);
    if (fd < 0)
        return binding_push_error(L, err.message);
    listener->connections = ml_relay_listen(network_of(L)->relay, fd, find_target, listener);
    binding_hold(L, listener);
    return 1;
}

/* [+0] Serves the socket of the listener on top, which stays there. */
static void serve_datagrams(lua_State *L, struct listener *listener)
{
    listener->datagrams = ml_loop_watch_fd(listener->lua->options.loop, listener->fd, on_datagrams,
                                           listener);
    binding_hold(L, listener);
}

/* datagrams(options) -> listener, or nil and why not. options = { address =, port =, answer =
 * function(bytes, from) -> bytes | nil } */
ML_RAISES static int network_datagrams(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    luaL_checktype(L, 1, LUA_TTABLE);
    const struct ml_pod_socket spec = {.type = SOCK_DGRAM,
                                       .address = check_address(L, address_field(L)),
                                       .port = port_field(L, 1)};
    struct listener *listener = push_new_listener(L, "answer");
    if (ml_pod_network_socket(listener->network, &spec, &listener->fd, &err) < 0)
        return binding_push_error(L, err.message);
    serve_datagrams(L, listener);
    return 1;
}

/* A socket of the machine's that only exchanges datagrams with this place. -1: errno says why. */
static int connect_to(const char *address, uint16_t port)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(address, service, &hints, &found) != 0) {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0)
        ml_close_fd(&fd);
    freeaddrinfo(found);
    return fd;
}

/* outside(options) -> listener, or nil and why not. options = { address =, port =, answer =
 * function(bytes) -> bytes | nil } */
ML_RAISES static int network_outside(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *address = address_field(L);
    uint16_t port = port_field(L, 1);
    struct listener *listener = push_new_listener(L, "answer");
    listener->fd = connect_to(address, port);
    if (listener->fd < 0)
        return binding_push_error(L, strerror(errno));
    serve_datagrams(L, listener);
    return 1;
}

/* listener:send(bytes, from); what cannot be sent is lost, as datagrams may be */
ML_RAISES static int listener_send(lua_State *L)
{
    struct listener *listener = luaL_checkudata(L, 1, LISTENER);
    struct ml_str bytes = binding_check_str(L, 2);
    struct sockaddr_storage to;
    size_t len = 0;
    const char *from = luaL_optlstring(L, 3, NULL, &len);
    luaL_argcheck(L, len <= sizeof to, 3, "from");
    if (from)
        memcpy(&to, from, len);
    if (listener->datagrams)
        (void)sendto(listener->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL,
                     from ? (struct sockaddr *)&to : NULL, (socklen_t)len);
    return 0;
}

static void close_listener(struct listener *listener)
{
    ml_relay_listener_free(ml_take(&listener->connections));
    ml_loop_watch_free(ml_take(&listener->datagrams));
    ml_close_fd(&listener->fd);
}

/* listener:close(); what is connected stays so */
ML_RAISES static int listener_close(lua_State *L)
{
    struct listener *listener = luaL_checkudata(L, 1, LISTENER);
    close_listener(listener);
    binding_release(L, listener);
    return 0;
}

/* Called for an open listener only when the state is closed. */
static int listener_gc(lua_State *L)
{
    close_listener(lua_touserdata(L, 1));
    return 0;
}

/* ---- the module ---- */

void ml_server_lua_add_network(struct ml_server_lua *lua, const struct ml_network_library *library)
{
    static const luaL_Reg pod_methods[] = {{"close", pod_close}, {NULL, NULL}};
    static const luaL_Reg listener_methods[] = {
        {"close", listener_close}, {"send", listener_send}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"pod", network_pod},
                                         {"listen", network_listen},
                                         {"datagrams", network_datagrams},
                                         {"outside", network_outside},
                                         {NULL, NULL}};
    lua_State *L = lua->running;
    binding_new_type(L, POD, pod_methods, pod_close);
    binding_new_type(L, LISTENER, listener_methods, listener_gc);
    binding_add_module(lua, "cluster.network", functions, library, sizeof *library);
}
