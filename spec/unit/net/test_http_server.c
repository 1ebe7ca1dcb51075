/* The HTTP server with clients that mean well; each test runs plain and over TLS. */
#include "net_served.h"

static void test_http_server_hands_over_a_request_and_answers(void **state)
{
    static const struct {
        const char *request;
        const char *seen;
        const char *answer;
        const char *not_in_answer;
    } cases[] = {
        {"GET /a%2Fb?x=%20y&z HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /a%2Fb?x=%20y&z 0",
         "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-One: 1\r\nContent-Length: 5\r\n",
         "X-Bad"},
        {"PATCH / HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc", "PATCH /? 3",
         "hello", "X-Bad"},
        {"OPTIONS * HTTP/1.1\r\nConnection: close\r\n\r\n", "OPTIONS *? 0", "hello", "X-Bad"},
        {"DELETE /x HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
         "DELETE /x? 5", "hello", "X-Bad"},
        {"HEAD /x HTTP/1.1\r\nConnection: close\r\n\r\n", "HEAD /x? 0", "Content-Length: 5\r\n",
         "hello"},
        {"GET /none HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /none? 0",
         "HTTP/1.1 204 No Content\r\n", "Content-Length"},
        {"GET /pieces HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /pieces? 0",
         "\r\n\r\n4\r\none,\r\n3\r\ntwo\r\n0\r\n\r\n", "Content-Length"},
        {"HEAD /pieces HTTP/1.1\r\nConnection: close\r\n\r\n", "HEAD /pieces? 0", "text/event",
         "one"},
        {"GET /pieces HTTP/1.0\r\n\r\n", "GET /pieces? 0", "\r\n\r\none,two", "chunked"},
        {"GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /pieces? 0",
         "\r\n\r\none,two", "Content-Length"},
        {"GET /counted HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /counted? 0",
         "content-length: 8\r\n", "chunked"},
        {"HEAD /counted HTTP/1.1\r\nConnection: close\r\n\r\n", "HEAD /counted? 0",
         "content-length: 8\r\n", "one"},
        {"GET /counted HTTP/1.0\r\n\r\n", "GET /counted? 0", "\r\n\r\none,two.", "chunked"},
        {"GET /a HTTP/1.0\r\n\r\n", "GET /a? 0", "\r\n\r\nhello", "chunked"},
        {"GET http://some.host/a?b HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /a?b 0", "hello",
         "X-Bad"},
    };
    struct served *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct raw raw;
        f->seen[0] = '\0';
        served_ask(f, &raw, cases[i].request);
        assert_string_equal(f->seen, cases[i].seen);
        assert_has(ml_buf_cstr(&raw.got), cases[i].answer);
        if (strstr(ml_buf_cstr(&raw.got), cases[i].not_in_answer))
            fail_msg("%s in %s", cases[i].not_in_answer, ml_buf_cstr(&raw.got));
        assert_false(raw.reset);
        raw_close(&raw);
    }
}

static void test_http_server_keeps_a_connection_for_the_next_request(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    static const char *const asked[][2] = {{"/a", "hello"},
                                           {"/pieces", "0\r\n\r\n"},
                                           {"/counted", "\r\n\r\none,two."},
                                           {"/a", "hello"}};
    for (int i = 0; i < (int)ML_COUNT(asked); i++) {
        char request[64];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n\r\n", asked[i][0]);
        raw_send(&raw, request);
        raw_wait(&raw, asked[i][1]);
        assert_int_equal(f->requests, i + 1);
        ml_buf_clear(&raw.got);
    }
    assert_int_equal(ml_http_server_connections(f->server), 1);
    raw_close(&raw);
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
}

static void test_http_server_answers_pipelined_requests_in_order(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "GET /hold HTTP/1.1\r\n\r\nPUT /p HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"
                   "GET /pieces HTTP/1.1\r\nConnection: close\r\n\r\n");
    net_run(&f->net);
    net_settle(&f->net, 20);
    assert_int_equal(f->requests, 1);
    served_release(f, 0);
    f->held_count = 0;
    raw_wait(&raw, NULL);
    assert_int_equal(f->requests, 3);
    const char *got = ml_buf_cstr(&raw.got);
    assert_true(strstr(got, "released") < strstr(got, "hello"));
    assert_true(strstr(got, "hello") < strstr(got, "two"));
    raw_close(&raw);
}

