/* The server's memory for clients that do not read, or never end their requests. */
#include "net_served.h"

#define STREAMS 6
#define BLOCK   ((size_t)64 * 1024)
#define LIMIT   ((size_t)1024 * 1024)

static int setup_bounded(void **state)
{
    served_setup(state);
    served_open(*state, false,
                &(struct ml_http_limits){.unsent_bytes_max = LIMIT, .arrived_bytes_max = LIMIT});
    return 0;
}

static int setup_bounded_tls(void **state)
{
    served_setup(state);
    served_open(*state, true,
                &(struct ml_http_limits){.unsent_bytes_max = LIMIT, .arrived_bytes_max = LIMIT});
    return 0;
}

/* A stream whose client has read its beginning and reads no more. */
static void open_stream(struct served *f, struct raw *raw)
{
    served_connect(f, raw);
    raw_send(raw, "GET /stream HTTP/1.1\r\n\r\n");
    raw_wait(raw, "begun");
    raw_stop_reading(raw);
}

/* A block that no other is like. */
static struct ml_str block_of(char *bytes, size_t number)
{
    memset(bytes, 'b', BLOCK);
    snprintf(bytes, BLOCK, "%zu", number);
    return (struct ml_str){bytes, BLOCK};
}

static void test_http_server_keeps_once_what_many_do_not_read(void **state)
{
    struct served *f = *state;
    struct raw raws[STREAMS];
    char *bytes = ml_alloc(BLOCK);
    size_t waiting = 0;
    for (size_t i = 0; i < STREAMS; i++)
        open_stream(f, &raws[i]);
    for (size_t number = 0; number < 200; number++) {
        for (size_t i = 0; i < STREAMS; i++)
            waiting = ml_http_write(f->held[i], block_of(bytes, number));
        net_settle(&f->net, 1);
    }
    assert_true(waiting > 20 * BLOCK); /* the system has not taken all of it */
    assert_true(ml_http_server_unsent(f->server) < 210 * (BLOCK + 1024));
    assert_int_equal(f->closes, 0);
    for (size_t i = 0; i < STREAMS; i++)
        raw_close(&raws[i]);
    net_until(&f->net, ml_http_server_connections(f->server) == 0);
    /* libevent frees buffers a little later; the latest block is kept, for who comes next */
    net_until(&f->net, ml_http_server_unsent(f->server) < 2 * BLOCK);
    free(bytes);
}

/* Writes to a stream until so much waits in this process. */
static void fill(struct served *f, struct ml_http_exchange *exchange, size_t most)
{
    char *bytes = ml_alloc(BLOCK);
    for (size_t number = 0; ml_http_server_unsent(f->server) < most; number++) {
        ml_http_write(exchange, block_of(bytes, number));
        net_settle(&f->net, 1);
    }
    free(bytes);
}

static void test_http_server_cuts_who_has_read_nothing_for_longest(void **state)
{
    struct served *f = *state;
    struct raw first, second;
    open_stream(f, &first);
    fill(f, f->held[0], LIMIT / 2);
    open_stream(f, &second);
    struct ml_http_exchange *other = f->held[1];
    char *bytes = ml_alloc(BLOCK);
    size_t waiting = 0;
    for (size_t number = 0; f->closes == 0; number++) {
        waiting = ml_http_write(other, block_of(bytes, number));
        assert_true(ml_http_server_unsent(f->server) <= LIMIT + 2 * BLOCK);
        net_settle(&f->net, 1);
    }
    assert_true(waiting < SIZE_MAX / 2);
    assert_int_equal(ml_http_server_connections(f->server), 1);
    ml_http_finish(other); /* it is there */
    raw_close(&first);
    raw_close(&second);
    free(bytes);
}

static void test_http_server_says_that_a_stream_is_cut(void **state)
{
    struct served *f = *state;
    struct raw first, second;
    open_stream(f, &first);
    open_stream(f, &second);
    fill(f, f->held[0], LIMIT / 2);
    char *bytes = ml_alloc(2 * LIMIT);
    memset(bytes, 'c', 2 * LIMIT);
    ml_http_write(f->held[1], (struct ml_str){bytes, 2 * LIMIT});
    /* Before the loop turns: the handler may go on as if nothing had happened. */
    assert_true(ml_http_write(f->held[0], ML_STR("more")) == SIZE_MAX / 2);
    ml_http_finish(f->held[0]);
    net_until(&f->net, ml_http_server_connections(f->server) == 1);
    net_settle(&f->net, 10);
    assert_int_equal(ml_http_server_connections(f->server), 1);
    assert_int_equal(f->closes, 0); /* it has ended the answer itself */
    raw_close(&first);
    raw_close(&second);
    free(bytes);
}

/* Answers that are whole are bounded with the streams. */
static void test_http_server_bounds_answers_that_nobody_reads(void **state)
{
    struct served *f = *state;
    struct raw raws[STREAMS];
    for (size_t i = 0; i < STREAMS; i++) {
        served_connect(f, &raws[i]);
        raw_send(&raws[i], "GET /big/8192 HTTP/1.1\r\n\r\n");
        raw_wait(&raws[i], "yyyy");
        raw_stop_reading(&raws[i]);
    }
    net_until(&f->net, ml_http_server_connections(f->server) <= 2);
    for (size_t i = 0; i < STREAMS; i++)
        raw_close(&raws[i]);
}

static void test_http_server_bounds_requests_that_do_not_end(void **state)
{
    struct served *f = *state;
    struct raw raws[4];
    char *bytes = ml_alloc(LIMIT / 2);
    memset(bytes, 'd', LIMIT / 2);
    for (size_t i = 0; i < ML_COUNT(raws); i++) {
        char head[64];
        served_connect(f, &raws[i]);
        snprintf(head, sizeof head, "POST /a HTTP/1.1\r\nContent-Length: %zu\r\n\r\n",
                 LIMIT / 2 + 5);
        raw_send(&raws[i], head);
        raw_send_large(&raws[i], bytes, LIMIT / 2);
        if (i > 0)
            raw_wait(&raws[i - 1], NULL); /* it had to make room */
        /* The server reads all of it before the next one comes: that takes rounds of the loop, and
         * no time. */
        for (int round = 0; round < 50; round++)
            net_settle(&f->net, 1);
    }
    assert_true(ml_http_server_connections(f->server) <= 2);
    assert_true(raws[0].closed && raws[1].closed);
    raw_send(&raws[3], "hello");
    raw_wait(&raws[3], "hello");
    assert_int_equal(f->requests, 1);
    for (size_t i = 0; i < ML_COUNT(raws); i++)
        raw_close(&raws[i]);
    free(bytes);
}

#define SERVER(test, setup) cmocka_unit_test_setup_teardown(test, setup, served_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SERVER(test_http_server_keeps_once_what_many_do_not_read, served_setup_plain),
        SERVER(test_http_server_keeps_once_what_many_do_not_read, served_setup_tls),
        SERVER(test_http_server_cuts_who_has_read_nothing_for_longest, setup_bounded),
        SERVER(test_http_server_cuts_who_has_read_nothing_for_longest, setup_bounded_tls),
        SERVER(test_http_server_says_that_a_stream_is_cut, setup_bounded),
        SERVER(test_http_server_says_that_a_stream_is_cut, setup_bounded_tls),
        SERVER(test_http_server_bounds_answers_that_nobody_reads, setup_bounded),
        SERVER(test_http_server_bounds_answers_that_nobody_reads, setup_bounded_tls),
        SERVER(test_http_server_bounds_requests_that_do_not_end, setup_bounded),
        SERVER(test_http_server_bounds_requests_that_do_not_end, setup_bounded_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
