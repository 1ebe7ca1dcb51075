/* ctx.http, and the origins that a script declares. All of a request is checked here, whatever the
 * script says; run.c sends it (state/outbound.h). */
#include "net/address.h"
#include "script/ctx.h"
#include "script/ctx_calls.h"
#include "state/outbound.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

#define ORIGINS_MAX      16
#define URL_MAX          8192 /* bytes */
#define HEADERS_MAX      32
#define HEADER_VALUE_MAX 8192

/* ---- the declaration ---- */

/* "https://host:port", as moonloop/declarations.lua leaves it. */
static bool is_origin(struct ml_str text)
{
    if (!ml_str_starts(text, "https://") && !ml_str_starts(text, "http://"))
        return false;
    struct ml_str rest = text;
    (void)ml_str_cut(&rest, ':');
    rest = (struct ml_str){rest.ptr + 2, rest.len - 2};
    for (size_t i = 0; i < rest.len; i++)
        if (rest.ptr[i] <= ' ' || rest.ptr[i] >= 0x7f || strchr("/?#@\\", rest.ptr[i]))
            return false;
    return rest.len > 0 && text.len < SCRIPT_ORIGIN_MAX;
}

/* Raises unless scripts may ask the origin here, or some of the pattern. Without services, only the
 * form is checked. */
ML_RAISES static void check_allowed(lua_State *L, const char *call, const char *origin)
{
    const struct ml_services *services = script_of(L)->services;
    struct ml_err err = ML_ERR_INIT;
    if (ml_origin_check(origin, &err) < 0)
        luaL_error(L, "%s: %s: %s", call, origin, err.message);
    if (!services || (services->outbound && services->outbound->allows(services->outbound, origin)))
        return;
    luaL_error(L, "%s: scripts may not ask %s here: start moonloop with --allow-http %s", call,
               origin, origin);
}

ML_RAISES void script_declare_http(lua_State *L, int definition)
{
    struct ml_script *script = script_of(L);
    if (script_push_field(L, definition, "http") != LUA_TTABLE)
        luaL_error(L, "%s: http: not what moonloop.controller checked", script->declaration.file);
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
        struct ml_str origin = script_str(L, -1);
        if (!origin.ptr || !is_origin(origin) || i > ORIGINS_MAX)
            luaL_error(L, "%s: http: not what moonloop.controller checked",
                       script->declaration.file);
        check_allowed(L, "moonloop.controller: http", origin.ptr);
        if (!script->declaration.http)
            script->declaration.http = ml_zalloc((ORIGINS_MAX + 1) * sizeof(char *));
        script->declaration.http[i - 1] = ml_str_dup(origin);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* ---- the request ---- */

/* A request that was checked. The texts are the script's, in the table in stack slot 1, or above
 * it. */
struct http_request {
    const char *method, *url, *origin;
    struct ml_http_header *headers;
    size_t header_count;
    struct ml_str body;
    int64_t timeout_ms;
};

ML_RAISES static const char *check_method(lua_State *L)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
    if (script_push_field(L, 1, "method") == LUA_TNIL)
        return "GET";
    for (size_t i = 0; i < ML_COUNT(methods); i++)
        if (script_str(L, -1).ptr && ml_str_is(script_str(L, -1), methods[i]))
            return methods[i];
    luaL_error(L, HTTP_CALL ": method: expected GET, HEAD, POST, PUT, PATCH or DELETE");
    ML_UNREACHABLE();
}

/* Are all of it characters of a path or a query? */
static bool is_rest_of_url(struct ml_str rest)
{
    for (size_t i = 0; i < rest.len; i++)
        if (rest.ptr[i] <= ' ' || rest.ptr[i] >= 0x7f || strchr("#\\\"<>^`{|}", rest.ptr[i]))
            return false;
    return rest.len == 0 || rest.ptr[0] == '/' || rest.ptr[0] == '?';
}

