/* Requests that are passed on to a pod, for the API server in Lua: any method and headers, and an
 * answer that comes piece by piece, as fast as Lua takes it. Called by
 * lua/cluster/apiserver/proxy/. */
#include <sys/socket.h>

#include "cluster/http_lua_internal.h"

#define CALL       "cluster.http.call"
#define CALLS_MAX  512
#define FIELDS_MAX 128 /* of a head, in either direction */

enum { ON_HEAD = 1, ON_DATA, ON_DONE, CALL_FIELDS, CALL_CLIENT, CALL_VALUES = CALL_CLIENT };
static const char *const callbacks[] = {"head", "data", "done"}; /* user values in this order */

/* A full userdata. The registry holds it, under its own address, until it is done. */
struct call {
    struct ml_trusted *trusted;
    struct http_library *library;
    struct ml_http_call *http; /* NULL: it is over */
    int field_count;
};

/* Nothing comes any more. */
static void call_end(struct call *call)
{
    call->http = NULL;
    call->library->calls--;
    host_release(call->trusted->running, call);
}

/* ---- the answer ---- */

/* Adds { name, value } to the list of fields. */
static void on_call_field(void *context, struct ml_str name, struct ml_str value)
{
    struct call *call = context;
    lua_State *L = call->trusted->running;
    if (++call->field_count > FIELDS_MAX)
        return;
    host_push_callback(L, call, CALL_FIELDS);
    lua_createtable(L, 2, 0);
    lua_pushlstring(L, name.ptr, name.len);
    lua_rawseti(L, -2, 1);
    lua_pushlstring(L, value.ptr ? value.ptr : "", value.len);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, call->field_count);
    lua_pop(L, 1);
}

static void call_fail(struct call *call, const char *why, const char *kind)
{
    struct ml_trusted *trusted = call->trusted;
    lua_State *L = trusted->running;
    host_push_callback(L, call, ON_DONE);
    call_end(call);
    lua_pushstring(L, why);
    lua_pushstring(L, kind);
    host_call_back(trusted, 2);
}

static void on_call_head(void *context, const struct ml_http_head *head)
{
    struct call *call = context;
    lua_State *L = call->trusted->running;
    if (call->field_count > FIELDS_MAX) {
        ml_http_cancel(call->http);
        call_fail(call, "the answer has more than 128 header fields", "limit");
        return;
    }
    host_push_callback(L, call, ON_HEAD);
    lua_pushinteger(L, head->status);
    host_push_callback(L, call, CALL_FIELDS);
    host_call_back(call->trusted, 2);
}

static int on_call_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct call *call = context;
    lua_State *L = call->trusted->running;
    (void)err;
    host_push_callback(L, call, ON_DATA);
    lua_pushlstring(L, piece.ptr, piece.len);
    host_call_back(call->trusted, 1);
    return 0;
}

static const char *kind_of(const struct ml_err *err)
{
    if (err->kind == ML_ETIMEOUT)
        return "timeout";
    return err->kind == ML_ETLS ? "tls" : "network";
}

static void on_call_done(void *context, const struct ml_err *err)
{
    struct call *call = context;
    call_fail(call, err ? err->message : NULL, err ? kind_of(err) : NULL);
}

static int open_call_socket(void *context, const struct sockaddr *address)
{
    const struct call *call = context;
    return http_lua_socket(call->library, address);
}

/* ---- for Lua ---- */

/* The headers at the top, name → value; their texts belong to the table. */
ML_RAISES static size_t check_headers(lua_State *L, struct ml_http_header *headers)
{
    size_t count = 0;
    luaL_checktype(L, -1, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "names and values of headers are strings");
        if (count == FIELDS_MAX)
            luaL_error(L, "up to 128 headers");
        headers[count++] = (struct ml_http_header){lua_tostring(L, -2), lua_tostring(L, -1)};
    }
    return count;
}

/* Field of the options at 2, which keep it. */
ML_RAISES static struct ml_str check_text_field(lua_State *L, const char *name)
{
    lua_getfield(L, 2, name);
    struct ml_str text = host_check_str(L, -1);
    lua_pop(L, 1);
    return text;
}

/* [+1] */
ML_RAISES static struct call *push_new_call(lua_State *L, struct http_library *library)
{
    struct call *call = lua_newuserdatauv(L, sizeof *call, CALL_VALUES);
    *call = (struct call){.trusted = host_of(L), .library = library};
    luaL_setmetatable(L, CALL);
    for (size_t i = 0; i < ML_COUNT(callbacks); i++) {
        if (lua_getfield(L, 2, callbacks[i]) != LUA_TFUNCTION)
            luaL_error(L, "options.%s: a function", callbacks[i]);
        lua_setiuservalue(L, -2, (int)i + 1);
    }
    lua_newtable(L);
    lua_setiuservalue(L, -2, CALL_FIELDS);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, CALL_CLIENT);
    return call;
}

/* client:request(options) -> call, or nil and why not. options = { method =, url =, headers =,
 * body =, connect_seconds =, head = function(code, fields), data = function(bytes), done =
 * function(why, kind) } */
ML_RAISES int http_client_request(lua_State *L)
{
    static const struct ml_http_handler handler = {on_call_head, on_call_data, on_call_done};
    struct http_client *client = luaL_checkudata(L, 1, HTTP_CLIENT);
    struct ml_http_header headers[FIELDS_MAX];
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    struct ml_http_request request = {
        .method = check_text_field(L, "method").ptr,
        .url = check_text_field(L, "url").ptr,
        .headers = headers,
        .body = check_text_field(L, "body"),
        .tls = &client->tls,
        .streaming = true,
        .passed_on = true,
        .open_socket = open_call_socket,
        .field = on_call_field,
    };
    lua_getfield(L, 2, "connect_seconds");
    request.deadlines.connect_ms = (int64_t)(luaL_checknumber(L, -1) * 1000);
    lua_getfield(L, 2, "headers");
    request.header_count = check_headers(L, headers);
    if (client->library->calls == CALLS_MAX)
        return host_push_error(L, "512 requests are under way already");
    struct call *call = push_new_call(L, client->library);
    host_hold(L, call);
    client->library->calls++;
    call->http = ml_http_send(client->library->parts.http, &request, &handler, call);
    return 1;
}

/* call:pause(paused): no data comes meanwhile, and the server has to wait */
ML_RAISES static int call_pause(lua_State *L)
{
    struct call *call = luaL_checkudata(L, 1, CALL);
    if (call->http)
        ml_http_call_pause(call->http, lua_toboolean(L, 2));
    return 0;
}

/* call:cancel(): at any time; no callback follows */
ML_RAISES static int call_cancel(lua_State *L)
{
    struct call *call = luaL_checkudata(L, 1, CALL);
    if (!call->http)
        return 0;
    ml_http_cancel(call->http);
    call_end(call);
    return 0;
}

/* Called for a request under way only when the state is closed. */
static int call_gc(lua_State *L)
{
    struct call *call = lua_touserdata(L, 1);
    if (call->http)
        ml_http_cancel(ml_take(&call->http));
    return 0;
}

void http_call_open(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"pause", call_pause}, {"cancel", call_cancel}, {NULL, NULL}};
    host_new_type(L, CALL, methods, call_gc);
}
