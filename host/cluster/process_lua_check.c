/* cluster.process: does a process answer? */
#include <stdio.h>

#include "cluster/process_lua_internal.h"
#include "net/tcp.h"

#define CHECK       "cluster.process.check"
#define HEADERS_MAX 64

/* A full userdata, held by the registry under its own address until it has an answer; its user
 * value is the function that is told. */
struct check {
    struct ml_trusted *trusted;
    struct ml_tcp_check *tcp;
    struct ml_http_call *http;
    int status;
};

/* Calls fn(value), or fn(nil, message) when there is an error. The check may be collected then. */
static void tell(struct check *check, lua_Integer value, const struct ml_err *err)
{
    struct ml_trusted *trusted = check->trusted;
    lua_State *L = trusted->running;
    lua_rawgetp(L, LUA_REGISTRYINDEX, check);
    lua_getiuservalue(L, -1, 1);
    lua_remove(L, -2);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, check);
    if (err)
        lua_pushnil(L);
    else
        lua_pushinteger(L, value);
    lua_pushstring(L, err ? err->message : NULL);
    host_call_back(trusted, 2);
}

static void on_connected(void *context, const struct ml_err *err)
{
    struct check *check = context;
    check->tcp = NULL;
    tell(check, 0, err);
}

static void on_head(void *context, const struct ml_http_head *head)
{
    struct check *check = context;
    check->status = head->status;
}

static int on_data(void *context, struct ml_str piece, struct ml_err *err)
{
    (void)context, (void)piece, (void)err; /* only the status counts */
    return 0;
}

static void on_done(void *context, const struct ml_err *err)
{
    struct check *check = context;
    check->http = NULL;
    tell(check, check->status, err);
}

/* [+1] */
ML_RAISES
static struct check *push_check(lua_State *L, int function)
{
    luaL_checktype(L, function, LUA_TFUNCTION);
    struct check *check = lua_newuserdatauv(L, sizeof *check, 1);
    *check = (struct check){.trusted = host_of(L)};
    luaL_setmetatable(L, CHECK);
    lua_pushvalue(L, function);
    lua_setiuservalue(L, -2, 1);
    return check;
}

/* [-1] Keeps the check on top until it has an answer. */
static void hold(lua_State *L, struct check *check)
{
    lua_rawsetp(L, LUA_REGISTRYINDEX, check);
}

ML_RAISES
static double check_seconds(lua_State *L, int index)
{
    double seconds = luaL_checknumber(L, index);
    luaL_argcheck(L, seconds > 0 && seconds < 1e6, index, "seconds, above 0");
    return seconds;
}

/* connect(address, port, seconds, fn): fn(0), or fn(nil, message), from the loop */
ML_RAISES
static int process_connect(lua_State *L)
{
    struct ml_err err = ML_ERR_INIT;
    const char *address = luaL_checkstring(L, 1);
    lua_Integer port = luaL_checkinteger(L, 2);
    luaL_argcheck(L, port > 0 && port < 65536, 2, "a port");
    int64_t timeout_ns = (int64_t)(check_seconds(L, 3) * (double)ML_NS_PER_S);
    struct check *check = push_check(L, 4);
    if (ml_tcp_check_start(check->trusted->options.loop, address, (uint16_t)port, timeout_ns,
                           on_connected, check, &check->tcp, &err) < 0)
        return luaL_error(L, "process.connect: %s", err.message);
    hold(L, check);
    return 0;
}

/* The list at `index` of { name, value } pairs; their texts belong to the tables there. */
ML_RAISES
static size_t check_headers(lua_State *L, int index, struct ml_http_header *headers)
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
ML_RAISES
static int process_get(lua_State *L)
{
    static const struct ml_http_tls anybody = {.insecure = true};
    static const struct ml_http_handler handler = {on_head, on_data, on_done};
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_http_request request = {
        .method = "GET", .url = luaL_checkstring(L, 1), .headers = headers, .tls = &anybody};
    request.header_count = check_headers(L, 2, headers);
    request.deadlines.total_ms = (int64_t)(check_seconds(L, 3) * 1000) + 1;
    struct check *check = push_check(L, 4);
    check->http = ml_http_send(process_library(L)->http, &request, &handler, check);
    hold(L, check);
    return 0;
}

/* Of one without an answer only as the state is closed. */
static int check_gc(lua_State *L)
{
    struct check *check = lua_touserdata(L, 1);
    ml_tcp_check_free(ml_take(&check->tcp));
    if (check->http)
        ml_http_cancel(ml_take(&check->http));
    return 0;
}

const luaL_Reg process_checks[] = {
    {"connect", process_connect}, {"get", process_get}, {NULL, NULL}};

void process_open_checks(lua_State *L)
{
    luaL_newmetatable(L, CHECK);
    lua_pushcfunction(L, check_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
