/* The embedded API server as C sees it: its state, requests become Lua tables, and what becomes of
 * one whose handler raises. What Lua does to the reply is apiserver_reply.c's. */
#include <ctype.h>

#include "cluster/apiserver_reply.h"

static const char server_key; /* registry: the server, a Lua table */

struct ml_apiserver {
    struct ml_trusted *trusted;
    struct ml_log *log;
    struct ml_list calls;
};

/* settings -> nothing; puts the server where handle finds it. */
ML_RAISES
static int open_server(lua_State *L)
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

/* An error in a timer, a deferred function or on_close. */
static void on_failed(void *context, const char *message)
{
    struct ml_apiserver *server = context;
    ml_error(server->log, "apiserver", "a callback failed", ML_S("error", message));
}

static int start(struct ml_apiserver *server, struct ml_str settings, struct ml_err *err)
{
    lua_State *L = server->trusted->running;
    lua_pushcfunction(L, open_server);
    int r = host_decode(L, settings.len > 0 ? settings : ML_STR("{}"), false, err);
    if (r < 0) {
        lua_pop(L, 1);
        return ml_err_wrap(err, "settings");
    }
    r = host_call(server->trusted, 1, 0);
    if (r == 0)
        return 0;
    struct ml_str traceback = ml_str_of(ml_trusted_traceback(server->trusted));
    struct ml_str line = ml_str_cut(&traceback, '\n');
    return ml_err_set(err, r, ML_STR_FMT, ML_STR_ARG(line));
}

int ml_apiserver_new(const struct ml_apiserver_options *options, struct ml_apiserver **out,
                     struct ml_err *err)
{
    struct ml_apiserver *server = ml_new(struct ml_apiserver);
    server->log = options->log;
    ml_list_init(&server->calls);
    server->trusted = ml_trusted_new(&(struct ml_trusted_options){
        .loop = options->loop,
        .clock = options->clock,
        .random = options->random,
        .log = options->log,
        .logger = "apiserver",
        .files_first = options->files_first,
        .garbage_percent = options->garbage_percent,
        .failed = on_failed,
        .context = server,
    });
    reply_open(server->trusted->L);
    int r = start(server, options->settings, err);
    if (r < 0) {
        ml_apiserver_free(server);
        return r;
    }
    *out = server;
    return 0;
}

static void abort_all(struct ml_apiserver *server)
{
    ml_list_each (node, &server->calls) {
        struct ml_apiserver_call *call = ml_container_of(node, struct ml_apiserver_call, node);
        const struct ml_apiserver_sink *sink = call->sink;
        void *context = call->context;
        reply_end(call);
        sink->abort(context);
    }
}

void ml_apiserver_free(struct ml_apiserver *server)
{
    if (!server)
        return;
    abort_all(server);
    ml_trusted_free(server->trusted);
    free(server);
}

int ml_apiserver_reset(struct ml_apiserver *server, struct ml_str settings, struct ml_err *err)
{
    abort_all(server);
    host_forget(server->trusted);
    return start(server, settings, err);
}

struct ml_trusted *ml_apiserver_trusted(struct ml_apiserver *server)
{
    return server->trusted;
}

/* [+1] */
static void push_lowercase(struct ml_trusted *trusted, const char *name)
{
    ml_buf_clear(&trusted->work);
    for (; *name; name++)
        ml_buf_putc(&trusted->work, (char)tolower((unsigned char)*name));
    lua_pushlstring(trusted->running, trusted->work.ptr, trusted->work.len);
}

/* [+1] Of fields with the same name the values stand in one, with commas (RFC 9110, 5.3). */
static void push_headers(struct ml_trusted *trusted, const struct ml_apiserver_request *request)
{
    lua_State *L = trusted->running;
    lua_createtable(L, 0, (int)request->header_count);
    for (size_t i = 0; i < request->header_count; i++) {
        push_lowercase(trusted, request->headers[i].name);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) == LUA_TSTRING)
            lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), request->headers[i].value);
        else
            lua_pushstring(L, request->headers[i].value);
        lua_remove(L, -2);
        lua_rawset(L, -3);
    }
}

static void set_text(lua_State *L, const char *name, struct ml_str text)
{
    lua_pushlstring(L, text.ptr ? text.ptr : "", text.len);
    lua_setfield(L, -2, name);
}

/* [+1] */
static void push_request(struct ml_trusted *trusted, const struct ml_apiserver_request *request)
{
    lua_State *L = trusted->running;
    lua_createtable(L, 0, 5);
    set_text(L, "method", ml_str_of(request->method));
    set_text(L, "path", request->path);
    set_text(L, "query", request->query);
    set_text(L, "body", request->body);
    push_headers(trusted, request);
    lua_setfield(L, -2, "headers");
}

static void answer_500(struct ml_apiserver_call *call, struct ml_str problem)
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
    reply_end(call);
    call->sink->send(call->context, &answer);
    ml_buf_fini(&message);
    ml_buf_fini(&body);
}

/* What becomes of a request whose handler raised. */
static void fail(struct ml_apiserver *server, struct ml_apiserver_call *call,
                 const struct ml_apiserver_request *request)
{
    const char *traceback = ml_trusted_traceback(server->trusted);
    ml_error(server->log, "apiserver", "a request failed", ML_S("method", request->method),
             ML_STR_FIELD("path", request->path), ML_S("error", traceback));
    struct ml_str rest = ml_str_of(traceback);
    if (call->state == REPLY_OPEN) {
        answer_500(call, ml_str_cut(&rest, '\n'));
    } else if (call->state == REPLY_STARTED) {
        reply_end(call);
        call->sink->abort(call->context);
    }
}

struct ml_apiserver_call *ml_apiserver_handle(struct ml_apiserver *server,
                                              const struct ml_apiserver_request *request,
                                              const struct ml_apiserver_sink *sink, void *context)
{
    lua_State *L = server->trusted->running;
    struct ml_apiserver_call *call = reply_push(server->trusted, sink, context);
    ml_list_push(&server->calls, &call->node);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &server_key);
    lua_getfield(L, -1, "handle");
    lua_insert(L, -2);
    push_request(server->trusted, request);
    lua_pushvalue(L, -4);
    if (host_call(server->trusted, 3, 0) < 0)
        fail(server, call, request);
    bool over = call->state == REPLY_OVER;
    lua_pop(L, 1); /* the reply, which may go now */
    return over ? NULL : call;
}

void ml_apiserver_gone(struct ml_apiserver_call *call)
{
    struct ml_trusted *trusted = call->trusted;
    lua_State *L = trusted->running;
    lua_rawgetp(L, LUA_REGISTRYINDEX, call);
    lua_getiuservalue(L, -1, 1);
    reply_end(call);
    if (lua_isnil(L, -1))
        lua_pop(L, 1);
    else
        host_call_back(trusted, 0);
    lua_pop(L, 1);
}
