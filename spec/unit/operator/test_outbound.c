/* Requests of scripts to other servers, on loopback: an answer, and each way in which a server can
 * be bad. */
#include "net_peer.h"
#include "net_served.h"

#include "operator/outbound.h"

struct told {
    struct net *net;
    struct ml_budget *budget; /* of the request; NULL: none */
    size_t count;
    struct ml_err err;
    char *answer;
};

static void on_told(void *context, struct ml_str answer, const struct ml_err *err)
{
    struct told *told = context;
    if (told->budget)
        assert_int_equal(told->budget->used, 0); /* a script may be freed here */
    told->count++;
    told->err = err ? *err : ML_ERR_INIT;
    free(told->answer);
    told->answer = ml_str_dup(answer);
    ml_loop_stop(told->net->loop);
}

static struct ml_outbound *open_outbound(struct net *net, const char *origin)
{
    const char *const origins[] = {origin, NULL};
    struct ml_outbound *outbound = NULL;
    struct ml_err err = ML_ERR_INIT;
    const struct ml_outbound_opts opts = {.loop = net->loop, .origins = origins, .proxy = ""};
    if (ml_outbound_new(&opts, &outbound, &err) < 0)
        fail_msg("%s", err.message);
    return outbound;
}

/* Asks `path` of the origin and waits for the answer. */
static void ask(struct ml_outbound *outbound, struct told *told, const char *method,
                const char *origin, const char *path, int64_t timeout_ms, struct ml_str body)
{
    ML_AUTO_FREE char *url = ml_asprintf("%s%s", origin, path);
    const struct ml_http_header headers[] = {{"X-Test", "yes"}};
    const struct ml_outbound_request request = {
        .method = method,
        .url = url,
        .origin = origin,
        .headers = headers,
        .header_count = 1,
        .body = body,
        .timeout_ms = timeout_ms,
    };
    told->count = 0;
    (void)outbound->send(outbound, &request, on_told, told);
    assert_int_equal(told->count, 0);
    net_run(told->net);
    assert_int_equal(told->count, 1);
}

static char *origin_at(int port)
{
    return ml_asprintf("http://127.0.0.1:%d", port);
}

static void test_outbound_gives_the_answer(void **state)
{
    struct served *f = *state;
    ML_AUTO_FREE char *origin = origin_at(ml_http_server_port(f->server));
    struct told told = {.net = &f->net};
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    assert_true(outbound->allows(outbound, origin));
    assert_false(outbound->allows(outbound, "http://127.0.0.1:1"));
    ask(outbound, &told, "GET", origin, "/hello?a=b", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, 0);
    assert_has(told.answer, "{\"status\":200,\"headers\":{");
    assert_has(told.answer, "\"content-type\":\"text/plain\"");
    assert_has(told.answer, "\"x-one\":\"1\"");
    assert_has(told.answer, "}}\nhello");
    assert_string_equal(f->seen, "GET /hello?a=b 0");
    ask(outbound, &told, "POST", origin, "/hello", 5000, ML_STR("12345"));
    assert_string_equal(f->seen, "POST /hello? 5");
    ask(outbound, &told, "HEAD", origin, "/hello", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, 0);
    free(told.answer);
    ml_outbound_free(outbound);
}

static void test_outbound_never_answered_is_a_timeout(void **state)
{
    struct served *f = *state;
    ML_AUTO_FREE char *origin = origin_at(ml_http_server_port(f->server));
    struct told told = {.net = &f->net};
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    ML_AUTO_FREE char *url = ml_asprintf("%s/hold", origin);
    const struct ml_outbound_request request = {
        .method = "GET", .url = url, .origin = origin, .timeout_ms = 150};
    (void)outbound->send(outbound, &request, on_told, &told);
    net_run(&f->net); /* until the server has it */
    assert_int_equal(f->held_count, 1);
    while (told.count == 0)
        net_run(&f->net);
    assert_int_equal(told.err.kind, ML_ETIMEOUT);
    free(told.answer);
    ml_outbound_free(outbound);
}

