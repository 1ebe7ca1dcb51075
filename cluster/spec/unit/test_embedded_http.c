#include "net_raw.h"

#include "cluster/host/embedded_http.h"

/* A handler in place of the server's: does what the path says. */
static const char handler[] =
    "local server = require 'cluster.apiserver.running'\n"
    "closes, held = 0, nil\n"
    "function server.handle(_, request, reply)\n"
    "  local names = {}\n"
    "  for name in pairs(request.headers) do names[#names + 1] = name end\n"
    "  table.sort(names)\n"
    "  for i, name in ipairs(names) do names[i] = name .. '=' .. request.headers[name] end\n"
    "  local seen = ('%s %s?%s [%s] %d'):format(request.method, request.path, request.query,\n"
    "    table.concat(names, '; '), #request.body)\n"
    "  if request.path == '/raise' then error 'oh no' end\n"
    "  if request.path == '/abort' then return reply:abort() end\n"
    "  if request.path ~= '/stream' and request.path ~= '/flood' then\n"
    "    return reply:send(201, 'text/plain', seen, { ['Audit-Id'] = 'x' })\n"
    "  end\n"
    "  reply:start(200, 'application/json')\n"
    "  reply.on_close = function() closes = closes + 1 end\n"
    "  if request.path == '/stream' then\n"
    "    reply:write 'begun'\n"
    "    held = reply\n"
    "    return\n"
    "  end\n"
    "  local waiting, chunk, total = 0, ('f'):rep(64 * 1024), 0\n"
    "  local function more()\n"
    "    waiting, total = reply:write(chunk), total + #chunk\n"
    "    if waiting > 1024 * 1024 then cut = waiting return reply:abort() end\n"
    "    require 'cluster.host'.after(0.001, more)\n"
    "  end\n"
    "  more()\n"
    "end\n";

struct fixture {
    struct net net;
    struct ml_apiserver *apiserver;
    struct ml_embedded_http *http;
};

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    struct ml_err err = ML_ERR_INIT;
    net_init(&f->net);
    if (ml_apiserver_new(&(struct ml_apiserver_options){.loop = f->net.loop}, &f->apiserver, &err) <
        0)
        fail_msg("%s", err.message);
    struct ml_server_lua *lua = ml_apiserver_lua(f->apiserver);
    assert_int_equal(ml_server_lua_run(lua, "handler.lua", ml_str_of(handler), &err), 0);
    assert_int_equal(ml_embedded_http_new(&(struct ml_embedded_http_opts){.loop = f->net.loop,
                                                                          .server = f->apiserver,
                                                                          .address = "127.0.0.1:0"},
                                          &f->http, &err),
                     0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_embedded_http_free(f->http);
    ml_apiserver_free(f->apiserver);
    net_fini(&f->net);
    free(f);
    return 0;
}

/* Runs Lua in the server's state; a failed assert in it fails the test. */
static void lua(struct fixture *f, const char *text)
{
    struct ml_err err = ML_ERR_INIT;
    if (ml_server_lua_run(ml_apiserver_lua(f->apiserver), "test", ml_str_of(text), &err) < 0)
        fail_msg("%s", err.message);
}

/* Is the condition true in the server's state? */
static bool holds(struct fixture *f, const char *condition)
{
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *text = ml_asprintf("assert(%s)", condition);
    return ml_server_lua_run(ml_apiserver_lua(f->apiserver), "test", ml_str_of(text), &err) == 0;
}

static void ask(struct fixture *f, struct raw *raw, const char *text, const char *until)
{
    raw_connect_tls(raw, &f->net, ml_embedded_http_port(f->http));
    raw_send(raw, text);
    raw_wait(raw, until);
}

