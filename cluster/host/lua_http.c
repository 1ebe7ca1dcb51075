/* cluster.http for the server's Lua: requests to webhooks, for which the Lua thread that asks waits
 * and goes on when the answer has come (cluster/apiserver/webhook.lua), and requests that are
 * passed on to a pod, of any method and headers, whose answers come piece by piece, as fast as Lua
 * takes them (cluster/apiserver/proxy/). */
#include "cluster/host/lua_modules.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "cluster/host/server_lua_internal.h"

#define HTTP_CLIENT "cluster.http.client"

/* The library, as the upvalue of each function of the module. */
struct http_library {
    struct ml_http_library parts;
    int posts; /* under way */
    int calls;
};

/* A full userdata: whom a server must prove to be. */
struct http_client {
    struct http_library *library;
    char *ca_pem, *server_name; /* NULL: the system's roots; the URL's host */
    struct ml_http_tls tls;
};

/* ---- requests to webhooks ---- */

#define POST        "cluster.http.post"
#define ANSWER_MAX  ((size_t)8 * 1024 * 1024)
#define POSTS_MAX   512
#define SECONDS_MAX 60
#define TYPE_MAX    128

/* A full userdata with the client and the thread that waits as its user values. The registry holds
 * it, under its own address, until the thread goes on. */
struct post {
    struct ml_server_lua *lua;
    struct http_library *library;
    lua_State *thread;
    struct ml_http_call *http;
    int status;
    char content_type[TYPE_MAX];
    struct ml_buf body;
};

enum { POST_CLIENT = 1, POST_THREAD = 2 }; /* user values */

static void on_post_head(void *context, const struct ml_http_head *head)
{
    struct post *post = context;
    post->status = head->status;
    snprintf(post->content_type, sizeof post->content_type, ML_STR_FMT,
             ML_STR_ARG(head->content_type));
}

static int on_post_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct post *post = context;
    ml_buf_append_str(&post->body, piece);
    return post->body.failed ? ml_err_set(err, ML_ELIMIT, "the answer is larger than 8 MiB") : 0;
}

/* [+3] What the binding returns. */
static int push_answer(lua_State *thread, const struct post *post, const struct ml_err *err)
{
    if (err) {
        lua_pushnil(thread);
        lua_pushstring(thread, err->message);
        lua_pushboolean(thread, err->kind == ML_ETIMEOUT);
    } else {
        lua_pushinteger(thread, post->status);
        lua_pushstring(thread, post->content_type);
        lua_pushlstring(thread, post->body.ptr ? post->body.ptr : "", post->body.len);
    }
    return 3;
}

static void on_post_done(void *context, const struct ml_err *err)
{
    struct post *post = context;
    struct ml_server_lua *lua = post->lua;
    lua_State *L = lua->running, *thread = post->thread;
    lua_rawgetp(L, LUA_REGISTRYINDEX, post); /* it and its thread stay until we are done */
    binding_release(L, post);
    post->http = NULL;
    post->library->posts--;
    int count = push_answer(thread, post, err);
    ml_buf_fini(&post->body);
    if (binding_resume(lua, thread, count) < 0)
        binding_report_failure(lua);
    lua_pop(L, 1);
}

static int open_post_socket(void *context, const struct sockaddr *address)
{
    const struct post *post = context;
    return lua_network_socket_to(post->library->parts.network, address);
}

/* Called for a request under way only when the state is closed. */
static int post_gc(lua_State *L)
{
    struct post *post = lua_touserdata(L, 1);
    if (post->http)
        ml_http_cancel(ml_take(&post->http));
    ml_buf_fini(&post->body);
    return 0;
}

/* [+1] A request of the thread L, which is going to wait. */
static struct post *push_new_post(lua_State *L, struct http_library *library)
{
    struct post *post = lua_newuserdatauv(L, sizeof *post, 2);
    *post = (struct post){.lua = server_lua_of(L), .library = library, .thread = L};
    ml_buf_init(&post->body, ANSWER_MAX);
    luaL_setmetatable(L, POST);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, POST_CLIENT);
    lua_pushthread(L);
    lua_setiuservalue(L, -2, POST_THREAD);
    binding_hold(L, post);
    return post;
}

/* client:post(url, body, seconds, host?) -> code, content_type, body; or nil, why, timed_out */
ML_RAISES static int client_post(lua_State *L)
{
    static const struct ml_http_handler handler = {on_post_head, on_post_data, on_post_done};
    struct http_client *client = luaL_checkudata(L, 1, HTTP_CLIENT);
    struct ml_http_header headers[] = {{"Content-Type", "application/json"},
                                       {"Accept", "application/json, */*"},
                                       {"Host", luaL_optstring(L, 5, NULL)}};
    struct ml_http_request request = {
        .method = "POST",
        .url = luaL_checkstring(L, 2),
        .headers = headers,
        .header_count = ML_COUNT(headers) - (headers[2].value ? 0 : 1),
        .body = binding_check_str(L, 3),
        .tls = &client->tls,
        .open_socket = open_post_socket,
    };
    double seconds = luaL_checknumber(L, 4);
    luaL_argcheck(L, seconds > 0 && seconds <= SECONDS_MAX, 4, "seconds, above 0, up to 60");
    request.deadlines.total_ms = (int64_t)(seconds * 1000) + 1;
    if (!lua_isyieldable(L))
        return binding_push_error(L, "this request cannot wait for a webhook");
    if (client->library->posts == POSTS_MAX)
        return binding_push_error(L, "512 webhooks are being called already");
    lua_settop(L, 5);
    struct post *post = push_new_post(L, client->library);
    client->library->posts++;
    post->http = ml_http_send(client->library->parts.http, &request, &handler, post);
    return lua_yield(L, 0);
}

