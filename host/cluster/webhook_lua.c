/* Requests to webhooks, for the API server in Lua: the Lua thread that asks waits, and goes on when
 * the answer has come. Called by lua/cluster/apiserver/admission/webhooks. */
#include "cluster/webhook_lua.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "cluster/network_lua.h"
#include "cluster/trusted_internal.h"

#define CLIENT      "cluster.webhook.client"
#define CALL        "cluster.webhook.call"
#define ANSWER_MAX  ((size_t)8 * 1024 * 1024)
#define CALLS_MAX   512
#define SECONDS_MAX 60
#define TYPE_MAX    128

/* The library, as the upvalue of each function. */
struct library {
    struct ml_webhook_library parts;
    int calls; /* under way */
};

/* A full userdata: whom a webhook's server must prove to be. */
struct client {
    struct library *library;
    char *ca_pem, *server_name; /* NULL: the system's roots; the URL's host */
    struct ml_http_tls tls;
};

/* A full userdata with the client and the thread that waits as its user values. The registry holds
 * it, under its own address, until the thread goes on. */
struct webhook_call {
    struct ml_trusted *trusted;
    struct library *library;
    lua_State *thread;
    struct ml_http_call *http;
    int status;
    char content_type[TYPE_MAX];
    struct ml_buf body;
};

enum { CALL_CLIENT = 1, CALL_THREAD = 2 }; /* user values */

/* ---- the answer ---- */

static void on_webhook_head(void *context, const struct ml_http_head *head)
{
    struct webhook_call *call = context;
    call->status = head->status;
    snprintf(call->content_type, sizeof call->content_type, ML_STR_FMT,
             ML_STR_ARG(head->content_type));
}

static int on_webhook_data(void *context, struct ml_str piece, struct ml_err *err)
{
    struct webhook_call *call = context;
    ml_buf_append_str(&call->body, piece);
    return call->body.failed ? ml_err_set(err, ML_ELIMIT, "the answer is larger than 8 MiB") : 0;
}

/* [+3] What the binding returns. */
static int push_answer(lua_State *thread, const struct webhook_call *call, const struct ml_err *err)
{
    if (err) {
        lua_pushnil(thread);
        lua_pushstring(thread, err->message);
        lua_pushboolean(thread, err->kind == ML_ETIMEOUT);
    } else {
        lua_pushinteger(thread, call->status);
        lua_pushstring(thread, call->content_type);
        lua_pushlstring(thread, call->body.ptr ? call->body.ptr : "", call->body.len);
    }
    return 3;
}

static void on_webhook_done(void *context, const struct ml_err *err)
{
    struct webhook_call *call = context;
    struct ml_trusted *trusted = call->trusted;
    lua_State *L = trusted->running, *thread = call->thread;
    lua_rawgetp(L, LUA_REGISTRYINDEX, call); /* it and its thread stay until we are done */
    host_release(L, call);
    call->http = NULL;
    call->library->calls--;
    int count = push_answer(thread, call, err);
    ml_buf_fini(&call->body);
    if (host_resume(trusted, thread, count) < 0)
        host_tell_failure(trusted);
    lua_pop(L, 1);
}

/* A socket that can connect to an address, or -1. */
static int open_webhook_socket(void *context, const struct sockaddr *address)
{
    const struct webhook_call *call = context;
    struct ml_err err = ML_ERR_INIT;
    if (address->sa_family == AF_INET)
        return network_lua_socket(call->library->parts.network, SOCK_STREAM,
                                  ((const struct sockaddr_in *)address)->sin_addr, &err);
    return socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Called for a call under way only when the state is closed. */
static int webhook_call_gc(lua_State *L)
{
    struct webhook_call *call = lua_touserdata(L, 1);
    if (call->http)
        ml_http_cancel(ml_take(&call->http));
    ml_buf_fini(&call->body);
    return 0;
}

/* ---- the request ---- */

/* [+1] A call of the thread L, which is going to wait. */
static struct webhook_call *push_new_webhook_call(lua_State *L, struct library *library)
{
    struct webhook_call *call = lua_newuserdatauv(L, sizeof *call, 2);
    *call = (struct webhook_call){.trusted = host_of(L), .library = library, .thread = L};
    ml_buf_init(&call->body, ANSWER_MAX);
    luaL_setmetatable(L, CALL);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, CALL_CLIENT);
    lua_pushthread(L);
    lua_setiuservalue(L, -2, CALL_THREAD);
    host_hold(L, call);
    return call;
}