static void test_http_server_asks_for_the_body_that_a_client_holds_back(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "PUT /p HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    raw_wait(&raw, "HTTP/1.1 100 Continue\r\n\r\n");
    raw_send(&raw, "ab");
    raw_wait(&raw, "hello");
    assert_string_equal(f->seen, "PUT /p? 2");
    raw_close(&raw);
}

static void send_body(struct served *f, struct raw *raw, const char *head, size_t len, bool chunked)
{
    enum { CHUNK = 48 * 1024 };
    char *body = ml_alloc(len), size[16];
    memset(body, 'x', len);
    served_connect(f, raw);
    raw_send(raw, head);
    if (!chunked)
        raw_send_large(raw, body, len);
    for (size_t done = 0; chunked && done < len; done += CHUNK) {
        snprintf(size, sizeof size, "%zx\r\n", ML_MIN(len - done, (size_t)CHUNK));
        raw_send_large(raw, size, strlen(size));
        raw_send_large(raw, body + done, ML_MIN(len - done, (size_t)CHUNK));
        raw_send_large(raw, "\r\n", 2);
    }
    if (chunked)
        raw_send_large(raw, "0\r\n\r\n", 5);
    free(body);
}

static void test_http_server_takes_bodies_up_to_its_limit_only(void **state)
{
    enum { MAX = 3 * 1024 * 1024 };
    static const struct {
        size_t len;
        bool chunked;
        int status;
    } cases[] = {
        {MAX, false, 200},    {MAX, true, 200},      {MAX + 1, false, 413},
        {MAX + 1, true, 413}, {MAX * 4, false, 413}, {MAX * 4, true, 413},
    };
    struct served *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct raw raw;
        char head[128], want[32];
        snprintf(head, sizeof head,
                 "POST /b HTTP/1.1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                 cases[i].len);
        f->requests = 0;
        send_body(f, &raw,
                  cases[i].chunked ? "POST /b HTTP/1.1\r\nConnection: close\r\n"
                                     "Transfer-Encoding: chunked\r\n\r\n"
                                   : head,
                  cases[i].len, cases[i].chunked);
        raw_wait(&raw, NULL);
        snprintf(want, sizeof want, "HTTP/1.1 %d ", cases[i].status);
        if (strncmp(ml_buf_cstr(&raw.got), want, strlen(want)) != 0)
            fail_msg("%zu %d: %s", cases[i].len, cases[i].chunked, ml_buf_cstr(&raw.got));
        assert_int_equal(f->requests, cases[i].status == 200);
        if (cases[i].status == 413)
            assert_has(ml_buf_cstr(&raw.got), "{\"code\":413}");
        raw_close(&raw);
    }
}

static void test_http_server_tells_when_the_client_goes(void **state)
{
    static const char *const paths[] = {"/hold", "/stream"};
    struct served *f = *state;
    for (size_t i = 0; i < ML_COUNT(paths); i++) {
        struct raw raw;
        char request[64];
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n\r\n", paths[i]);
        served_connect(f, &raw);
        raw_send(&raw, request);
        if (i == 0)
            net_run(&f->net);
        else
            raw_wait(&raw, "begun");
        net_settle(&f->net, 10);
        assert_int_equal(f->closes, i);
        raw_close(&raw);
        net_run(&f->net); /* until it is told */
        assert_int_equal(f->closes, i + 1);
        net_settle(&f->net, 10);
        assert_int_equal(f->closes, i + 1);
        assert_int_equal(ml_http_server_connections(f->server), 0);
    }
}

static void test_http_server_tells_when_the_client_goes_in_mid_flood(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "GET /flood HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "bbbb");
    raw_close(&raw);
    net_run(&f->net);
    assert_int_equal(f->closes, 1);
    assert_int_equal(ml_http_server_connections(f->server), 0);
}

static void test_http_server_counts_what_waits_for_a_client_that_does_not_read(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "GET /flood HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "bbbb");
    raw_stop_reading(&raw);
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
    assert_true(f->waiting_max > 1024 * 1024);
    assert_int_equal(f->closes, 0); /* the cut was ours */
    raw_close(&raw);
}