/* The beginning of a URL, before its path and query, in lower case. False: it is no origin. */
static bool read_origin(struct ml_str url, char out[SCRIPT_ORIGIN_MAX])
{
    size_t len = strcspn(url.ptr, "/?");
    if (strncmp(url.ptr + len, "//", 2) == 0)
        len += 2 + strcspn(url.ptr + len + 2, "/?");
    if (len >= SCRIPT_ORIGIN_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        out[i] = (char)tolower((unsigned char)url.ptr[i]);
    out[len] = '\0';
    return is_origin(ml_str_of(out));
}

static bool is_declared(const struct ml_declaration *declaration, const char *origin)
{
    for (size_t i = 0; declaration->http && declaration->http[i]; i++)
        if (ml_origin_covers(declaration->http[i], origin))
            return true;
    return false;
}

ML_RAISES static void check_url(lua_State *L, struct http_request *request)
{
    script_push_field(L, 1, "url");
    struct ml_str url = script_str(L, -1);
    if (!url.ptr || url.len > URL_MAX)
        luaL_error(L, HTTP_CALL ": url: expected a URL of at most %d bytes", URL_MAX);
    request->url = url.ptr;
    char origin[SCRIPT_ORIGIN_MAX];
    if (!read_origin(url, origin) || !is_declared(&script_of(L)->declaration, origin))
        luaL_error(L,
                   HTTP_CALL ": url: it is below no origin that the script declares: add that to "
                             "http, as in http = { \"https://billing.example.com\" }");
    check_allowed(L, HTTP_CALL ": url", origin);
    request->origin = lua_pushstring(L, origin);
    size_t len = strlen(origin);
    if (!is_rest_of_url((struct ml_str){url.ptr + len, url.len - len}))
        luaL_error(L,
                   HTTP_CALL ": url: it has characters that no URL can have; write them as %%XX");
}

/* Fields that the host sets, or that would change where a request ends. */
static bool is_own_field(const char *name)
{
    static const char *const own[] = {"Host",       "Content-Length", "Transfer-Encoding",
                                      "Connection", "Keep-Alive",     "Upgrade",
                                      "TE",         "Trailer",        "Expect"};
    for (size_t i = 0; i < ML_COUNT(own); i++)
        if (strcasecmp(name, own[i]) == 0)
            return true;
    return strncasecmp(name, "Proxy-", 6) == 0;
}

/* Checks the field whose name is below the top and whose value is on top. */
ML_RAISES static struct ml_http_header check_header(lua_State *L)
{
    struct ml_str name = script_str(L, -2), value = script_str(L, -1);
    if (!name.ptr || !value.ptr)
        luaL_error(L, HTTP_CALL ": headers: expected a table of strings");
    bool is_name = strlen(name.ptr) == name.len && ml_http_is_token(name.ptr);
    if (!is_name || name.len > 256)
        luaL_error(L, HTTP_CALL ": headers: a name has letters, digits and '-'");
    if (is_own_field(name.ptr))
        luaL_error(L, HTTP_CALL ": headers: %s is set by the host", name.ptr);
    if (value.len > HEADER_VALUE_MAX)
        luaL_error(L, HTTP_CALL ": headers: %s: at most %d bytes", name.ptr, HEADER_VALUE_MAX);
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' && value.ptr[i] != '\t')
            luaL_error(L, HTTP_CALL ": headers: %s: no line ends and control characters", name.ptr);
    return (struct ml_http_header){name.ptr, value.ptr};
}

ML_RAISES static void check_headers(lua_State *L, struct http_request *request)
{
    int type = script_push_field(L, 1, "headers"), given = lua_gettop(L);
    if (type == LUA_TNIL)
        return;
    if (type != LUA_TTABLE)
        luaL_error(L, HTTP_CALL ": headers: expected a table");
    lazy_complete(L, given);
    request->headers = lua_newuserdatauv(L, HEADERS_MAX * sizeof *request->headers, 0);
    script_push_keys(L, given); /* in order; holds the names */
    int keys = lua_gettop(L);
    size_t count = (size_t)lua_rawlen(L, keys);
    if (count > HEADERS_MAX)
        luaL_error(L, HTTP_CALL ": headers: at most %d", HEADERS_MAX);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, keys, (lua_Integer)i + 1);
        lua_pushvalue(L, -1);
        lua_rawget(L, given);
        request->headers[request->header_count++] = check_header(L);
        lua_pop(L, 2);
    }
}

