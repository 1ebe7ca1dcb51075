/* The embedded API server as C sees it: its Lua state, requests as Lua tables, the reply that Lua
 * fills, and the end of a request whose handler raises. */
#include "cluster/host/apiserver.h"

#include <ctype.h>

#include "cluster/host/server_lua_internal.h"
#include "net/tls.h"

#define REPLY       "moonloop.reply"
#define HEADERS_MAX 256

static const char server_key; /* registry: the server, a Lua table */

struct ml_apiserver {
    struct ml_server_lua *lua;
    struct ml_log *log;
    struct ml_list calls;
};

enum reply_state { REPLY_OPEN, REPLY_STARTED, REPLY_OVER };
enum { ON_CLOSE = 1, ON_DATA, CALLBACKS = ON_DATA }; /* user values */

/* A full userdata with on_close and on_data as its user values. The registry holds it, under its
 * own address, until the answer ends. */
struct ml_apiserver_call {
    struct ml_list node; /* among those of its server */
    struct ml_server_lua *lua;
    const struct ml_apiserver_sink *sink;
    void *context;
    enum reply_state state;
    bool is_upgraded;
};

/* ---- the reply, as Lua has it ---- */

/* Nothing more goes to the sink; Lua's collector may free it. */
static void end_reply(struct ml_apiserver_call *call)
{
    call->state = REPLY_OVER;
    ml_list_remove(&call->node);
    binding_release(call->lua->running, call);
}

/* The reply that a method is called on, in the state it needs. */
ML_RAISES static struct ml_apiserver_call *check_reply(lua_State *L, const char *method,
                                                       enum reply_state wanted)
{
    struct ml_apiserver_call *call = luaL_checkudata(L, 1, REPLY);
    if (call->state == REPLY_OVER)
        luaL_error(L, "reply:%s: the answer has ended, or its client has gone", method);
    if (call->state != wanted)
        luaL_error(L, "reply:%s: the answer has %s begun", method,
                   wanted == REPLY_OPEN ? "already" : "not");
    return call;
}

/* Name and value on top, as one more of those that are sorted by name. */
ML_RAISES static void add_reply_header(lua_State *L, int index, struct ml_http_header *headers,
                                       size_t *count)
{
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_argerror(L, index, "values of headers are strings, or lists of them");
    if (*count == HEADERS_MAX)
        luaL_argerror(L, index, "up to 256 headers");
    const struct ml_http_header header = {lua_tostring(L, -2), lua_tostring(L, -1)};
    size_t place = (*count)++;
    for (; place > 0 && strcmp(headers[place - 1].name, header.name) > 0; place--)
        headers[place] = headers[place - 1];
    headers[place] = header;
}

/* The headers at `index`, sorted by name; their texts belong to the table there. A list of values
 * stands for as many headers. */
ML_RAISES static size_t check_reply_headers(lua_State *L, int index, struct ml_http_header *headers)
{
    size_t count = 0;
    if (lua_isnoneornil(L, index))
        return 0;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_argerror(L, index, "names of headers are strings");
        if (lua_type(L, -1) != LUA_TTABLE) {
            add_reply_header(L, index, headers, &count);
            continue;
        }
        lua_Integer values = (lua_Integer)lua_rawlen(L, -1);
        for (lua_Integer i = 1; i <= values; i++) {
            lua_pushvalue(L, -2);
            lua_rawgeti(L, -2, i);
            add_reply_header(L, index, headers, &count);
            lua_pop(L, 2);
        }
    }
    return count;
}

ML_RAISES static int check_reply_status(lua_State *L)
{
    lua_Integer status = luaL_checkinteger(L, 2);
    luaL_argcheck(L, status >= 200 && status <= 999, 2, "a status code");
    return (int)status;
}

/* reply:send(code, content_type, body, headers?) */
ML_RAISES static int reply_send(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "send", REPLY_OPEN);
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_http_answer answer = {.status = check_reply_status(L), .headers = headers};
    answer.content_type = luaL_optstring(L, 3, NULL);
    answer.body.ptr = luaL_checklstring(L, 4, &answer.body.len);
    answer.header_count = check_reply_headers(L, 5, headers);
    end_reply(call);
    call->sink->send(call->context, &answer);
    return 0;
}

