#include "unit.h"

#include "kube/server_clock.h"

#include <sys/mman.h>
#include <unistd.h>

#define BEGIN INT64_C(1700000000)
#define MS    ML_NS_PER_MS
#define S     ML_NS_PER_S

struct fixture {
    struct ml_clock_fake clock;
    struct ml_log log;
    struct ml_metrics *metrics;
    struct ml_server_clock server;
    int fd;
};

static void open_fixture(struct fixture *f, int64_t ahead_ns)
{
    ml_clock_fake_init(&f->clock, BEGIN * S + ahead_ns);
    f->fd = memfd_create("log", 0);
    ml_log_init(&f->log, &f->clock.clock, f->fd, ML_LOG_TEXT, ML_LOG_DEBUG);
    f->metrics = ml_metrics_new();
    ml_server_clock_init(&f->server, &f->clock.clock, &f->log, f->metrics);
}

/* The lines logged so far. */
static int close_fixture(struct fixture *f)
{
    char text[4096] = "";
    int lines = 0;
    assert_true(pread(f->fd, text, sizeof text - 1, 0) >= 0);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    close(f->fd);
    ml_metrics_free(f->metrics);
    return lines;
}

/* A request that takes 2 * `half_ns`; in its middle the server's clock stands at `server_ns`. */
static void ask(struct fixture *f, int64_t half_ns, int64_t server_ns)
{
    ml_clock_fake_advance(&f->clock, 2 * half_ns);
    ml_server_clock_note(&f->server, 2 * half_ns, server_ns / S);
}

static double gauge(struct fixture *f)
{
    return ml_metric_value(f->server.metric);
}

/* With answers made at any fraction of a second, that take any time. */
static void test_server_clock_that_agrees_raises_no_alarm(void **state)
{
    (void)state;
    static const int64_t skews_ns[] = {0, 500 * MS, -500 * MS, 1900 * MS, -1900 * MS};
    for (size_t i = 0; i < ML_COUNT(skews_ns); i++) {
        struct fixture f;
        open_fixture(&f, skews_ns[i]);
        for (int64_t half_ns = 0; half_ns < 20 * S; half_ns = half_ns * 2 + 37 * MS) {
            int64_t own_ns = ml_clock_wall(&f.clock.clock);
            ask(&f, half_ns, own_ns + half_ns - skews_ns[i]);
            assert_false(f.server.skewed);
            assert_int_equal(ml_server_clock_wall(&f.server), ml_clock_wall(&f.clock.clock));
            ml_clock_fake_advance(&f.clock, 311 * MS);
        }
        assert_int_equal(close_fixture(&f), 0);
    }
}

static void test_server_clock_that_differs_is_told_once_and_when_it_is_over(void **state)
{
    (void)state;
    static const int64_t skews_ns[] = {3100 * MS, -3100 * MS, 3600 * S, -3600 * S, -90000 * S};
    for (size_t i = 0; i < ML_COUNT(skews_ns); i++) {
        struct fixture f;
        ML_AUTO(ml_buf_fini) struct ml_buf note = ML_BUF_INIT;
        open_fixture(&f, skews_ns[i]);
        for (int n = 0; n < 20; n++) {
            ask(&f, 5 * MS, ml_clock_wall(&f.clock.clock) + 5 * MS - skews_ns[i]);
            assert_true(f.server.skewed);
            assert_true((gauge(&f) < 0) == (skews_ns[i] < 0));
            int64_t wrong_ns = ml_server_clock_wall(&f.server) -
                               (ml_clock_wall(&f.clock.clock) - skews_ns[i]);
            assert_in_range(wrong_ns + 1100 * MS, 0, 2200 * MS);
            ml_clock_fake_advance(&f.clock, 311 * MS);
        }
        ml_server_clock_describe(&f.server, &note);
        assert_non_null(strstr(ml_buf_cstr(&note), skews_ns[i] < 0 ? "behind" : "ahead of"));
        f.clock.wall_ns -= skews_ns[i]; /* somebody puts it right */
        ask(&f, 5 * MS, ml_clock_wall(&f.clock.clock) + 5 * MS);
        assert_false(f.server.skewed);
        assert_true(gauge(&f) == 0);
        ml_buf_clear(&note);
        ml_server_clock_describe(&f.server, &note);
        assert_int_equal(note.len, 0);
        assert_int_equal(close_fixture(&f), 2);
    }
}

/* A server whose time(2) is still in the second before, while ours has begun the next one. */
static void test_server_clock_of_a_server_that_ticks_agrees(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0);
    ml_clock_fake_advance(&f.clock, 2 * MS);
    ask(&f, 2 * MS, BEGIN * S - 1);
    assert_true(gauge(&f) == 0);
    assert_int_equal(close_fixture(&f), 0);
}

/* Near the limit an answer may say neither: what was told last stays. */
static void test_server_clock_near_the_limit_is_not_told_again_and_again(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 2500 * MS);
    for (int n = 0; n < 100; n++) {
        ask(&f, 5 * MS, ml_clock_wall(&f.clock.clock) + 5 * MS - 2500 * MS);
        ml_clock_fake_advance(&f.clock, 311 * MS);
    }
    assert_true(f.server.skewed);
    assert_int_equal(close_fixture(&f), 1);
}

/* The clock was wrong, and is put right while a request is under way. */
static void test_server_clock_set_during_a_request_raises_no_alarm(void **state)
{
    (void)state;
    static const int64_t jumps_ns[] = {3600 * S, -3600 * S};
    for (size_t i = 0; i < ML_COUNT(jumps_ns); i++) {
        struct fixture f;
        open_fixture(&f, -jumps_ns[i]);
        ml_clock_fake_advance(&f.clock, 10 * MS);
        f.clock.wall_ns += jumps_ns[i];
        ml_clock_fake_advance(&f.clock, 10 * MS);
        ml_server_clock_note(&f.server, 20 * MS, BEGIN);
        assert_false(f.server.skewed);
        assert_int_equal(close_fixture(&f), 0);
    }
}

static void test_server_clock_without_a_date_says_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0);
    static const int64_t dates[] = {0, -1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < ML_COUNT(dates); i++)
        ml_server_clock_note(&f.server, 0, dates[i]);
    assert_false(f.server.skewed);
    assert_int_equal(close_fixture(&f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_server_clock_that_agrees_raises_no_alarm),
        cmocka_unit_test(test_server_clock_that_differs_is_told_once_and_when_it_is_over),
        cmocka_unit_test(test_server_clock_of_a_server_that_ticks_agrees),
        cmocka_unit_test(test_server_clock_near_the_limit_is_not_told_again_and_again),
        cmocka_unit_test(test_server_clock_set_during_a_request_raises_no_alarm),
        cmocka_unit_test(test_server_clock_without_a_date_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