ML_RAISES static void check_body(lua_State *L, struct http_request *request)
{
    int type = script_push_field(L, 1, "body");
    if (type != LUA_TNIL && type != LUA_TSTRING)
        luaL_error(L, HTTP_CALL ": body: expected a string, got a %s", luaL_typename(L, -1));
    request->body = type == LUA_TSTRING ? script_str(L, -1) : ML_STR("");
    if (request->body.len > ML_OUTBOUND_BODY_MAX)
        luaL_error(L, HTTP_CALL ": body: at most 1 MiB");
}

/* Seconds, or a duration as time.duration reads it. */
ML_RAISES static void check_timeout(lua_State *L, struct http_request *request)
{
    int type = script_push_field(L, 1, "timeout");
    if (type == LUA_TSTRING) {
        script_push_library(L, "moonloop.time");
        lua_getfield(L, -1, "duration");
        lua_pushvalue(L, -3);
        lua_call(L, 1, 1);
    }
    double seconds = type == LUA_TNIL                 ? (double)ML_OUTBOUND_MAX_MS / 1000
                     : lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1)
                                                      : 0;
    if (!(seconds >= 0.001 && seconds <= (double)ML_OUTBOUND_MAX_MS / 1000))
        luaL_error(L,
                   HTTP_CALL ": timeout: expected seconds, or a duration as in \"5s\", up to 10 s");
    request->timeout_ms = (int64_t)(seconds * 1000);
}

/* The answer as a table, or nil and the error. */
ML_RAISES static int http_answered(lua_State *L, int status ML_UNUSED,
                                   lua_KContext context ML_UNUSED)
{
    struct ml_run *run = script_thread_of(L)->run;
    if (run->err)
        return ctx_fail(L, run->err);
    struct ml_str body = run->body, head = ml_str_cut(&body, '\n');
    script_push_json(L, head, ROOT_PLAIN);
    lua_pushliteral(L, "body");
    lua_pushlstring(L, body.ptr ? body.ptr : "", body.len);
    lua_rawset(L, -3);
    return 1;
}

/* Checks the request in the table in stack slot 1. */
ML_RAISES static void check_request(lua_State *L, struct http_request *out)
{
    lua_settop(L, 1);
    if (!lua_istable(L, 1))
        luaL_error(L, HTTP_CALL ": expected a table, got a %s", luaL_typename(L, 1));
    lazy_complete(L, 1);
    script_check_fields(L, HTTP_CALL, "http_request", 1);
    out->method = check_method(L);
    check_url(L, out);
    check_headers(L, out);
    check_body(L, out);
    check_timeout(L, out);
    script_cpu_check(L);
}

ML_RAISES static int http_now(lua_State *L, int status ML_UNUSED, lua_KContext context ML_UNUSED)
{
    struct http_request asked = {.headers = NULL};
    struct ml_run *run = ctx_may_wait(L, HTTP_CALL);
    check_request(L, &asked);
    bool writes = strcmp(asked.method, "GET") != 0 && strcmp(asked.method, "HEAD") != 0;
    if (writes && run_lacks_finalizer(run)) {
        run_add_finalizer(run);
        return lua_yieldk(L, 0, 0, http_now);
    }
    const struct ml_outbound_request request = {
        .method = asked.method,
        .url = asked.url,
        .origin = asked.origin,
        .headers = asked.headers,
        .header_count = asked.header_count,
        .body = asked.body,
        .timeout_ms = asked.timeout_ms,
    };
    /* Without path and query, which may have a token. */
    snprintf(run->what, sizeof(run->what), "%s %s", asked.method, asked.origin);
    run_http(run, &request, writes);
    return lua_yieldk(L, 0, 0, http_answered);
}

ML_RAISES int ctx_http(lua_State *L)
{
    ctx_count_read(L);
    return http_now(L, LUA_OK, 0);
}
