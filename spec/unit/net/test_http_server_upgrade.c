/* Upgraded connections: raw bytes in both directions; each test runs plain and over TLS. */
#include "net_served.h"

#define ASK    "GET /upgrade HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
#define ANSWER "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
#define MIB    ((size_t)1024 * 1024)

/* The bytes that the last upgraded exchange has received, and its handler's action on them. */
static struct {
    struct served *f;
    struct ml_buf got;
    size_t stop_at; /* the loop stops when so much has come */
    enum { KEEP, ECHO, PAUSE_AT_ONCE, FINISH, ABORT } act;
} peer;

static struct ml_http_exchange *exchange(void)
{
    return peer.f->held[peer.f->held_count - 1];
}

static void on_peer_bytes(void *context, struct ml_str bytes)
{
    struct served *f = context;
    assert_true(bytes.len > 0);
    ml_buf_append_str(&peer.got, bytes);
    if (peer.act == ECHO)
        ml_http_write(exchange(), bytes);
    else if (peer.act == PAUSE_AT_ONCE)
        ml_http_pause(exchange(), true);
    else if (peer.act == FINISH || peer.act == ABORT)
        (peer.act == FINISH ? ml_http_finish : ml_http_abort)(f->held[--f->held_count]);
    if (peer.stop_at && peer.got.len >= peer.stop_at)
        ml_loop_stop(f->net.loop);
}

static void upgrade(struct served *f, struct ml_http_exchange *one)
{
    static const struct ml_http_header headers[] = {
        {"Connection", "Upgrade"}, {"X-Bad", "a\r\nb"}, {"Upgrade", "echo"}};
    one->received = on_peer_bytes;
    if (!ml_http_upgrade(one, headers, ML_COUNT(headers))) {
        served_say(one, 400, ML_STR("no upgrade"));
        return;
    }
    served_hold(f, one);
}

static int setup(void **state, bool over_tls, struct ml_http_limits limits)
{
    served_setup(state);
    peer.f = *state;
    peer.f->upgrade = upgrade;
    peer.act = KEEP;
    peer.stop_at = 0;
    served_open(peer.f, over_tls, &limits);
    return 0;
}

static int setup_plain(void **state)
{
    return setup(state, false, (struct ml_http_limits){0});
}

static int setup_tls(void **state)
{
    return setup(state, true, (struct ml_http_limits){0});
}

static int setup_impatient(void **state)
{
    return setup(state, false, (struct ml_http_limits){.arrival_ms = 250, .idle_ms = 300});
}

static int setup_impatient_tls(void **state)
{
    return setup(state, true, (struct ml_http_limits){.arrival_ms = 250, .idle_ms = 300});
}

static int setup_narrow(void **state)
{
    return setup(state, false, (struct ml_http_limits){.unsent_bytes_max = 24 * MIB});
}

static int setup_two(void **state)
{
    return setup(state, false, (struct ml_http_limits){.connections_max = 2});
}

static int teardown(void **state)
{
    ml_buf_fini(&peer.got);
    peer.got = (struct ml_buf)ML_BUF_INIT;
    return served_teardown(state);
}

/* An upgraded connection. */
static void raw_upgrade(struct served *f, struct raw *raw)
{
    served_connect(f, raw);
    raw_send(raw, ASK);
    raw_wait(raw, "\r\n\r\n");
    assert_string_equal(ml_buf_cstr(&raw->got), ANSWER);
    ml_buf_clear(&raw->got);
}

/* Bytes that do not repeat themselves soon. The caller frees them. */
static char *make_bytes(size_t len)
{
    char *bytes = ml_alloc(len);
    uint32_t seed = 7;
    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (char)(seed >> 24 | 1); /* no NUL */
    }
    return bytes;
}

static void wait_received(size_t len)
{
    peer.stop_at = len;
    while (peer.got.len < len)
        net_run(&peer.f->net);
}

static void wait_got(struct raw *raw, size_t len)
{
    net_until(raw->net, raw->got.len >= len || raw->closed);
    assert_int_equal(raw->got.len, len);
}

