/* The answer to a request, as Lua has it: what is done to it goes to the sink. */
#include "cluster/apiserver_reply.h"

#define REPLY       "moonloop.reply"
#define HEADERS_MAX 16

void reply_end(struct ml_apiserver_call *call)
{
    lua_State *L = call->trusted->running;
    call->state = REPLY_OVER;
    ml_list_remove(&call->node);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, call);
}

/* The reply that a method is called on, in the state it needs. */
ML_RAISES
static struct ml_apiserver_call *check_reply(lua_State *L, const char *method,
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

/* The headers at `index`, sorted by name; their texts belong to the table there. */
ML_RAISES
static size_t check_headers(lua_State *L, int index, struct ml_http_header *headers)
{
    size_t count = 0;
    if (lua_isnoneornil(L, index))
        return 0;
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
            luaL_argerror(L, index, "names and values of headers are strings");
        if (count == HEADERS_MAX)
            luaL_argerror(L, index, "up to 16 headers");
        const struct ml_http_header header = {lua_tostring(L, -2), lua_tostring(L, -1)};
        size_t place = count++;
        for (; place > 0 && strcmp(headers[place - 1].name, header.name) > 0; place--)
            headers[place] = headers[place - 1];
        headers[place] = header;
    }
    return count;
}

ML_RAISES
static int check_status(lua_State *L)
{
    lua_Integer status = luaL_checkinteger(L, 2);
    luaL_argcheck(L, status >= 200 && status <= 599, 2, "a status code");
    return (int)status;
}

/* reply:send(code, content_type, body, headers?) */
ML_RAISES
static int reply_send(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "send", REPLY_OPEN);
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_http_answer answer = {.status = check_status(L), .headers = headers};
    answer.content_type = luaL_optstring(L, 3, NULL);
    answer.body.ptr = luaL_checklstring(L, 4, &answer.body.len);
    answer.header_count = check_headers(L, 5, headers);
    reply_end(call);
    call->sink->send(call->context, &answer);
    return 0;
}

/* reply:start(code, content_type, headers?) */
ML_RAISES
static int reply_start(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "start", REPLY_OPEN);
    struct ml_http_header headers[HEADERS_MAX];
    struct ml_http_answer head = {.status = check_status(L), .headers = headers};
    head.content_type = luaL_optstring(L, 3, NULL);
    head.header_count = check_headers(L, 4, headers);
    call->state = REPLY_STARTED;
    call->sink->start(call->context, &head);
    return 0;
}

/* reply:write(bytes) -> bytes that wait to be sent */
ML_RAISES
static int reply_write(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "write", REPLY_STARTED);
    struct ml_str bytes;
    bytes.ptr = luaL_checklstring(L, 2, &bytes.len);
    lua_pushinteger(L, (lua_Integer)call->sink->write(call->context, bytes));
    return 1;
}

/* reply:finish() */
ML_RAISES
static int reply_finish(lua_State *L)
{
    struct ml_apiserver_call *call = check_reply(L, "finish", REPLY_STARTED);
    reply_end(call);
    call->sink->finish(call->context);
    return 0;
}

/* reply:abort(): at any time; nothing when the answer has ended */
ML_RAISES
static int reply_abort(lua_State *L)
{
    struct ml_apiserver_call *call = luaL_checkudata(L, 1, REPLY);
    if (call->state == REPLY_OVER)
        return 0;
    reply_end(call);
    call->sink->abort(call->context);
    return 0;
}

/* The fields of a reply: its methods, which are the upvalue, and on_close. */
ML_RAISES
static int reply_index(lua_State *L)
{
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    luaL_checkudata(L, 1, REPLY);
    const char *name = lua_tostring(L, 2);
    if (name && strcmp(name, "on_close") == 0)
        lua_getiuservalue(L, 1, 1);
    return 1;
}

/* reply.on_close = function or nil */
ML_RAISES
static int reply_newindex(lua_State *L)
{
    luaL_checkudata(L, 1, REPLY);
    const char *name = luaL_checkstring(L, 2);
    if (strcmp(name, "on_close") != 0)
        return luaL_error(L, "a reply has no field '%s'", name);
    if (!lua_isnoneornil(L, 3))
        luaL_checktype(L, 3, LUA_TFUNCTION);
    lua_settop(L, 3);
    lua_setiuservalue(L, 1, 1);
    return 0;
}

void reply_open(lua_State *L)
{
    static const luaL_Reg methods[] = {{"send", reply_send},   {"start", reply_start},
                                       {"write", reply_write}, {"finish", reply_finish},
                                       {"abort", reply_abort}, {NULL, NULL}};
    luaL_newmetatable(L, REPLY);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, reply_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, reply_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pop(L, 1);
}

struct ml_apiserver_call *reply_push(struct ml_trusted *trusted,
                                     const struct ml_apiserver_sink *sink, void *context)
{
    lua_State *L = trusted->running;
    struct ml_apiserver_call *call = lua_newuserdatauv(L, sizeof *call, 1);
    *call = (struct ml_apiserver_call){.trusted = trusted, .sink = sink, .context = context};
    ml_list_init(&call->node);
    luaL_setmetatable(L, REPLY);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, call);
    return call;
}