static void test_embedded_http_takes_requests_to_lua_and_answers_back(void **state)
{
    static const struct {
        const char *request;
        const char *answer;
    } cases[] = {
        {"GET /api/v1/x%2Fy?watch=%31&a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
         "GET /api/v1/x%2Fy?watch=%31&a [connection=close; host=h] 0"},
        {"POST / HTTP/1.1\r\nACCEPT: a\r\nAccept: b\r\naccept: c\r\nConnection: close\r\n"
         "Content-Length: 5\r\n\r\n{\"a\"}",
         "POST /? [accept=a, b, c; connection=close; content-length=5] 5"},
        {"PATCH / HTTP/1.1\r\nConnection: close\r\n\r\n", "PATCH /? [connection=close] 0"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct raw raw;
        ask(f, &raw, cases[i].request, NULL);
        assert_has(ml_buf_cstr(&raw.got), "HTTP/1.1 201 Created\r\n");
        assert_has(ml_buf_cstr(&raw.got), "Content-Type: text/plain\r\n");
        assert_has(ml_buf_cstr(&raw.got), "Audit-Id: x\r\n");
        assert_has(ml_buf_cstr(&raw.got), cases[i].answer);
        raw_close(&raw);
    }
}

static void test_embedded_http_keeps_the_connection(void **state)
{
    struct fixture *f = *state;
    struct raw raw;
    raw_connect_tls(&raw, &f->net, ml_embedded_http_port(f->http));
    for (int i = 0; i < 50; i++) {
        ml_buf_clear(&raw.got);
        raw_send(&raw, "PUT /p HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
        raw_wait(&raw, "PUT /p? [content-length=1] 1");
    }
    raw_close(&raw);
}

static void test_embedded_http_refuses_as_kube_apiserver(void **state)
{
    static const struct {
        const char *head;
        size_t body_bytes;
        const char *answer;
        const char *status;
    } cases[] = {
        {"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 3145729\r\n\r\n", 3145729,
         "HTTP/1.1 413 Request Entity Too Large\r\n",
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
         "\"message\":\"Request entity too large: limit is 3145728\","
         "\"reason\":\"RequestEntityTooLarge\",\"code\":413}"},
        {"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 3145728\r\n\r\n", 3145728,
         "HTTP/1.1 201 Created\r\n", "3145728"},
        {"BREW / HTTP/1.1\r\n\r\n", 0, "HTTP/1.1 405 Method Not Allowed\r\n",
         "\"message\":\"the server does not allow this method on the requested resource\","
         "\"reason\":\"MethodNotAllowed\",\"details\":{},\"code\":405}"},
        {"GET /raise HTTP/1.1\r\nConnection: close\r\n\r\n", 0,
         "HTTP/1.1 500 Internal Server Error\r\n", "\"reason\":\"InternalError\""},
        {"hello\r\n\r\n", 0, "HTTP/1.1 400 Bad Request\r\n", ""},
    };
    struct fixture *f = *state;
    ML_AUTO_FREE char *body = ml_alloc(3145729);
    memset(body, ' ', 3145729);
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct raw raw;
        raw_connect_tls(&raw, &f->net, ml_embedded_http_port(f->http));
        raw_send(&raw, cases[i].head);
        raw_send_large(&raw, body, cases[i].body_bytes);
        raw_wait(&raw, NULL);
        assert_has(ml_buf_cstr(&raw.got), cases[i].answer);
        assert_has(ml_buf_cstr(&raw.got), cases[i].status);
        raw_close(&raw);
    }
}

static void test_embedded_http_streams(void **state)
{
    struct fixture *f = *state;
    struct raw raw;
    ask(f, &raw, "GET /stream HTTP/1.1\r\n\r\n", "5\r\nbegun\r\n");
    lua(f, "held:write 'more' held:finish()");
    raw_wait(&raw, "4\r\nmore\r\n0\r\n\r\n");
    ml_buf_clear(&raw.got);
    raw_send(&raw, "GET /next HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "GET /next?");
    lua(f, "assert(closes == 0)");
    raw_close(&raw);
}

static void test_embedded_http_tells_lua_that_a_client_has_gone(void **state)
{
    struct fixture *f = *state;
    struct raw raw;
    ask(f, &raw, "GET /stream HTTP/1.1\r\n\r\n", "begun");
    raw_close(&raw);
    net_until(&f->net, holds(f, "closes == 1"));
    lua(f, "assert(not pcall(held.write, held, 'x'))"); /* nothing may come after */
}

static void test_embedded_http_free_tells_lua_of_all(void **state)
{
    struct fixture *f = *state;
    struct raw raw[2];
    for (size_t i = 0; i < ML_COUNT(raw); i++)
        ask(f, &raw[i], "GET /stream HTTP/1.1\r\n\r\n", "begun");
    ml_embedded_http_free(ml_take(&f->http));
    lua(f, "assert(closes == 2)");
    for (size_t i = 0; i < ML_COUNT(raw); i++)
        raw_close(&raw[i]);
}

static void test_embedded_http_cuts_when_lua_says_so(void **state)
{
    struct fixture *f = *state;
    struct raw raw;
    ask(f, &raw, "GET /abort HTTP/1.1\r\n\r\n", NULL);
    assert_int_equal(raw.got.len, 0);
    raw_close(&raw);
}

static void test_embedded_http_tells_lua_what_waits_for_a_client_that_does_not_read(void **state)
{
    struct fixture *f = *state;
    struct raw raw;
    ask(f, &raw, "GET /flood HTTP/1.1\r\n\r\n", "ffff");
    raw_stop_reading(&raw);
    net_until(&f->net, holds(f, "cut"));
    net_settle(&f->net, 50);
    lua(f, "assert(cut > 1024 * 1024 and cut < 1024 * 1024 + 70000) assert(closes == 0)");
    raw_close(&raw);
}

static void test_embedded_http_is_trusted_by_its_certificate(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    struct fixture *f = *state;
    const struct ml_http_tls trust = {.ca_pem = ml_str_of(ml_embedded_http_ca(f->http))};
    for (size_t i = 0; i < ML_COUNT(hosts); i++) {
        struct answer got;
        char url[64];
        snprintf(url, sizeof url, "https://%s:%d/a", hosts[i], ml_embedded_http_port(f->http));
        answer_get(&got, &f->net,
                   &(struct ml_http_request){.method = "GET", .url = url, .tls = &trust});
        assert_int_equal(got.err.kind, 0);
        assert_int_equal(got.status, 201);
        ml_buf_fini(&got.body);
    }
}

static void test_embedded_http_says_why_it_cannot_start(void **state)
{
    struct fixture *f = *state;
    static const char *const bad_name[] = {"a b"};
    const struct {
        struct ml_embedded_http_opts opts;
        int kind;
    } cases[] = {
        {{.address = "nowhere"}, ML_EINVALID},
        {{.address = "192.0.2.1:0"}, ML_EIO},
        {{.address = "127.0.0.1:0", .names = bad_name, .name_count = 1}, ML_EINVALID},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_embedded_http *none = NULL;
        struct ml_embedded_http_opts opts = cases[i].opts;
        struct ml_err err = ML_ERR_INIT;
        opts.loop = f->net.loop;
        opts.server = f->apiserver;
        assert_int_equal(ml_embedded_http_new(&opts, &none, &err), cases[i].kind);
        assert_null(none);
    }
}

#define EMBEDDED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EMBEDDED(test_embedded_http_takes_requests_to_lua_and_answers_back),
        EMBEDDED(test_embedded_http_keeps_the_connection),
        EMBEDDED(test_embedded_http_refuses_as_kube_apiserver),
        EMBEDDED(test_embedded_http_streams),
        EMBEDDED(test_embedded_http_tells_lua_that_a_client_has_gone),
        EMBEDDED(test_embedded_http_free_tells_lua_of_all),
        EMBEDDED(test_embedded_http_cuts_when_lua_says_so),
        EMBEDDED(test_embedded_http_tells_lua_what_waits_for_a_client_that_does_not_read),
        EMBEDDED(test_embedded_http_is_trusted_by_its_certificate),
        EMBEDDED(test_embedded_http_says_why_it_cannot_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