/* reply:start(code, content_type, headers?) */
ML_RAISES static int reply_start(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "start", REPLY_OPEN);
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_http_answer head = {.status = check_reply_status(L), .headers = headers};
    head.content_type = luaL_optstring(L, 3, NULL);
    head.header_count = check_reply_headers(L, 4, headers);
    call->state = REPLY_STARTED;
    call->sink->start(call->context, &head);
    return 0;
}

/* reply:write(bytes) -> bytes that wait to be sent */
ML_RAISES static int reply_write(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "write", REPLY_STARTED);
    struct ml_str bytes = binding_check_str(L, 2);
    lua_pushinteger(L, (lua_Integer)call->sink->write(call->context, bytes));
    return 1;
}

/* reply:finish() */
ML_RAISES static int reply_finish(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "finish", REPLY_STARTED);
    end_reply(call);
    call->sink->finish(call->context);
    return 0;
}

/* reply:upgrade(headers) -> true, or nil and why this connection cannot be upgraded */
ML_RAISES static int reply_upgrade(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "upgrade", REPLY_OPEN);
    struct ml_http_header headers[HEADERS_MAX];
    size_t count = check_reply_headers(L, 2, headers);
    if (!call->sink->upgrade || !call->sink->upgrade(call->context, headers, count))
        return binding_push_error(L, "this connection cannot be upgraded");
    call->state = REPLY_STARTED;
    call->is_upgraded = true;
    lua_pushboolean(L, true);
    return 1;
}

/* reply:pause(paused): of an upgraded connection */
ML_RAISES static int reply_pause(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "pause", REPLY_STARTED);
    luaL_argcheck(L, call->is_upgraded, 1, "it is not upgraded");
    call->sink->pause(call->context, lua_toboolean(L, 2));
    return 0;
}

/* reply:abort(): at any time; nothing when the answer has ended */
ML_RAISES static int reply_abort(lua_State *L)
{
    struct ml_apiserver_call *call = luaL_checkudata(L, 1, REPLY);
    if (call->state == REPLY_OVER)
        return 0;
    end_reply(call);
    call->sink->abort(call->context);
    return 0;
}

/* The user value of a field that Lua sets; 0: there is no such field. */
static int callback_of(const char *name)
{
    if (name && strcmp(name, "on_close") == 0)
        return ON_CLOSE;
    return name && strcmp(name, "on_data") == 0 ? ON_DATA : 0;
}

/* The fields of a reply: its methods, which are the upvalue, and its callbacks. */
ML_RAISES static int reply_index(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    luaL_checkudata(L, 1, REPLY);
    int callback = callback_of(lua_tostring(L, 2));
    if (callback)
        lua_getiuservalue(L, 1, callback);
    return 1;
}

/* reply.on_close, reply.on_data = function or nil */
ML_RAISES static int reply_newindex(lua_State *L)
{
    luaL_checkudata(L, 1, REPLY);
    const char *name = luaL_checkstring(L, 2);
    int callback = callback_of(name);
    if (!callback)
        return luaL_error(L, "a reply has no field '%s'", name);
    if (!lua_isnoneornil(L, 3))
        luaL_checktype(L, 3, LUA_TFUNCTION);
    lua_settop(L, 3);
    lua_setiuservalue(L, 1, callback);
    return 0;
}

/* Makes the type known to the state. */
static void open_reply_type(lua_State *L)
{
    static const luaL_Reg methods[] = {{"send", reply_send},   {"start", reply_start},
                                       {"write", reply_write}, {"finish", reply_finish},
                                       {"abort", reply_abort}, {"upgrade", reply_upgrade},
                                       {"pause", reply_pause}, {NULL, NULL}};
    luaL_newmetatable(L, REPLY);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, reply_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, reply_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pop(L, 1);
}

/* [+1] A new reply on the running thread; in no list yet. */
static struct ml_apiserver_call *push_new_reply(struct ml_server_lua *lua,
                                                const struct ml_apiserver_sink *sink, void *context)
{
    lua_State *L = lua->running;
    struct ml_apiserver_call *call = lua_newuserdatauv(L, sizeof *call, CALLBACKS);
    *call = (struct ml_apiserver_call){.lua = lua, .sink = sink, .context = context};
    ml_list_init(&call->node);
    luaL_setmetatable(L, REPLY);
    binding_hold(L, call);
    return call;
}

/* ---- the server ---- */

