/* cluster.process for the host's own Lua, which the kubelet of `moonloop dev` uses: starts local
 * processes, asks whether they answer, and says what machine this is. */
#include "cluster/process_lua.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cluster/network_lua.h"
#include "cluster/process_lua_internal.h"
#include "cluster/tcp_check.h"
#include "cluster/trusted_internal.h"

#define CHECK       "cluster.process.check"
#define HEADERS_MAX 64

/* ---- processes ---- */

/* try_container(folder) -> true, or nil and why this machine has none */
ML_RAISES static int process_try_container(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    if (ml_processes_try_container(luaL_checkstring(L, 1), &err) < 0)
        return host_push_error(L, err.message);
    lua_pushboolean(L, true);
    return 1;
}

/* ---- checks of processes (probes) ---- */

/* A full userdata with the callback as its user value; the registry holds it, under its own
 * address, until there is an answer. */
struct check {
    struct ml_trusted *trusted;
    struct ml_pod_network *network;
    struct ml_tcp_check *tcp;
    struct ml_http_call *http;
    int status;
};

/* Calls fn(value), or fn(nil, message) for an error, and releases the check. */
static void call_check_function(struct check *check, lua_Integer value, const struct ml_err *err)
{
    struct ml_trusted *trusted = check->trusted;
    lua_State *L = trusted->running;
    host_push_callback(L, check, 1);
    host_release(L, check);
    if (err)
        lua_pushnil(L);
    else
        lua_pushinteger(L, value);
    lua_pushstring(L, err ? err->message : NULL);
    host_call_back(trusted, 2);
}

static void on_check_connected(void *context, const struct ml_err *err)
{
    struct check *check = context;
    check->tcp = NULL;
    call_check_function(check, 0, err);
}

static void on_check_head(void *context, const struct ml_http_head *head)
{
    struct check *check = context;
    check->status = head->status;
}

static int on_check_data(void *context, struct ml_str piece, struct ml_err *err)
{
    (void)context, (void)piece, (void)err; /* only the status counts */
    return 0;
}

static void on_check_done(void *context, const struct ml_err *err)
{
    struct check *check = context;
    check->http = NULL;
    call_check_function(check, check->status, err);
}

/* A socket that can connect to an address, or -1. */
static int open_check_socket(void *context, const struct sockaddr *address)
{
    const struct check *check = context;
    struct ml_err err = ML_ERR_INIT;
    if (address->sa_family == AF_INET)
        return network_lua_socket(check->network, SOCK_STREAM,
                                  ((const struct sockaddr_in *)address)->sin_addr, &err);
    return socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* [+1] */
ML_RAISES static struct check *push_new_check(lua_State *L, int function)
{
    luaL_checktype(L, function, LUA_TFUNCTION);
    struct check *check = lua_newuserdatauv(L, sizeof *check, 1);
    *check = (struct check){.trusted = host_of(L), .network = process_library_of(L)->network};
    luaL_setmetatable(L, CHECK);
    lua_pushvalue(L, function);
    lua_setiuservalue(L, -2, 1);
    return check;
}

/* connect(address, port, seconds, fn) -> true; then fn(0), or fn(nil, message), from the loop. Or
 * nil and why nothing was started */
ML_RAISES static int process_connect(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    const char *address = luaL_checkstring(L, 1);
    lua_Integer port = luaL_checkinteger(L, 2);
    luaL_argcheck(L, port > 0 && port < 65536, 2, "a port");
    int64_t timeout_ns = host_check_seconds(L, 3);
    struct check *check = push_new_check(L, 4);
    struct in_addr to;
    int fd = -1;
    if (inet_pton(AF_INET, address, &to) == 1) {
        fd = network_lua_socket(check->network, SOCK_STREAM, to, &err);
        if (fd < 0)
            return host_push_error(L, err.message);
    }
    if (ml_tcp_check_start(check->trusted->options.loop, fd, address, (uint16_t)port, timeout_ns,
                           on_check_connected, check, &check->tcp, &err) < 0)
        return luaL_error(L, "process.connect: %s", err.message);
    host_hold(L, check);
    lua_pushboolean(L, true);
    return 1;
}

/* The list at `index` of { name, value } pairs; their texts belong to the tables there. */
ML_RAISES static size_t check_header_pairs(lua_State *L, int index, struct ml_http_header *headers)
{
    luaL_checktype(L, index, LUA_TTABLE);
    size_t count = (size_t)lua_rawlen(L, index);
    luaL_argcheck(L, count <= HEADERS_MAX, index, "too many headers");
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        luaL_argcheck(L, lua_istable(L, -1), index, "pairs of name and value");
        bool texts = lua_rawgeti(L, -1, 1) == LUA_TSTRING && lua_rawgeti(L, -2, 2) == LUA_TSTRING;
        luaL_argcheck(L, texts, index, "pairs of name and value");
        headers[i] = (struct ml_http_header){lua_tostring(L, -2), lua_tostring(L, -1)};
        lua_pop(L, 3);
    }
    return count;
}