static void test_http_upgrade_hands_over_what_came_behind_the_head(void **state)
{
    struct served *f = *state;
    struct raw raw;
    peer.act = ECHO;
    served_connect(f, &raw);
    raw_send(&raw, ASK "ahead\r\n\r\n");
    raw_wait(&raw, "ahead");
    raw_send(&raw, "GET / HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "GET / HTTP/1.1\r\n\r\n");
    assert_string_equal(ml_buf_cstr(&raw.got), ANSWER "ahead\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    assert_int_equal(f->requests, 1);
    raw_close(&raw);
}

static void test_http_upgrade_comes_after_an_ordinary_request_and_with_a_body(void **state)
{
    struct served *f = *state;
    struct raw raw;
    peer.act = ECHO;
    served_connect(f, &raw);
    raw_send(&raw, "GET /a HTTP/1.1\r\n\r\n");
    raw_wait(&raw, "hello");
    ml_buf_clear(&raw.got);
    raw_send(&raw, "POST /upgrade HTTP/1.1\r\nConnection: Upgrade\r\nContent-Length: 4\r\n\r\nbody"
                   "ahead");
    raw_wait(&raw, "ahead");
    assert_string_equal(ml_buf_cstr(&raw.got), ANSWER "ahead");
    assert_string_equal(f->seen, "POST /upgrade? 4");
    raw_close(&raw);
}

static void test_http_upgrade_is_not_for_http_1_0_or_head(void **state)
{
    static const char *const requests[] = {"GET /upgrade HTTP/1.0\r\nConnection: Upgrade\r\n\r\n",
                                           "HEAD /upgrade HTTP/1.1\r\nConnection: close\r\n\r\n"};
    struct served *f = *state;
    for (size_t i = 0; i < ML_COUNT(requests); i++) {
        struct raw raw;
        served_ask(f, &raw, requests[i]);
        assert_has(ml_buf_cstr(&raw.got), " 400 ");
        raw_close(&raw);
    }
}

static void test_http_upgrade_carries_much_in_both_directions(void **state)
{
    const size_t len = 4 * MIB;
    struct served *f = *state;
    struct raw raw;
    char *bytes = make_bytes(len);
    peer.act = ECHO;
    raw_upgrade(f, &raw);
    raw_send_large(&raw, bytes, len);
    wait_got(&raw, len);
    assert_memory_equal(raw.got.ptr, bytes, len);
    raw_close(&raw);
    free(bytes);
}

/* How much a client gets rid of while nobody receives it. */
static size_t send_till_stuck(struct raw *raw, const char *bytes, size_t len)
{
    size_t sent = 0;
    for (int stuck = 0; stuck < 20 && sent < len;) {
        size_t now = raw_send_some(raw, bytes + sent, ML_MIN(len - sent, (size_t)16 * 1024));
        sent += now;
        stuck = now ? 0 : stuck + 1;
        if (!now)
            net_settle(raw->net, 2);
    }
    return sent;
}

static void test_http_upgrade_makes_the_client_wait(void **state)
{
    const size_t len = 16 * MIB;
    struct served *f = *state;
    struct raw raw;
    char *bytes = make_bytes(len);
    raw_upgrade(f, &raw);
    ml_http_pause(exchange(), true);
    size_t sent = send_till_stuck(&raw, bytes, len);
    assert_true(sent > 0 && sent < len); /* the rest does not fit into the kernel's buffers */
    assert_int_equal(peer.got.len, 0);
    ml_http_pause(exchange(), false);
    raw_send_large(&raw, bytes + sent, len - sent);
    wait_received(len);
    assert_memory_equal(peer.got.ptr, bytes, len);
    raw_close(&raw);
    free(bytes);
}

static void test_http_upgrade_pauses_in_the_middle_of_what_came(void **state)
{
    const size_t len = 256 * 1024;
    struct served *f = *state;
    struct raw raw;
    char *bytes = make_bytes(len);
    peer.act = PAUSE_AT_ONCE;
    raw_upgrade(f, &raw);
    raw_send_large(&raw, bytes, len);
    for (size_t before = 0; before < len; before = peer.got.len) {
        net_until(&f->net, peer.got.len > before);
        net_settle(&f->net, 3);
        size_t once = peer.got.len - before;
        assert_in_range(once, 1, 16 * 1024); /* one call */
        ml_http_pause(exchange(), false);
    }
    assert_memory_equal(peer.got.ptr, bytes, len);
    raw_close(&raw);
    free(bytes);
}

static void test_http_upgrade_tells_when_the_client_goes(void **state)
{
    struct served *f = *state;
    for (int half = 0; half < 2; half++) {
        struct raw raw;
        raw_upgrade(f, &raw);
        raw_send(&raw, "last");
        if (half)
            shutdown(raw.fd, SHUT_WR);
        else
            raw_close(&raw);
        while (f->closes == half)
            net_run(&f->net);
        assert_int_equal(f->closes, half + 1);
        if (half)
            raw_close(&raw);
    }
    assert_string_equal(ml_buf_cstr(&peer.got), "lastlast");
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
}

static void test_http_upgrade_tells_after_a_pause_that_the_client_went(void **state)
{
    struct served *f = *state;
    struct raw raw;
    raw_upgrade(f, &raw);
    ml_http_pause(exchange(), true);
    raw_send(&raw, "last");
    raw_close(&raw);
    net_settle(&f->net, 20);
    assert_int_equal(f->closes, 0);
    ml_http_pause(exchange(), false);
    while (!f->closes)
        net_run(&f->net);
    assert_string_equal(ml_buf_cstr(&peer.got), "last");
}

static void test_http_upgrade_sends_all_before_it_finishes(void **state)
{
    const size_t len = 8 * MIB;
    struct served *f = *state;
    struct raw raw;
    char *bytes = make_bytes(len);
    raw_upgrade(f, &raw);
    raw_stop_reading(&raw);
    assert_true(ml_http_write(exchange(), (struct ml_str){bytes, len}) > 0);
    ml_http_finish(f->held[--f->held_count]);
    raw_send_large(&raw, bytes, 64 * 1024); /* which nobody wants any more */
    net_settle(&f->net, 20);
    raw.watch = ml_loop_watch_fd(f->net.loop, raw.fd, raw_readable, &raw);
    raw_wait(&raw, NULL);
    assert_false(raw.reset);
    assert_int_equal(raw.got.len, len);
    assert_memory_equal(raw.got.ptr, bytes, len);
    assert_int_equal(peer.got.len, 0);
    assert_int_equal(f->closes, 0);
    raw_close(&raw);
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
    free(bytes);
}

static void test_http_upgrade_ends_within_received(void **state)
{
    struct served *f = *state;
    for (int i = 0; i < 2; i++) {
        struct raw raw;
        peer.act = i ? FINISH : ABORT;
        ml_buf_clear(&peer.got);
        raw_upgrade(f, &raw);
        char *bytes = make_bytes(128 * 1024);
        raw_send_large(&raw, bytes, 128 * 1024);
        raw_wait(&raw, NULL);
        assert_in_range(peer.got.len, 1, 16 * 1024); /* nothing came after the end */
        assert_int_equal(f->held_count, 0);
        assert_int_equal(f->closes, 0);
        raw_close(&raw);
        free(bytes);
    }
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
}

static void test_http_server_free_tells_upgraded_ones(void **state)
{
    struct served *f = *state;
    struct raw raws[2];
    raw_upgrade(f, &raws[0]);
    raw_upgrade(f, &raws[1]);
    raw_send(&raws[1], "x");
    wait_received(1);
    ml_http_pause(f->held[0], true);
    ml_http_server_free(ml_take(&f->server));
    assert_int_equal(f->closes, 2);
    for (int i = 0; i < 2; i++) {
        raw_wait(&raws[i], NULL);
        raw_close(&raws[i]);
    }
}

/* Neither limit in time is one of an upgraded connection, but that for its end is. */
static void test_http_upgrade_may_be_silent(void **state)
{
    struct served *f = *state;
    struct raw raw;
    raw_upgrade(f, &raw);
    net_settle(&f->net, 900);
    assert_int_equal(f->closes, 0);
    raw_send(&raw, "late");
    wait_received(4);
    char *bytes = make_bytes(8 * MIB);
    raw_stop_reading(&raw);
    ml_http_write(exchange(), (struct ml_str){bytes, 8 * MIB});
    ml_http_finish(f->held[--f->held_count]);
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
    assert_int_equal(ml_http_server_unsent(f->server), 0);
    raw_close(&raw);
    free(bytes);
}

static void test_http_upgrade_is_cut_when_too_much_waits(void **state)
{
    struct served *f = *state;
    struct raw raws[2];
    char *bytes = make_bytes(16 * MIB);
    for (int i = 0; i < 2; i++) {
        raw_upgrade(f, &raws[i]);
        raw_stop_reading(&raws[i]);
    }
    struct ml_http_exchange *first = f->held[0], *second = f->held[1];
    assert_in_range(ml_http_write(first, (struct ml_str){bytes, 16 * MIB}), 1, 16 * MIB + 1000);
    assert_in_range(ml_http_write(second, (struct ml_str){bytes, 16 * MIB}), 1, 16 * MIB + 1000);
    assert_int_equal(ml_http_write(first, ML_STR("x")), SIZE_MAX / 2);
    while (!f->closes)
        net_run(&f->net);
    assert_int_equal(f->closes, 1);
    assert_true(ml_http_server_unsent(f->server) <= 24 * MIB);
    raw_close(&raws[0]);
    raw_close(&raws[1]);
    free(bytes);
}

static void test_http_upgrade_counts_among_the_connections(void **state)
{
    struct served *f = *state;
    struct raw raws[3];
    raw_upgrade(f, &raws[0]);
    raw_upgrade(f, &raws[1]);
    assert_int_equal(ml_http_server_connections(f->server), 2);
    raw_connect(&raws[2], &f->net, ml_http_server_port(f->server));
    raw_send_some(&raws[2], ASK, strlen(ASK));
    net_settle(&f->net, 50);
    assert_int_equal(f->requests, 2);
    for (int i = 0; i < 3; i++)
        raw_close(&raws[i]);
}

#define BOTH(test)                                                                                 \
    {#test " (plain)", test, setup_plain, teardown, NULL},                                         \
    {                                                                                              \
#test " (TLS)", test, setup_tls, teardown, NULL                                            \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_http_upgrade_hands_over_what_came_behind_the_head),
        BOTH(test_http_upgrade_comes_after_an_ordinary_request_and_with_a_body),
        BOTH(test_http_upgrade_is_not_for_http_1_0_or_head),
        BOTH(test_http_upgrade_carries_much_in_both_directions),
        BOTH(test_http_upgrade_makes_the_client_wait),
        BOTH(test_http_upgrade_pauses_in_the_middle_of_what_came),
        BOTH(test_http_upgrade_tells_when_the_client_goes),
        BOTH(test_http_upgrade_tells_after_a_pause_that_the_client_went),
        BOTH(test_http_upgrade_sends_all_before_it_finishes),
        BOTH(test_http_upgrade_ends_within_received),
        BOTH(test_http_server_free_tells_upgraded_ones),
        {"test_http_upgrade_may_be_silent (plain)", test_http_upgrade_may_be_silent,
         setup_impatient, teardown, NULL},
        {"test_http_upgrade_may_be_silent (TLS)", test_http_upgrade_may_be_silent,
         setup_impatient_tls, teardown, NULL},
        cmocka_unit_test_setup_teardown(test_http_upgrade_is_cut_when_too_much_waits, setup_narrow,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_http_upgrade_counts_among_the_connections, setup_two,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