/* settings -> nothing; puts the server where handle finds it. */
ML_RAISES static int open_server(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushstring(L, "cluster.apiserver");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "new");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &server_key);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "cluster.apiserver.running");
    return 0;
}

static void log_callback_failure(void *context, const char *message)
{
    struct ml_apiserver *server = context;
    ml_error(server->log, "apiserver", "a callback failed", ML_S("error", message));
}

static int start_server(struct ml_apiserver *server, struct ml_str settings, struct ml_err *err)
{
    lua_State *L = server->lua->running;
    lua_pushcfunction(L, open_server);
    int r = binding_decode_json(L, settings.len > 0 ? settings : ML_STR("{}"), false, err);
    if (r < 0) {
        lua_pop(L, 1);
        return ml_err_wrap(err, "settings");
    }
    return binding_call(server->lua, 1, 0) == 0 ? 0 : binding_fail(server->lua, err);
}

int ml_apiserver_new(const struct ml_apiserver_options *options, struct ml_apiserver **out,
                     struct ml_err *err)
{
    struct ml_apiserver *server = ml_new(struct ml_apiserver);
    server->log = options->log;
    ml_list_init(&server->calls);
    server->lua = ml_server_lua_new(&(struct ml_server_lua_options){
        .loop = options->loop,
        .clock = options->clock,
        .random = options->random,
        .log = options->log,
        .logger = "apiserver",
        .files_first = options->files_first,
        .garbage_percent = options->garbage_percent,
        .failed = log_callback_failure,
        .context = server,
    });
    open_reply_type(server->lua->L);
    /* Almost nothing of a first start is garbage: to look for it would take a tenth of it. */
    lua_gc(server->lua->L, LUA_GCSTOP);
    int r = start_server(server, options->settings, err);
    lua_gc(server->lua->L, LUA_GCRESTART);
    if (r < 0) {
        ml_apiserver_free(server);
        return r;
    }
    *out = server;
    return 0;
}

static void abort_all_calls(struct ml_apiserver *server)
{
    ml_list_each_entry (struct ml_apiserver_call, call, &server->calls) {
        const struct ml_apiserver_sink *sink = call->sink;
        void *context = call->context;
        end_reply(call);
        sink->abort(context);
    }
}

void ml_apiserver_free(struct ml_apiserver *server)
{
    if (!server)
        return;
    abort_all_calls(server);
    ml_server_lua_free(server->lua);
    free(server);
}

int ml_apiserver_reset(struct ml_apiserver *server, struct ml_str settings, struct ml_err *err)
{
    abort_all_calls(server);
    binding_forget_timers(server->lua);
    return start_server(server, settings, err);
}

struct ml_server_lua *ml_apiserver_lua(struct ml_apiserver *server)
{
    return server->lua;
}

/* [+1] */
static void push_lowercase(struct ml_server_lua *lua, const char *name)
{
    ml_buf_clear(&lua->work);
    for (; *name; name++)
        ml_buf_putc(&lua->work, (char)tolower((unsigned char)*name));
    lua_pushlstring(lua->running, lua->work.ptr, lua->work.len);
}

/* [+1] Of fields with the same name the values stand in one, with commas (RFC 9110, 5.3). */
static void push_headers(struct ml_server_lua *lua, const struct ml_apiserver_request *request)
{
    lua_State *L = lua->running;
    lua_createtable(L, 0, (int)request->header_count);
    for (size_t i = 0; i < request->header_count; i++) {
        push_lowercase(lua, request->headers[i].name);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) == LUA_TSTRING)
            lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), request->headers[i].value);
        else
            lua_pushstring(L, request->headers[i].value);
        lua_remove(L, -2);
        lua_rawset(L, -3);
    }
}

static void set_text_field(lua_State *L, const char *name, struct ml_str text)
{
    lua_pushlstring(L, text.ptr ? text.ptr : "", text.len);
    lua_setfield(L, -2, name);
}

/* [+1] { problem = } or { name =, groups =, sha256 = }: request.certificate in Lua. */
static void push_certificate(lua_State *L, const struct ml_tls_client *client)
{
    lua_createtable(L, 0, 3);
    if (client->problem) {
        set_text_field(L, "problem", ml_str_of(client->problem));
        return;
    }
    set_text_field(L, "name", ml_buf_str(&client->name));
    set_text_field(L, "sha256", ml_str_of(client->sha256));
    lua_createtable(L, (int)client->group_count, 0);
    for (size_t i = 0; i < client->group_count; i++) {
        struct ml_str group = ml_buf_str(&client->groups[i]);
        lua_pushlstring(L, group.ptr ? group.ptr : "", group.len);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "groups");
}