/* ---- requests to pods ---- */

#define CALL       "cluster.http.call"
#define CALLS_MAX  512
#define FIELDS_MAX 128 /* of a head, in either direction */

enum { ON_HEAD = 1, ON_DATA, ON_DONE, CALL_FIELDS, CALL_CLIENT, CALL_VALUES = CALL_CLIENT };
static const char *const callbacks[] = {"head", "data", "done"}; /* user values in this order */

/* A full userdata. The registry holds it, under its own address, until it is done. */
struct call {
    struct ml_server_lua *lua;
    struct http_library *library;
    struct ml_http_call *http; /* NULL: it is over */
    int field_count;
};

/* Nothing comes any more. */
static void call_end(struct call *call)
{
    call->http = NULL;
    call->library->calls--;
    binding_release(call->lua->running, call);
}

/* Adds { name, value } to the list of fields. */
static void on_call_field(void *context, struct ml_str name, struct ml_str value)
{
    struct call *call = context;
    lua_State *L = call->lua->running;
    if (++call->field_count > FIELDS_MAX)
        return;
    binding_push_callback(L, call, CALL_FIELDS);
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
    struct ml_server_lua *lua = call->lua;
    lua_State *L = lua->running;
    binding_push_callback(L, call, ON_DONE);
    call_end(call);
    lua_pushstring(L, why);
    lua_pushstring(L, kind);
    binding_call_back(lua, 2);
}

static void on_call_head(void *context, const struct ml_http_head *head)
{
    struct call *call = context;
    lua_State *L = call->lua->running;
    if (call->field_count > FIELDS_MAX) {
        ml_http_cancel(call->http);
        call_fail(call, "the answer has more than 128 header fields", "limit");
        return;
    }
    binding_push_callback(L, call, ON_HEAD);
    lua_pushinteger(L, head->status);
    binding_push_callback(L, call, CALL_FIELDS);
    binding_call_back(call->lua, 2);
}

static int on_call_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct call *call = context;
    lua_State *L = call->lua->running;
    (void)err;
    binding_push_callback(L, call, ON_DATA);
    lua_pushlstring(L, piece.ptr, piece.len);
    binding_call_back(call->lua, 1);
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
    return lua_network_socket_to(call->library->parts.network, address);
}

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
    struct ml_str text = binding_check_str(L, -1);
    lua_pop(L, 1);
    return text;
}

/* [+1] */
ML_RAISES static struct call *push_new_call(lua_State *L, struct http_library *library)
{
    struct call *call = lua_newuserdatauv(L, sizeof *call, CALL_VALUES);
    *call = (struct call){.lua = server_lua_of(L), .library = library};
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
 * body =, connect_seconds =, http2 =, head = function(code, fields), data = function(bytes), done =
 * function(why, kind) } */
ML_RAISES static int client_request(lua_State *L)
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
    lua_getfield(L, 2, "http2");
    request.http2 = lua_toboolean(L, -1);
    request.trailer = request.http2 ? on_call_field : NULL;
    lua_getfield(L, 2, "connect_seconds");
    request.deadlines.connect_ms = (int64_t)(luaL_checknumber(L, -1) * 1000);
    lua_getfield(L, 2, "headers");
    request.header_count = check_headers(L, headers);
    if (client->library->calls == CALLS_MAX)
        return binding_push_error(L, "512 requests are under way already");
    struct call *call = push_new_call(L, client->library);
    binding_hold(L, call);
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

/* ---- clients ---- */

/* Text field of the options at 1, which keep it; NULL when it is missing. */
ML_RAISES static const char *text_option(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    const char *text = luaL_optstring(L, -1, NULL);
    lua_pop(L, 1);
    return text;
}

/* client(options) -> client: its requests share connections. options = { ca =, server_name =,
 * insecure = } */
ML_RAISES static int http_client(lua_State *L)
{
    struct http_library *library = lua_touserdata(L, lua_upvalueindex(1));
    luaL_checktype(L, 1, LUA_TTABLE);
    const char *ca_pem = text_option(L, "ca"), *server_name = text_option(L, "server_name");
    lua_getfield(L, 1, "insecure");
    bool is_insecure = lua_toboolean(L, -1);
    struct http_client *client = lua_newuserdatauv(L, sizeof *client, 0);
    *client = (struct http_client){.library = library};
    luaL_setmetatable(L, HTTP_CLIENT);
    client->ca_pem = ml_strdup(ca_pem);
    client->server_name = ml_strdup(server_name);
    client->tls = (struct ml_http_tls){.ca_pem = ml_str_of(client->ca_pem),
                                       .server_name = client->server_name,
                                       .insecure = is_insecure,
                                       .proxy_url = ""};
    return 1;
}

static int http_client_gc(lua_State *L)
{
    struct http_client *client = lua_touserdata(L, 1);
    free(ml_take(&client->ca_pem));
    free(ml_take(&client->server_name));
    return 0;
}

/* ---- the module ---- */

void ml_server_lua_add_http(struct ml_server_lua *lua, const struct ml_http_library *library)
{
    static const luaL_Reg client_methods[] = {
        {"post", client_post}, {"request", client_request}, {NULL, NULL}};
    static const luaL_Reg call_methods[] = {
        {"pause", call_pause}, {"cancel", call_cancel}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"client", http_client}, {NULL, NULL}};
    const struct http_library own = {.parts = *library};
    lua_State *L = lua->running;
    binding_new_type(L, HTTP_CLIENT, client_methods, http_client_gc);
    binding_new_type(L, POST, NULL, post_gc);
    binding_new_type(L, CALL, call_methods, call_gc);
    binding_add_module(lua, "cluster.http", functions, &own, sizeof own);
}