/* client:post(url, body, seconds, host?) -> code, content_type, body; or nil, why, timed_out */
ML_RAISES static int client_post(lua_State *L)
{
    static const struct ml_http_handler handler = {on_webhook_head, on_webhook_data,
                                                   on_webhook_done};
    struct client *client = luaL_checkudata(L, 1, CLIENT);
    struct ml_http_header headers[] = {{"Content-Type", "application/json"},
                                       {"Accept", "application/json, */*"},
                                       {"Host", luaL_optstring(L, 5, NULL)}};
    struct ml_http_request request = {
        .method = "POST",
        .url = luaL_checkstring(L, 2),
        .headers = headers,
        .header_count = ML_COUNT(headers) - (headers[2].value ? 0 : 1),
        .body = host_check_str(L, 3),
        .tls = &client->tls,
        .open_socket = open_webhook_socket,
    };
    double seconds = luaL_checknumber(L, 4);
    luaL_argcheck(L, seconds > 0 && seconds <= SECONDS_MAX, 4, "seconds, above 0, up to 60");
    request.deadlines.total_ms = (int64_t)(seconds * 1000) + 1;
    if (!lua_isyieldable(L))
        return host_push_error(L, "this request cannot wait for a webhook");
    if (client->library->calls == CALLS_MAX)
        return host_push_error(L, "512 webhooks are being called already");
    lua_settop(L, 5);
    struct webhook_call *call = push_new_webhook_call(L, client->library);
    client->library->calls++;
    call->http = ml_http_send(client->library->parts.http, &request, &handler, call);
    return lua_yield(L, 0);
}

/* client(ca_pem?, server_name?) -> client: those that are equal to it share its connections */
ML_RAISES static int webhook_client(lua_State *L)
{
    struct library *library = lua_touserdata(L, lua_upvalueindex(1));
    const char *ca_pem = luaL_optstring(L, 1, NULL), *server_name = luaL_optstring(L, 2, NULL);
    struct client *client = lua_newuserdatauv(L, sizeof *client, 0);
    *client = (struct client){.library = library};
    luaL_setmetatable(L, CLIENT);
    client->ca_pem = ml_strdup(ca_pem);
    client->server_name = ml_strdup(server_name);
    client->tls = (struct ml_http_tls){
        .ca_pem = ml_str_of(client->ca_pem), .server_name = client->server_name, .proxy_url = ""};
    return 1;
}

static int webhook_client_gc(lua_State *L)
{
    struct client *client = lua_touserdata(L, 1);
    free(ml_take(&client->ca_pem));
    free(ml_take(&client->server_name));
    return 0;
}

/* ---- the module ---- */

void ml_trusted_add_webhooks(struct ml_trusted *trusted, const struct ml_webhook_library *library)
{
    static const luaL_Reg client_methods[] = {{"post", client_post}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"client", webhook_client}, {NULL, NULL}};
    lua_State *L = trusted->running;
    ml_assert(trusted->options.loop != NULL);
    host_new_type(L, CLIENT, client_methods, webhook_client_gc);
    host_new_type(L, CALL, NULL, webhook_call_gc);
    lua_newtable(L);
    struct library *own = lua_newuserdatauv(L, sizeof *own, 0);
    *own = (struct library){.parts = *library};
    luaL_setfuncs(L, functions, 1); /* each has the library as its upvalue */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "cluster.webhook");
    lua_pop(L, 2);
}