/* [+1] */
static void push_request(struct ml_server_lua *lua, const struct ml_apiserver_request *request)
{
    lua_State *L = lua->running;
    lua_createtable(L, 0, 6);
    if (request->client)
        set_text_field(L, "client", ml_str_of(request->client));
    set_text_field(L, "method", ml_str_of(request->method));
    set_text_field(L, "path", request->path);
    set_text_field(L, "query", request->query);
    set_text_field(L, "body", request->body);
    push_headers(lua, request);
    lua_setfield(L, -2, "headers");
    if (request->certificate) {
        push_certificate(L, request->certificate);
        lua_setfield(L, -2, "certificate");
    }
}

static void answer_internal_error(struct ml_apiserver_call *call, struct ml_str problem)
{
    struct ml_buf body = ML_BUF_INIT, message = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_buf_printf(&message, "Internal error occurred: " ML_STR_FMT, ML_STR_ARG(problem));
    ml_json_writer_init(&writer, &body);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "kind", ML_STR("Status"));
    ml_json_put_string(&writer, "apiVersion", ML_STR("v1"));
    ml_json_put_raw(&writer, "metadata", ML_STR("{}"));
    ml_json_put_string(&writer, "status", ML_STR("Failure"));
    ml_json_put_string(&writer, "message", ml_buf_str(&message));
    ml_json_put_string(&writer, "reason", ML_STR("InternalError"));
    ml_json_put_int(&writer, "code", 500);
    ml_json_end_object(&writer);
    const struct ml_http_answer answer = {
        .status = 500, .content_type = "application/json", .body = ml_buf_str(&body)};
    end_reply(call);
    call->sink->send(call->context, &answer);
    ml_buf_fini(&message);
    ml_buf_fini(&body);
}

/* Ends a request whose handler raised. */
static void fail_request(struct ml_apiserver *server, struct ml_apiserver_call *call,
                         const struct ml_apiserver_request *request)
{
    const char *traceback = ml_server_lua_traceback(server->lua);
    ml_error(server->log, "apiserver", "a request failed", ML_S("method", request->method),
             ML_STR_FIELD("path", request->path), ML_S("error", traceback));
    struct ml_str rest = ml_str_of(traceback);
    if (call->state == REPLY_OPEN) {
        answer_internal_error(call, ml_str_cut(&rest, '\n'));
    } else if (call->state == REPLY_STARTED) {
        end_reply(call);
        call->sink->abort(call->context);
    }
}

struct ml_apiserver_call *ml_apiserver_handle(struct ml_apiserver *server,
                                              const struct ml_apiserver_request *request,
                                              const struct ml_apiserver_sink *sink, void *context)
{
    lua_State *L = server->lua->running;
    struct ml_apiserver_call *call = push_new_reply(server->lua, sink, context);
    ml_list_push(&server->calls, &call->node);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &server_key);
    lua_getfield(L, -1, "handle");
    lua_insert(L, -2);
    push_request(server->lua, request);
    lua_pushvalue(L, -4);
    if (binding_run(server->lua, 3) < 0)
        fail_request(server, call, request);
    bool over = call->state == REPLY_OVER;
    lua_pop(L, 1); /* the reply, which may go now */
    return over ? NULL : call;
}

void ml_apiserver_received(struct ml_apiserver_call *call, struct ml_str bytes)
{
    lua_State *L = call->lua->running;
    binding_push_callback(L, call, ON_DATA);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    lua_pushlstring(L, bytes.ptr, bytes.len);
    binding_call_back(call->lua, 1);
}

void ml_apiserver_gone(struct ml_apiserver_call *call)
{
    struct ml_server_lua *lua = call->lua;
    lua_State *L = lua->running;
    lua_rawgetp(L, LUA_REGISTRYINDEX, call);
    lua_getiuservalue(L, -1, ON_CLOSE);
    end_reply(call);
    if (lua_isnil(L, -1))
        lua_pop(L, 1);
    else
        binding_call_back(lua, 0);
    lua_pop(L, 1);
}
