/* The HTTP server with clients that mean harm, or do not know better. */
#include <sys/resource.h>

#include "net_served.h"

#define ARRIVAL_MS 250
#define IDLE_MS    600

static int setup_impatient(void **state)
{
    served_setup(state);
    served_open(*state, false,
                &(struct ml_http_limits){.arrival_ms = ARRIVAL_MS, .idle_ms = IDLE_MS});
    return 0;
}

static int setup_impatient_tls(void **state)
{
    served_setup(state);
    served_open(*state, true,
                &(struct ml_http_limits){.arrival_ms = ARRIVAL_MS, .idle_ms = IDLE_MS});
    return 0;
}

static int setup_narrow(void **state)
{
    served_setup(state);
    served_open(*state, false, &(struct ml_http_limits){.connections_max = 3});
    return 0;
}

/* A server that may have many connections, in a process that may have few descriptors. */
static int setup_few_descriptors(void **state)
{
    struct rlimit before, few;
    served_setup(state);
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){.rlim_cur = 15, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    served_open(*state, false, &(struct ml_http_limits){.connections_max = 100});
    setrlimit(RLIMIT_NOFILE, &before);
    return 0;
}

/* A head with a NUL never reaches the handler, however it arrives: the NUL would hide a part of a
 * header. Bodies may have one. */
static void test_http_server_refuses_a_nul_in_the_head(void **state)
{
    static const struct {
        struct ml_str request;
        int status;
        int requests;
    } cases[] = {
        {ML_STR("GET / HTTP/1.1\r\nAuthorization: Bearer TOKEN\0x\r\nA: b\r\n\r\n"), 400, 0},
        {ML_STR("GET /\0 HTTP/1.1\r\n\r\n"), 400, 0},
        {ML_STR("GET / HTTP/1.1\nA: \0\n\n"), 400, 0},
        {ML_STR("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\na\0b"), 200, 1},
        {ML_STR("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\0b"
                "GET / HTTP/1.1\r\nA: b\0c\r\n\r\n"),
         200, 1},
    };
    struct served *f = *state;
    for (size_t i = 0; i < 2 * ML_COUNT(cases); i++) {
        struct ml_str request = cases[i / 2].request;
        struct raw raw;
        char want[32];
        f->requests = 0;
        served_connect(f, &raw);
        for (size_t sent = 0, step = i % 2 ? 1 : request.len; sent < request.len; sent += step) {
            assert_int_equal(raw_send_some(&raw, request.ptr + sent, step), step);
            net_settle(&f->net, i % 2);
            if (raw.closed)
                break;
        }
        raw_wait(&raw, NULL);
        snprintf(want, sizeof want, "HTTP/1.1 %d ", cases[i / 2].status);
        if (strncmp(ml_buf_cstr(&raw.got), want, strlen(want)) != 0)
            fail_msg("%zu: %s", i, ml_buf_cstr(&raw.got));
        assert_int_equal(f->requests, cases[i / 2].requests);
        raw_close(&raw);
    }
}

static void test_http_server_refuses_what_is_not_http(void **state)
{
    static const struct {
        const char *request;
        int status;
    } cases[] = {
        {"\x16\x03\x01\x02\r\n\r\n", 400},
        {"hello\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET / HTTP/9.9\r\n\r\n", 400},
        {"GET / FTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", 400},
        /* evhttp's answer to a chunk whose size is no number. */
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 413},
        {"GET /%zz HTTP/1.1\r\nConnection: close\r\n\r\n", 200}, /* the handler's to judge */
        {"BREW / HTTP/1.1\r\n\r\n", 405},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {"GET / HTTP/1.1\r\nX : a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na", 400},
        {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", 400},
        {"POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na", 400},
        {"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         400},
    };
    struct served *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct raw raw;
        char want[32];
        served_ask(f, &raw, cases[i].request);
        snprintf(want, sizeof want, "HTTP/1.1 %d ", cases[i].status);
        if (strncmp(ml_buf_cstr(&raw.got), want, strlen(want)) != 0)
            fail_msg("%s: %s", cases[i].request, ml_buf_cstr(&raw.got));
        assert_false(raw.reset);
        raw_close(&raw);
    }
    assert_int_equal(f->requests, 1);
}

