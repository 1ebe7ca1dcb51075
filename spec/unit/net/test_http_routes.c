#include "net_peer.h"

#include <stdio.h>

#include "net/http_routes.h"

struct fixture {
    struct net net;
    struct ml_http_routes *routes;
    char seen[256]; /* the last exchange: "METHOD path query body" */
};

static void echo(void *context, struct ml_http_page *page)
{
    struct fixture *f = context;
    snprintf(f->seen, sizeof f->seen, "%s %s %s " ML_STR_FMT, page->method, page->path, page->query,
             ML_STR_ARG(page->body));
    ml_buf_puts(&page->reply, "echo");
}

static void refuse(void *context, struct ml_http_page *page)
{
    (void)context;
    page->status = 503;
    page->content_type = "application/json";
    ml_buf_puts(&page->reply, "{}");
}

static void overflow(void *context, struct ml_http_page *page)
{
    (void)context;
    page->reply.len_max = 3;
    ml_buf_puts(&page->reply, "far too long");
}

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    struct ml_err err = ML_ERR_INIT;
    net_init(&f->net);
    assert_int_equal(ml_http_routes_new(f->net.loop, "127.0.0.1:0", &f->routes, &err), 0);
    ml_http_routes_add(f->routes, "/readyz", refuse, f);
    ml_http_routes_add(f->routes, "/debug/", echo, f);
    ml_http_routes_add(f->routes, "/debug/big", overflow, f);
    ml_http_routes_add(f->routes, "/metrics", echo, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_http_routes_free(f->routes);
    net_fini(&f->net);
    free(f);
    return 0;
}

static void request(struct fixture *f, const char *method, const char *target, struct ml_str body,
                    struct answer *got)
{
    char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s",
             ml_http_server_port(ml_http_routes_server(f->routes)), target);
    answer_get(got, &f->net,
               &(struct ml_http_request){
                   .method = method, .url = url, .body = body, .deadlines.total_ms = 15000});
}

static void test_http_routes_answers_by_route_and_method(void **state)
{
    static const struct {
        const char *method;
        const char *target;
        int status;
        const char *content_type;
        const char *body;
        const char *seen;
    } cases[] = {
        {"GET", "/metrics", 200, "text/plain; charset=utf-8", "echo", "GET /metrics  "},
        {"GET", "/metrics?a=%20b&c", 200, "text/plain; charset=utf-8", "echo",
         "GET /metrics a=%20b&c "},
        {"HEAD", "/metrics", 200, "text/plain; charset=utf-8", "", "HEAD /metrics  "},
        {"GET", "/readyz", 503, "application/json", "{}", ""},
        {"GET", "/readyz/", 404, "text/plain; charset=utf-8", "not found\n", ""},
        {"GET", "/metricsx", 404, "text/plain; charset=utf-8", "not found\n", ""},
        {"GET", "/debug/a%2fb%20c", 200, "text/plain; charset=utf-8", "echo", "GET /debug/a/b c  "},
        {"GET", "/debug/", 200, "text/plain; charset=utf-8", "echo", "GET /debug/  "},
        {"GET", "/debug", 404, "text/plain; charset=utf-8", "not found\n", ""},
        {"GET", "/debug/big", 500, "text/plain; charset=utf-8", "answer too large\n", ""},
        {"GET", "/debug/bigger", 200, "text/plain; charset=utf-8", "echo", "GET /debug/bigger  "},
        {"GET", "/debug/a%00b", 400, "text/plain; charset=utf-8", "bad path\n", ""},
        {"GET", "/", 404, "text/plain; charset=utf-8", "not found\n", ""},
        {"HEAD", "/", 404, "text/plain; charset=utf-8", "", ""},
        {"POST", "/metrics", 405, "text/plain; charset=utf-8", "method not allowed\n", ""},
        {"DELETE", "/readyz", 405, "text/plain; charset=utf-8", "method not allowed\n", ""},
        {"PATCH", "/readyz", 405, "text/plain; charset=utf-8", "method not allowed\n", ""},
        {"POST", "/nowhere", 404, "text/plain; charset=utf-8", "not found\n", ""},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct answer got;
        f->seen[0] = '\0';
        request(f, cases[i].method, cases[i].target, (struct ml_str){0}, &got);
        if (got.err.kind || got.status != cases[i].status)
            fail_msg("%s %s: %d %s", cases[i].method, cases[i].target, got.status, got.err.message);
        assert_string_equal(got.content_type, cases[i].content_type);
        assert_str_eq(ml_buf_str(&got.body), cases[i].body);
        assert_string_equal(f->seen, cases[i].seen);
        ml_buf_fini(&got.body);
    }
}