/* The origin itself is allowed, and by a pattern that comes first. */
static void test_outbound_allows_origins_of_patterns(void **state)
{
    struct served *f = *state;
    const char *const origins[] = {"https://*.b.test", "https://*.a.b.test:80", "https://x.b.test",
                                   NULL};
    struct ml_metrics *metrics = ml_metrics_new();
    struct ml_outbound *outbound = NULL;
    struct ml_err err = ML_ERR_INIT;
    const struct ml_outbound_opts opts = {
        .loop = f->net.loop, .metrics = metrics, .origins = origins, .proxy = "http://127.0.0.1:1"};
    assert_int_equal(ml_outbound_new(&opts, &outbound, &err), 0);
    static const char *const allowed[] = {"https://y.b.test", "https://x.b.test",
                                          "https://c.a.b.test:80", "https://*.b.test",
                                          "https://*.test"};
    static const char *const refused[] = {"https://b.test", "https://y.b.test:80",
                                          "http://y.b.test", "https://*.c.test"};
    for (size_t i = 0; i < ML_COUNT(allowed); i++)
        assert_true(outbound->allows(outbound, allowed[i]));
    for (size_t i = 0; i < ML_COUNT(refused); i++)
        assert_false(outbound->allows(outbound, refused[i]));
    struct told told = {.net = &f->net};
    ask(outbound, &told, "GET", "https://y.b.test", "/", 5000, ML_STR(""));
    ask(outbound, &told, "GET", "https://x.b.test", "/", 5000, ML_STR(""));
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(metrics, &page);
    assert_has(page.ptr, "{origin=\"https://*.b.test\",code=\"Network\"} 1\n");
    assert_has(page.ptr, "{origin=\"https://x.b.test\",code=\"Network\"} 1\n");
    free(told.answer);
    ml_outbound_free(outbound);
    ml_metrics_free(metrics);
}

static void test_outbound_too_large_is_refused(void **state)
{
    struct served *f = *state;
    ML_AUTO_FREE char *origin = origin_at(ml_http_server_port(f->server));
    struct told told = {.net = &f->net};
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    ask(outbound, &told, "GET", origin, "/big/1024", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, 0);
    ask(outbound, &told, "GET", origin, "/big/1025", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, ML_ELIMIT);
    assert_has(told.err.message, "more than 1 MiB");
    told.count = 0;
    ML_AUTO_FREE char *url = ml_asprintf("%s/flood", origin); /* without end */
    const struct ml_outbound_request request = {
        .method = "GET", .url = url, .origin = origin, .timeout_ms = 10000};
    (void)outbound->send(outbound, &request, on_told, &told);
    while (told.count == 0)
        net_run(&f->net);
    assert_int_equal(told.err.kind, ML_ELIMIT);
    free(told.answer);
    ml_outbound_free(outbound);
}

static void test_outbound_answer_is_charged_to_the_script(void **state)
{
    struct served *f = *state;
    ML_AUTO_FREE char *origin = origin_at(ml_http_server_port(f->server));
    ML_AUTO_FREE char *url = ml_asprintf("%s/big/512", origin);
    struct told told = {.net = &f->net};
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    struct ml_budget budget = {.max = 100 * 1024};
    told.budget = &budget;
    const struct ml_outbound_request request = {
        .method = "GET", .url = url, .origin = origin, .timeout_ms = 5000, .budget = &budget};
    (void)outbound->send(outbound, &request, on_told, &told);
    net_run(&f->net);
    assert_int_equal(told.err.kind, ML_ELIMIT);
    budget.max = 4 * 1024 * 1024;
    (void)outbound->send(outbound, &request, on_told, &told);
    net_run(&f->net);
    assert_int_equal(told.err.kind, 0);
    assert_int_equal(budget.used, 0);
    free(told.answer);
    ml_outbound_free(outbound);
}

static void test_outbound_follows_no_redirect(void **state)
{
    struct served *f = *state;
    char redirect[256];
    snprintf(redirect, sizeof redirect,
             "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/hello\r\n"
             "Content-Length: 0\r\n\r\n",
             ml_http_server_port(f->server));
    const struct peer_step steps[] = {{0, redirect}, {0, NULL}};
    struct peer peer;
    struct told told = {.net = &f->net};
    peer_init(&peer, &f->net, steps, PEER_HOLD);
    ML_AUTO_FREE char *origin = origin_at(peer.port);
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    ask(outbound, &told, "GET", origin, "/", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, 0);
    assert_has(told.answer, "{\"status\":302,");
    assert_has(told.answer, "\"location\":\"http://127.0.0.1:");
    net_settle(&f->net, 50);
    assert_int_equal(f->requests, 0);
    free(told.answer);
    ml_outbound_free(outbound);
    peer_fini(&peer);
}