/* Wherever it stands, and whatever comes with it; in a body it is a byte like others. */
static void test_http_server_refuses_a_nul_in_a_head(void **state)
{
    static const char get[] = "GET /a HTTP/1.1\r\nAuthorization: Bearer t\r\n\r\n";
    static const char post[] = "POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n";
    struct served *f = *state;
    struct raw raw;
    for (size_t at = 0; at < sizeof get - 3; at++) {
        char bytes[2 * sizeof get];
        memcpy(bytes, get, at);
        bytes[at] = '\0';
        memcpy(bytes + at + 1, get + at, sizeof get - at);
        served_connect(f, &raw);
        raw_send_large(&raw, bytes, sizeof get);
        raw_wait(&raw, NULL);
        assert_true(strncmp(ml_buf_cstr(&raw.got), "HTTP/1.1 400 ", 13) == 0);
        raw_close(&raw);
    }
    assert_int_equal(f->requests, 0);
    static const char ahead[] = "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nX: a\0b\r\n\r\n";
    served_connect(f, &raw);
    raw_send_large(&raw, ahead, sizeof ahead - 1);
    raw_wait(&raw, NULL);
    assert_has(ml_buf_cstr(&raw.got), "HTTP/1.1 400 ");
    assert_int_equal(f->requests, 1);
    raw_close(&raw);
    f->requests = 0;
    served_connect(f, &raw);
    raw_send(&raw, post);
    raw_send_large(&raw, "\0\n", 2);
    raw_send(&raw, "GET /b HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "hello");
    while (f->requests < 2)
        net_settle(&f->net, 5);
    raw_send_large(&raw, "GET /\0 HTTP/1.1\r\n\r\n", 20);
    raw_wait(&raw, NULL);
    assert_int_equal(f->requests, 2);
    raw_close(&raw);
}

static void test_http_server_bounds_the_head(void **state)
{
    enum { LINE = 1000, LINES = 100 };
    struct served *f = *state;
    struct raw raw;
    char line[LINE + 1];
    snprintf(line, sizeof line, "X: %0*d\r\n", LINE - 5, 0);
    served_connect(f, &raw);
    raw_send(&raw, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < LINES && !raw.closed; i++)
        raw_send_large(&raw, line, LINE);
    raw_wait(&raw, NULL);
    assert_int_equal(f->requests, 0);
    raw_close(&raw);
}

static void test_http_server_cuts_a_request_that_takes_too_long(void **state)
{
    static const char *const begun[] = {
        "",
        "G",
        "GET / HTTP/1.1\r\nHost: x\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    };
    struct served *f = *state;
    for (size_t i = 0; i < ML_COUNT(begun); i++) {
        struct raw raw;
        served_ask(f, &raw, begun[i]);
        assert_int_equal(f->requests, 0);
        raw_close(&raw);
    }
    assert_int_equal(ml_http_server_connections(f->server), 0);
}

/* One byte at a time never lets a timer of inactivity fire. */
static void test_http_server_cuts_a_request_that_trickles_in(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "GET / HTTP/1.1\r\nX: ");
    int sent = 0;
    for (; sent < 1000 && !raw.closed; sent++) {
        raw_send_some(&raw, "x", 1);
        net_settle(&f->net, 5);
    }
    assert_true(raw.closed);
    assert_int_equal(f->requests, 0);
    raw_close(&raw);
}

static void test_http_server_closes_connections_that_nobody_uses(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    int64_t begun_ns = ml_clock_monotonic(ml_clock_real());
    raw_send(&raw, "GET /a HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "hello");
    raw_wait(&raw, NULL);
    int64_t took_ms = (ml_clock_monotonic(ml_clock_real()) - begun_ns) / ML_NS_PER_MS;
    assert_true(took_ms > (ARRIVAL_MS + IDLE_MS) / 2); /* it was idle, not slow */
    assert_false(raw.reset);
    raw_close(&raw);
}

static void test_http_server_keeps_requests_under_way_however_long(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "GET /hold HTTP/1.1\r\n\r\n");
    net_run(&f->net);
    net_settle(&f->net, ARRIVAL_MS + IDLE_MS);
    assert_int_equal(f->closes, 0);
    served_release(f, 0);
    raw_wait(&raw, "released");
    raw_close(&raw);
}

static void test_http_server_cuts_who_takes_nothing_of_an_ended_answer(void **state)
{
    struct served *f = *state;
    struct raw raw;
    served_connect(f, &raw);
    raw_send(&raw, "GET /big/8192 HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "yyyy");
    raw_stop_reading(&raw);
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
    raw_close(&raw);
}

static void test_http_server_makes_room_for_new_connections(void **state)
{
    struct served *f = *state;
    struct raw raws[5];
    for (size_t i = 0; i < ML_COUNT(raws); i++) {
        served_connect(f, &raws[i]);
        net_settle(&f->net, 10);
    }
    net_until(&f->net, raws[0].closed && raws[1].closed); /* they have waited longest */
    assert_int_equal(ml_http_server_connections(f->server), 3);
    raw_send(&raws[4], "GET /a HTTP/1.1\r\n\r\n");
    raw_wait(&raws[4], "hello");
    for (size_t i = 0; i < ML_COUNT(raws); i++)
        raw_close(&raws[i]);
}

static void test_http_server_keeps_busy_connections_before_new_ones(void **state)
{
    struct served *f = *state;
    struct raw raws[3], late;
    for (size_t i = 0; i < ML_COUNT(raws); i++) {
        served_connect(f, &raws[i]);
        raw_send(&raws[i], "GET /hold HTTP/1.1\r\n\r\n");
        net_run(&f->net);
    }
    served_connect(f, &late);
    raw_wait(&late, NULL);
    for (size_t i = 0; i < ML_COUNT(raws); i++) {
        served_release(f, i);
        raw_wait(&raws[i], "released");
        raw_close(&raws[i]);
    }
    raw_close(&late);
}

static void test_http_server_tells_who_speaks_plain_http_to_tls(void **state)
{
    struct served *f = *state;
    struct raw raw;
    raw_connect(&raw, &f->net, ml_http_server_port(f->server));
    raw_send(&raw, "GET / HTTP/1.1\r\n\r\n");
    raw_wait(&raw, NULL);
    assert_has(ml_buf_cstr(&raw.got), "HTTP/1.0 400 Bad Request\r\n\r\n"
                                      "Client sent an HTTP request to an HTTPS server.\n");
    raw_close(&raw);
}

static void test_http_server_cuts_a_handshake_that_does_not_come(void **state)
{
    static const char *const begun[] = {"", "\x16\x03\x01\x02", "\x01\x02\x03\x04\x05\x06\x07"};
    struct served *f = *state;
    for (size_t i = 0; i < ML_COUNT(begun); i++) {
        struct raw raw;
        raw_connect(&raw, &f->net, ml_http_server_port(f->server));
        raw_send(&raw, begun[i]);
        raw_wait(&raw, NULL);
        raw_close(&raw);
    }
    assert_int_equal(ml_http_server_connections(f->server), 0);
}

#define SERVER(test, setup) cmocka_unit_test_setup_teardown(test, setup, served_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER(test_http_server_refuses_a_nul_in_the_head, served_setup_plain),
        SERVER(test_http_server_refuses_a_nul_in_the_head, served_setup_tls),
        SERVER(test_http_server_refuses_what_is_not_http, served_setup_plain),
        SERVER(test_http_server_refuses_what_is_not_http, served_setup_tls),
        SERVER(test_http_server_refuses_a_nul_in_a_head, served_setup_plain),
        SERVER(test_http_server_refuses_a_nul_in_a_head, served_setup_tls),
        SERVER(test_http_server_bounds_the_head, served_setup_plain),
        SERVER(test_http_server_cuts_a_request_that_takes_too_long, setup_impatient),
        SERVER(test_http_server_cuts_a_request_that_takes_too_long, setup_impatient_tls),
        SERVER(test_http_server_cuts_a_request_that_trickles_in, setup_impatient),
        SERVER(test_http_server_closes_connections_that_nobody_uses, setup_impatient),
        SERVER(test_http_server_closes_connections_that_nobody_uses, setup_impatient_tls),
        SERVER(test_http_server_keeps_requests_under_way_however_long, setup_impatient),
        SERVER(test_http_server_cuts_who_takes_nothing_of_an_ended_answer, setup_impatient),
        SERVER(test_http_server_cuts_who_takes_nothing_of_an_ended_answer, setup_impatient_tls),
        SERVER(test_http_server_makes_room_for_new_connections, setup_narrow),
        SERVER(test_http_server_makes_room_for_new_connections, setup_few_descriptors),
        SERVER(test_http_server_keeps_busy_connections_before_new_ones, setup_narrow),
        SERVER(test_http_server_tells_who_speaks_plain_http_to_tls, served_setup_tls),
        SERVER(test_http_server_cuts_a_handshake_that_does_not_come, setup_impatient_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