static void test_http_routes_hands_over_a_body_and_bounds_it(void **state)
{
    struct fixture *f = *state;
    struct answer got;
    request(f, "GET", "/metrics", ML_STR("payload"), &got);
    assert_int_equal(got.status, 200);
    assert_string_equal(f->seen, "GET /metrics  payload");
    ml_buf_fini(&got.body);
    static char big[1024 * 1024];
    memset(big, 'x', sizeof big);
    f->seen[0] = '\0';
    request(f, "GET", "/metrics", (struct ml_str){big, sizeof big}, &got);
    assert_string_equal(f->seen, "");
    assert_true(got.err.kind != 0 || got.status >= 400);
    ml_buf_fini(&got.body);
}

static void test_http_routes_bounds_the_header(void **state)
{
    struct fixture *f = *state;
    struct answer got;
    static char value[40 * 1024];
    memset(value, 'x', sizeof value - 1);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/metrics",
             ml_http_server_port(ml_http_routes_server(f->routes)));
    answer_get(&got, &f->net,
               &(struct ml_http_request){.method = "GET",
                                         .url = url,
                                         .headers = &(struct ml_http_header){"X-Big", value},
                                         .header_count = 1});
    assert_string_equal(f->seen, "");
    assert_true(got.err.kind != 0 || got.status >= 400);
    ml_buf_fini(&got.body);
}

static void test_http_routes_free_closes_what_is_open(void **state)
{
    struct fixture *f = *state;
    struct answer got;
    request(f, "GET", "/metrics", (struct ml_str){0}, &got); /* its connection stays open */
    ml_buf_fini(&got.body);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/metrics",
             ml_http_server_port(ml_http_routes_server(f->routes)));
    ml_http_routes_free(ml_take(&f->routes));
    answer_get(&got, &f->net, &(struct ml_http_request){.method = "GET", .url = url});
    assert_int_equal(got.err.kind, ML_ENETWORK);
}

static void test_http_routes_says_why_it_cannot_listen(void **state)
{
    struct fixture *f = *state;
    char taken[32];
    snprintf(taken, sizeof taken, "127.0.0.1:%d",
             ml_http_server_port(ml_http_routes_server(f->routes)));
    const struct {
        const char *address;
        int kind;
        const char *message;
    } cases[] = {
        {"", ML_EINVALID, "not host:port or :port"},
        {"8080", ML_EINVALID, "not host:port or :port"},
        {"localhost:", ML_EINVALID, "not host:port or :port"},
        {"localhost:http", ML_EINVALID, "not host:port or :port"},
        {"127.0.0.1:65536", ML_EINVALID, "not host:port or :port"},
        {"::1:80", ML_EINVALID, "not host:port or :port"},
        {"192.0.2.1:0", ML_EIO, "listen on 192.0.2.1:0: "},
        {taken, ML_EIO, "Address already in use"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_http_routes *routes = NULL;
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(ml_http_routes_new(f->net.loop, cases[i].address, &routes, &err),
                         cases[i].kind);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s: %s", cases[i].address, err.message);
        assert_null(routes);
    }
}

static void test_http_routes_listens_on_all_addresses(void **state)
{
    static const char *const addresses[] = {":0", "localhost:0"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(addresses); i++) {
        struct ml_err err = ML_ERR_INIT;
        ml_http_routes_free(ml_take(&f->routes));
        assert_int_equal(ml_http_routes_new(f->net.loop, addresses[i], &f->routes, &err), 0);
        ml_http_routes_add(f->routes, "/metrics", echo, f);
        struct answer got;
        char url[64];
        snprintf(url, sizeof url, "http://%s:%d/metrics", i == 0 ? "127.0.0.1" : "localhost",
                 ml_http_server_port(ml_http_routes_server(f->routes)));
        answer_get(&got, &f->net, &(struct ml_http_request){.method = "GET", .url = url});
        assert_int_equal(got.status, 200);
        ml_buf_fini(&got.body);
    }
}

#define SERVER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER(test_http_routes_answers_by_route_and_method),
        SERVER(test_http_routes_hands_over_a_body_and_bounds_it),
        SERVER(test_http_routes_bounds_the_header),
        SERVER(test_http_routes_free_closes_what_is_open),
        SERVER(test_http_routes_says_why_it_cannot_listen),
        SERVER(test_http_routes_listens_on_all_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