/* A name that resolves to this machine: the declared origin does not say so. libcurl takes all of
 * .localhost for loopback. */
static void test_outbound_checks_the_address_of_a_name(void **state)
{
    struct served *f = *state;
    ML_AUTO_FREE char *origin = ml_asprintf("http://billing.localhost:%d",
                                            ml_http_server_port(f->server));
    struct told told = {.net = &f->net};
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    ask(outbound, &told, "GET", origin, "/hello", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, ML_EFORBIDDEN);
    assert_has(told.err.message, "it is a loopback address");
    assert_int_equal(f->requests, 0);
    free(told.answer);
    ml_outbound_free(outbound);
}

static void test_outbound_refused_connection_and_cut_answer(void **state)
{
    struct served *f = *state;
    const struct peer_step steps[] = {{0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"},
                                      {0, NULL}};
    struct peer peer;
    struct told told = {.net = &f->net};
    peer_init(&peer, &f->net, steps, PEER_CLOSE);
    ML_AUTO_FREE char *origin = origin_at(peer.port);
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    ask(outbound, &told, "GET", origin, "/", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, ML_ENETWORK);
    peer_fini(&peer);
    ask(outbound, &told, "GET", origin, "/", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, ML_ENETWORK);
    free(told.answer);
    ml_outbound_free(outbound);
}

static void test_outbound_bounds_the_fields_of_an_answer(void **state)
{
    struct served *f = *state;
    struct ml_buf head = ML_BUF_INIT;
    ml_buf_puts(&head, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
    for (int i = 0; i < 200; i++)
        ml_buf_printf(&head, "X-%d: y\r\n", i);
    ml_buf_puts(&head, "\r\n");
    const struct peer_step steps[] = {{0, ml_buf_cstr(&head)}, {0, NULL}};
    struct peer peer;
    struct told told = {.net = &f->net};
    peer_init(&peer, &f->net, steps, PEER_HOLD);
    ML_AUTO_FREE char *origin = origin_at(peer.port);
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    ask(outbound, &told, "GET", origin, "/", 5000, ML_STR(""));
    assert_int_equal(told.err.kind, ML_ELIMIT);
    assert_has(told.err.message, "header fields");
    free(told.answer);
    ml_outbound_free(outbound);
    peer_fini(&peer);
    ml_buf_fini(&head);
}

/* Answers that are not valid HTTP, or only just valid; each with the status that the script gets,
 * or 0 and a part of the error. */
static void test_outbound_answer_that_is_no_answer_is_an_error(void **state)
{
    struct served *f = *state;
    static const struct {
        const char *bytes;
        int status;
        const char *says;
    } cases[] = {
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", 0,
         "status 101"},
        {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nbytes", 0,
         "status 101"},
        {"HTTP/1.1 100 Continue\r\n\r\n", 0, "closed"},
        {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 0, "closed"},
        {"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n"
         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
         200, "ok"},
        {"HTTP/1.1 199 Odd\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
        {"HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n", 0, ""},
        {"HTTP/1.1 99 Less\r\nContent-Length: 0\r\n\r\n", 0, ""},
        {"HTTP/1.1 2000 More\r\nContent-Length: 0\r\n\r\n", 0, ""},
        {"HTTP/1.1 abc\r\nContent-Length: 0\r\n\r\n", 0, ""},
        {"HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 0, ""},
        {"SSH-2.0-OpenSSH_9.2\r\n", 0, "speaks no HTTP"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk", 0,
         "Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\ncontent-length: 2\r\n\r\nokk", 0,
         "Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", 200, "ok"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nokk", 0, "Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\nok", 0, "Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", 0, "Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", 0, "Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok", 0, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", 0, "was cut"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", 0, "was cut"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
         "Content-Length: 7\r\n\r\n",
         200, "ok"},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nbytes", 204, ""},
        {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, ""},
        {"HTTP/1.0 200 OK\r\n\r\nto the end", 200, "to the end"},
        {"HTTP/1.1 799 Odd\r\nContent-Length: 0\r\n\r\n", 799, ""},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        const struct peer_step steps[] = {{0, cases[i].bytes}, {0, NULL}};
        struct peer peer;
        struct told told = {.net = &f->net};
        peer_init(&peer, &f->net, steps, PEER_CLOSE);
        ML_AUTO_FREE char *origin = origin_at(peer.port);
        ML_AUTO_FREE char *head = ml_asprintf("{\"status\":%d,", cases[i].status);
        struct ml_outbound *outbound = open_outbound(&f->net, origin);
        ask(outbound, &told, "GET", origin, "/", 5000, ML_STR(""));
        bool fine = cases[i].status
                        ? told.err.kind == 0 && strstr(told.answer, head) &&
                              strstr(strchr(told.answer, '\n'), cases[i].says)
                        : told.err.kind == ML_ENETWORK && strstr(told.err.message, cases[i].says);
        if (!fine)
            fail_msg("%s\n gave %d %s: %s", cases[i].bytes, told.err.kind, told.err.message,
                     told.answer);
        free(told.answer);
        ml_outbound_free(outbound);
        peer_fini(&peer);
    }
}

static int refuse_to_send(void *context, struct ml_err *err)
{
    (void)context;
    return ml_err_set(err, ML_ECANCELED, "not the leader any more");
}

static void test_outbound_asks_before_a_byte_leaves(void **state)
{
    struct served *f = *state;
    ML_AUTO_FREE char *origin = origin_at(ml_http_server_port(f->server));
    struct told told = {.net = &f->net};
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    const struct ml_outbound_request request = {.method = "POST",
                                                .url = origin,
                                                .origin = origin,
                                                .timeout_ms = 5000,
                                                .may_send = refuse_to_send};
    (void)outbound->send(outbound, &request, on_told, &told);
    net_run(&f->net);
    assert_int_equal(told.err.kind, ML_ECANCELED);
    assert_int_equal(f->requests, 0);
    free(told.answer);
    ml_outbound_free(outbound);
}

/* More than may be under way wait; cancelled ones leave nothing. */
static void test_outbound_waits_for_a_free_place(void **state)
{
    struct served *f = *state;
    enum { MANY = 70 };
    ML_AUTO_FREE char *origin = origin_at(ml_http_server_port(f->server));
    struct told told[MANY];
    struct ml_outbound_call *calls[MANY];
    struct ml_outbound *outbound = open_outbound(&f->net, origin);
    const struct ml_outbound_request request = {
        .method = "GET", .url = origin, .origin = origin, .timeout_ms = 10000};
    for (int i = 0; i < MANY; i++) {
        told[i] = (struct told){.net = &f->net};
        calls[i] = outbound->send(outbound, &request, on_told, &told[i]);
    }
    outbound->cancel(outbound, calls[0]);
    outbound->cancel(outbound, calls[MANY - 1]);
    for (int i = 1; i < MANY - 1; i++) {
        while (told[i].count == 0)
            net_run(&f->net);
        assert_int_equal(told[i].err.kind, 0);
        free(told[i].answer);
    }
    assert_int_equal(told[0].count + told[MANY - 1].count, 0);
    ml_outbound_free(outbound);
}

static void expect_counted(struct ml_metrics *metrics, const char *origin, const char *code,
                           int count)
{
    struct ml_buf page = ML_BUF_INIT;
    ML_AUTO_FREE char *line = ml_asprintf(
        "moonloop_http_requests_total{origin=\"%s\",code=\"%s\"} %d\n", origin, code, count);
    ml_metrics_write(metrics, &page);
    assert_has(ml_buf_cstr(&page), line);
    ml_buf_fini(&page);
}

static void test_outbound_counts_by_origin_and_answer(void **state)
{
    struct served *f = *state;
    static const char *const errors[] = {"Timeout", "Network", "TLS", "Forbidden", "LimitExceeded"};
    ML_AUTO_FREE char *origin = origin_at(ml_http_server_port(f->server));
    ML_AUTO_FREE char *other = ml_asprintf("http://Billing.localhost:%d",
                                           ml_http_server_port(f->server));
    const char *const origins[] = {origin, other, NULL};
    struct told told = {.net = &f->net};
    struct ml_metrics *metrics = ml_metrics_new();
    struct ml_outbound *outbound = NULL;
    struct ml_err err = ML_ERR_INIT;
    const struct ml_outbound_opts opts = {
        .loop = f->net.loop, .metrics = metrics, .origins = origins, .proxy = ""};
    assert_int_equal(ml_outbound_new(&opts, &outbound, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        expect_counted(metrics, origins[i], "200", 0);
        for (size_t j = 0; j < ML_COUNT(errors); j++)
            expect_counted(metrics, origins[i], errors[j], 0);
    }
    ask(outbound, &told, "GET", origin, "/hello", 5000, ML_STR(""));
    ask(outbound, &told, "GET", origin, "/none", 5000, ML_STR(""));
    ask(outbound, &told, "GET", origin, "/big/1025", 5000, ML_STR(""));
    ML_AUTO_FREE char *spelled = ml_asprintf("http://billing.localhost:%d",
                                             ml_http_server_port(f->server));
    ask(outbound, &told, "GET", spelled, "/hello", 5000, ML_STR(""));
    expect_counted(metrics, origin, "200", 1);
    expect_counted(metrics, origin, "204", 1);
    expect_counted(metrics, origin, "LimitExceeded", 1);
    expect_counted(metrics, other, "Forbidden", 1);
    expect_counted(metrics, other, "200", 0);
    free(told.answer);
    ml_outbound_free(outbound);
    ml_metrics_free(metrics);
}

/* As in the image, whose libcurl has no default of its own. */
static void test_outbound_trusts_the_roots_of_the_system(void **state)
{
    struct served *f = *state;
    char path[] = "/tmp/moonloop-roots.XXXXXX";
    int fd = mkstemp(path);
    ssize_t len = (ssize_t)strlen(f->identity.ca_pem);
    assert_int_equal(write(fd, f->identity.ca_pem, (size_t)len), len);
    close(fd);
    ML_AUTO_FREE char *origin = ml_asprintf("https://localhost:%d", ml_http_server_port(f->server));
    for (int i = 0; i < 2; i++) {
        struct told told = {.net = &f->net};
        if (i == 1)
            setenv("SSL_CERT_FILE", path, 1);
        struct ml_outbound *outbound = open_outbound(&f->net, origin);
        ask(outbound, &told, "GET", origin, "/hello", 5000, ML_STR(""));
        if (told.err.kind != (i == 1 ? 0 : ML_ETLS))
            fail_msg("with%s the authority: %s", i == 1 ? "" : "out", told.err.message);
        free(told.answer);
        ml_outbound_free(outbound);
    }
    unsetenv("SSL_CERT_FILE");
    unlink(path);
}

static void test_outbound_options_are_checked(void **state)
{
    struct served *f = *state;
    static const char *const bad[] = {"billing.example.com",   "ftp://x",     "https://",
                                      "https://x/y",           "https://u@x", "https://*",
                                      "http://169.254.169.254"};
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        const char *const origins[] = {bad[i], NULL};
        const struct ml_outbound_opts opts = {.loop = f->net.loop, .origins = origins};
        struct ml_outbound *outbound = NULL;
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(ml_outbound_new(&opts, &outbound, &err), ML_EINVALID);
        assert_has(err.message, bad[i]);
    }
    const char *const none[] = {NULL};
    const struct ml_outbound_opts opts = {
        .loop = f->net.loop, .origins = none, .ca_file = "/nowhere.pem"};
    struct ml_outbound *outbound = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_outbound_new(&opts, &outbound, &err), ML_EINVALID);
    assert_has(err.message, "--http-ca-file /nowhere.pem: No such file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, served_setup_plain, served_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_outbound_gives_the_answer),
        TEST(test_outbound_never_answered_is_a_timeout),
        TEST(test_outbound_allows_origins_of_patterns),
        TEST(test_outbound_too_large_is_refused),
        TEST(test_outbound_answer_is_charged_to_the_script),
        TEST(test_outbound_follows_no_redirect),
        TEST(test_outbound_checks_the_address_of_a_name),
        TEST(test_outbound_refused_connection_and_cut_answer),
        TEST(test_outbound_bounds_the_fields_of_an_answer),
        TEST(test_outbound_answer_that_is_no_answer_is_an_error),
        TEST(test_outbound_asks_before_a_byte_leaves),
        TEST(test_outbound_waits_for_a_free_place),
        TEST(test_outbound_counts_by_origin_and_answer),
        cmocka_unit_test_setup_teardown(test_outbound_trusts_the_roots_of_the_system,
                                        served_setup_tls, served_teardown),
        TEST(test_outbound_options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