/* A client that begins to read after `pause_ms` gets all of so many KiB, and is told the end. */
static void expect_all_read_late(struct served *f, int kib, int64_t pause_ms)
{
    struct raw raw;
    char request[80];
    snprintf(request, sizeof request, "GET /big/%d HTTP/1.1\r\nConnection: close\r\n\r\n", kib);
    served_connect(f, &raw);
    raw_send(&raw, request);
    raw_stop_reading(&raw);
    net_settle(&f->net, pause_ms);
    raw.watch = ml_loop_watch_fd(f->net.loop, raw.fd, raw_readable, &raw);
    raw_wait(&raw, NULL);
    const char *body = strstr(ml_buf_cstr(&raw.got), "\r\n\r\n") + 4;
    assert_int_equal(strspn(body, "y"), kib * 1024);
    assert_false(raw.reset);
    raw_close(&raw);
}

/* Some of the ends find the socket full: over TLS there must be room for the close_notify. */
static void test_http_server_sends_a_long_answer_to_a_slow_reader(void **state)
{
    for (int kib = 8192; kib < 8192 + 5; kib++)
        expect_all_read_late(*state, kib, 50);
}

static void test_http_server_cuts_when_told(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_ask(f, &raw, "GET /abort HTTP/1.1\r\n\r\n");
    assert_int_equal(raw.got.len, 0);
    assert_int_equal(f->closes, 0);
    raw_close(&raw);
}

static void test_http_server_free_tells_those_under_way(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "GET /stream HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "begun");
    ml_http_server_free(ml_take(&f->server));
    assert_int_equal(f->closes, 1);
    raw_close(&raw);
}

/* A finish in the same round of the loop as the last piece's departure: over TLS libevent then
 * has a write callback pending that knows nothing of the end. */
static void finish_later(void *context)
{
    struct served *f = context;
    ml_http_finish(f->held[0]);
}

static void test_http_server_ends_a_stream_whole_at_any_moment(void **state)
{
    struct served *f = *state;
    struct raw raw;
    struct ml_timer timer;
    ml_timer_init(&timer, f->net.loop, finish_later, f);
    served_connect(f, &raw);
    for (int i = 0; i < 200; i++) {
        f->held_count = 0;
        ml_buf_clear(&raw.got);
        raw_send(&raw, "GET /stream HTTP/1.1\r\n\r\n");
        raw_wait(&raw, "begun");
        ml_http_write(f->held[0], ML_STR("last"));
        ml_timer_start(&timer, i % 20 * 2 * ML_NS_PER_US);
        raw_wait(&raw, "4\r\nlast\r\n0\r\n\r\n");
    }
    assert_int_equal(f->requests, 200);
    raw_close(&raw);
}

static void test_http_server_serves_two_hundred_connections(void **state)
{
    enum { CLIENTS = 200, EACH = 5 };
    static struct raw raws[CLIENTS];
    struct served *f = *state;
    for (int i = 0; i < CLIENTS; i++)
        served_connect(f, &raws[i]);
    for (int round = 0; round < EACH; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            ml_buf_clear(&raws[i].got);
            raw_send(&raws[i], "POST /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
        }
        for (int i = 0; i < CLIENTS; i++)
            raw_wait(&raws[i], "hello");
    }
    assert_int_equal(f->requests, CLIENTS * EACH);
    assert_int_equal(ml_http_server_connections(f->server), CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        raw_close(&raws[i]);
}

#define BOTH(test)                                                                                 \
    {#test " (plain)", test, served_setup_plain, served_teardown, NULL},                           \
    {                                                                                              \
#test " (TLS)", test, served_setup_tls, served_teardown, NULL                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_http_server_hands_over_a_request_and_answers),
        BOTH(test_http_server_keeps_a_connection_for_the_next_request),
        BOTH(test_http_server_answers_pipelined_requests_in_order),
        BOTH(test_http_server_asks_for_the_body_that_a_client_holds_back),
        BOTH(test_http_server_takes_bodies_up_to_its_limit_only),
        BOTH(test_http_server_tells_when_the_client_goes),
        BOTH(test_http_server_tells_when_the_client_goes_in_mid_flood),
        BOTH(test_http_server_counts_what_waits_for_a_client_that_does_not_read),
        BOTH(test_http_server_sends_a_long_answer_to_a_slow_reader),
        BOTH(test_http_server_cuts_when_told),
        BOTH(test_http_server_free_tells_those_under_way),
        BOTH(test_http_server_ends_a_stream_whole_at_any_moment),
        BOTH(test_http_server_serves_two_hundred_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