/* get(url, headers, seconds, fn): fn(status), or fn(nil, message), from the loop. Certificates
 * are not verified, redirects not followed, as with probes of the kubelet. */
ML_RAISES static int process_get(lua_State *L)
{
    static const struct ml_http_tls anybody = {.insecure = true, .proxy_url = ""};
    static const struct ml_http_handler handler = {on_check_head, on_check_data, on_check_done};
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_http_request request = {
        .method = "GET",
        .url = luaL_checkstring(L, 1),
        .headers = headers,
        .tls = &anybody,
        .open_socket = open_check_socket,
    };
    request.header_count = check_header_pairs(L, 2, headers);
    request.deadlines.total_ms = host_check_seconds(L, 3) / ML_NS_PER_MS + 1;
    struct check *check = push_new_check(L, 4);
    check->http = ml_http_send(process_library_of(L)->http, &request, &handler, check);
    host_hold(L, check);
    return 0;
}

/* Called for an unanswered check only when the state is closed. */
static int check_gc(lua_State *L)
{
    struct check *check = lua_touserdata(L, 1);
    ml_tcp_check_free(ml_take(&check->tcp));
    if (check->http)
        ml_http_cancel(ml_take(&check->http));
    return 0;
}

/* ---- the machine ---- */

static bool is_reachable_address(const struct ifaddrs *entry)
{
    return entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET &&
           (entry->ifa_flags & IFF_UP) && !(entry->ifa_flags & IFF_LOOPBACK);
}

/* The first address that others could reach; false when there is none. */
static bool find_machine_address(char out[NI_MAXHOST])
{
    struct ifaddrs *list;
    bool found = false;
    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *entry = list; entry && !found; entry = entry->ifa_next)
        found = is_reachable_address(entry) &&
                getnameinfo(entry->ifa_addr, sizeof(struct sockaddr_in), out, NI_MAXHOST, NULL, 0,
                            NI_NUMERICHOST) == 0;
    freeifaddrs(list);
    return found;
}

/* The name that Go, and so Kubernetes, has for it. */
static const char *go_architecture(const char *machine)
{
    static const char *const names[][2] = {
        {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"i686", "386"}};
    for (size_t i = 0; i < ML_COUNT(names); i++)
        if (strcmp(machine, names[i][0]) == 0)
            return names[i][1];
    return machine;
}

/* machine() -> { address = nil or text, architecture =, kernel = } */
ML_RAISES static int process_machine(lua_State *L)
{
    char address[NI_MAXHOST];
    struct utsname name = {0};
    bool found = find_machine_address(address);
    uname(&name);
    lua_createtable(L, 0, 3);
    if (found)
        lua_pushstring(L, address);
    else
        lua_pushnil(L);
    lua_setfield(L, -2, "address");
    lua_pushstring(L, go_architecture(name.machine));
    lua_setfield(L, -2, "architecture");
    lua_pushstring(L, name.release);
    lua_setfield(L, -2, "kernel");
    return 1;
}

/* user() -> the numbers of the user and of the group that everything runs as */
static int process_user(lua_State *L)
{
    lua_pushinteger(L, geteuid());
    lua_pushinteger(L, getegid());
    return 2;
}

/* executable() -> the path of the program that runs, or nil and why it has none */
ML_RAISES static int process_executable(lua_State *L)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    path[ML_MAX(len, 0)] = '\0';
    if (access(path, X_OK) != 0)
        return host_push_error(L, "the file of the running moonloop was replaced or removed: start "
                                  "moonloop again");
    lua_pushstring(L, path);
    return 1;
}

/* ---- the module ---- */

void ml_trusted_add_processes(struct ml_trusted *trusted, const struct ml_process_library *library)
{
    static const luaL_Reg functions[] = {{"start", process_handle_start},
                                         {"try_container", process_try_container},
                                         {"connect", process_connect},
                                         {"get", process_get},
                                         {"open_folder", process_folder_open},
                                         {"machine", process_machine},
                                         {"user", process_user},
                                         {"executable", process_executable},
                                         {NULL, NULL}};
    lua_State *L = trusted->running;
    ml_assert(trusted->options.loop != NULL);
    process_handle_open(L);
    process_folder_register(L);
    host_new_type(L, CHECK, NULL, check_gc);
    lua_newtable(L);
    struct ml_process_library *own = lua_newuserdatauv(L, sizeof *own, 0);
    *own = *library;
    luaL_setfuncs(L, functions, 1); /* each has the library as its upvalue */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "cluster.process");
    lua_pop(L, 2);
}
