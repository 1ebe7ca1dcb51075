#include "unit.h"

#include "state/reflector_fsm.h"

#include <stdio.h>

enum step_name { LIST_ANY, LIST_ANY_WHOLE, LIST_LAST, WATCH, STREAM_ANY, STREAM_LAST };

static const struct reflector_step steps[] = {
    [LIST_ANY] = {.any_version = true, .paged = true},
    [LIST_ANY_WHOLE] = {.any_version = true},
    [LIST_LAST] = {.any_version = false},
    [WATCH] = {.watch = true},
    [STREAM_ANY] = {.stream = true, .any_version = true},
    [STREAM_LAST] = {.stream = true},
};

static void assert_step(const struct reflector_step *got, enum step_name want, bool wait)
{
    assert_int_equal(got->watch, steps[want].watch);
    assert_int_equal(got->stream, steps[want].stream);
    assert_int_equal(got->any_version, steps[want].any_version);
    assert_int_equal(got->paged, steps[want].paged);
    assert_int_equal(got->wait, wait);
}

static void test_reflector_fsm_decides_row_by_row(void **state)
{
    (void)state;
    static const struct {
        enum step_name last;
        enum reflector_end end;
        enum step_name next;
        bool wait;
    } rows[] = {
        {LIST_ANY, LIST_COMPLETE, WATCH, false},
        {LIST_ANY_WHOLE, LIST_COMPLETE, WATCH, false},
        {LIST_LAST, LIST_COMPLETE, WATCH, false},
        {LIST_LAST, LIST_GONE, LIST_ANY, false}, /* once at any version, at once */
        {LIST_ANY, LIST_GONE, LIST_ANY, true},   /* and then not in a hot loop */
        {LIST_ANY_WHOLE, LIST_GONE, LIST_ANY, true},
        {LIST_ANY, LIST_PAGE_GONE, LIST_ANY_WHOLE, false},
        {LIST_ANY, LIST_FAILED, LIST_ANY, true},
        {LIST_ANY_WHOLE, LIST_FAILED, LIST_ANY, true},
        {LIST_LAST, LIST_FAILED, LIST_LAST, true},
        {WATCH, WATCH_ENDED, WATCH, false},
        {WATCH, WATCH_SILENT, LIST_LAST, false},
        {WATCH, WATCH_THROTTLED, WATCH, true},
        {WATCH, WATCH_YOUNG, LIST_LAST, false},
        {WATCH, WATCH_SHORT, LIST_LAST, true},
        {WATCH, WATCH_GONE, LIST_LAST, true},
        {WATCH, WATCH_FAILED, LIST_LAST, true},
        {WATCH, WATCH_BEHIND, LIST_LAST, true},
        {WATCH, WATCH_HASTY, WATCH, true},
        {WATCH, WATCH_DOUBTED, LIST_ANY, false},
        {LIST_ANY, LIST_BEHIND, LIST_ANY, true},
        {LIST_LAST, LIST_BEHIND, LIST_ANY, true},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct reflector_step next = reflector_next(&steps[rows[i].last], rows[i].end, false);
        assert_step(&next, rows[i].next, rows[i].wait);
    }
}

/* The rows that differ when lists are to be streams. */
static void test_reflector_fsm_streams_row_by_row(void **state)
{
    (void)state;
    static const struct {
        enum step_name last;
        enum reflector_end end;
        enum step_name next;
        bool wait;
    } rows[] = {
        {STREAM_ANY, LIST_COMPLETE, WATCH, false},
        {STREAM_ANY, WATCH_ENDED, STREAM_ANY, true}, /* before it was whole: anew */
        {STREAM_LAST, WATCH_YOUNG, STREAM_LAST, false},
        {STREAM_LAST, WATCH_SHORT, STREAM_LAST, true},
        {STREAM_LAST, WATCH_THROTTLED, STREAM_LAST, true},
        {STREAM_LAST, WATCH_GONE, STREAM_ANY, false}, /* once at any version, at once */
        {STREAM_ANY, WATCH_GONE, STREAM_ANY, true},
        {STREAM_LAST, LIST_BEHIND, STREAM_ANY, true},
        {STREAM_ANY, STREAM_REFUSED, LIST_ANY, false},
        {STREAM_LAST, STREAM_REFUSED, LIST_LAST, false},
        {STREAM_ANY, WATCH_FAILED, LIST_ANY, false},
        {STREAM_LAST, WATCH_FAILED, LIST_LAST, false},
        {LIST_ANY, LIST_FAILED, STREAM_ANY, true}, /* the next cycle tries again */
        {LIST_LAST, LIST_FAILED, STREAM_LAST, true},
        {LIST_LAST, LIST_GONE, LIST_ANY, false},
        {WATCH, WATCH_ENDED, WATCH, false},
        {WATCH, WATCH_GONE, STREAM_LAST, true},
        {WATCH, WATCH_SILENT, STREAM_LAST, false},
        {WATCH, WATCH_DOUBTED, STREAM_ANY, false},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct reflector_step next = reflector_next(&steps[rows[i].last], rows[i].end, true);
        assert_step(&next, rows[i].next, rows[i].wait);
    }
    struct reflector_step first = reflector_first(true);
    assert_step(&first, STREAM_ANY, false);
}

static void test_reflector_fsm_begins_with_the_most_recent_version(void **state)
{
    (void)state;
    struct reflector_step first = reflector_first(false);
    assert_step(&first, LIST_ANY, false);
}

/* A limit together with a version asks for exactly that version: never both. */
static void test_reflector_fsm_never_pages_at_a_version(void **state)
{
    (void)state;
    for (size_t last = 0; last < ML_COUNT(steps); last++)
        for (int end = LIST_COMPLETE; end <= WATCH_FAILED; end++) {
            struct reflector_step next = reflector_next(&steps[last], (enum reflector_end)end,
                                                        false);
            assert_false(next.paged && !next.any_version);
        }
}

/* ---- delays ---- */

static struct ml_err error_of(int kind, int http)
{
    struct ml_err err;
    ml_err_set(&err, kind, "no");
    err.http = http;
    return err;
}

/* How long the server was away, or refused, says nothing about how long a version that is gone has
 * to wait for its list, and the other way round. */
static void test_reflector_delay_that_one_cause_grew_serves_no_other(void **state)
{
    (void)state;
    const struct ml_err away = error_of(ML_ENETWORK, 0), error = error_of(ML_ESERVER, 500),
                        refused = error_of(ML_EFORBIDDEN, 403), odd = error_of(ML_EINVALID, 400);
    const struct {
        enum reflector_end end;
        const struct ml_err *err;
        int64_t least_ms;
    } rows[] = {
        {WATCH_GONE, &odd, 100},    {LIST_GONE, &away, 100},       {WATCH_THROTTLED, &away, 800},
        {LIST_FAILED, &error, 800}, {LIST_BEHIND, &odd, 1000},     {WATCH_BEHIND, &odd, 1000},
        {WATCH_FAILED, &odd, 800},  {LIST_FAILED, &refused, 1000}, {WATCH_SHORT, NULL, 800},
    };
    struct ml_random random;
    ml_random_init(&random, 1);
    for (size_t grown = 0; grown < ML_COUNT(rows); grown++)
        for (size_t i = 0; i < ML_COUNT(rows); i++) {
            struct reflector_delays delays = {0};
            if (reflector_cause_of(rows[i].end, rows[i].err) ==
                reflector_cause_of(rows[grown].end, rows[grown].err))
                continue;
            for (int n = 0; n < 10; n++)
                reflector_delay(&delays, rows[grown].end, rows[grown].err, &random, 1);
            int64_t delay_ns = reflector_delay(&delays, rows[i].end, rows[i].err, &random, 1);
            assert_in_range(delay_ns, rows[i].least_ms * ML_NS_PER_MS,
                            2 * rows[i].least_ms * ML_NS_PER_MS);
        }
}

/* Ten restarts, one soon after the other: each time the version is gone, and for the first time. */
static void test_reflector_delay_of_a_gone_version_begins_anew_with_each_outage(void **state)
{
    (void)state;
    const struct ml_err away = error_of(ML_ENETWORK, 0), gone = error_of(ML_EGONE, 410);
    struct reflector_delays delays = {0};
    struct ml_random random;
    ml_random_init(&random, 1);
    for (int restart = 0; restart < 10; restart++) {
        reflector_delay(&delays, WATCH_THROTTLED, &away, &random, restart + 1);
        assert_in_range(reflector_delay(&delays, WATCH_GONE, &gone, &random, restart + 1),
                        100 * ML_NS_PER_MS, 200 * ML_NS_PER_MS);
        reflector_delays_end_outage(&delays);
    }
}

/* A server that starts refuses for some seconds. Later it is a person who has to do something,
 * unless the kind is missing. */
static void test_reflector_delay_when_refused_is_brisk_for_a_minute(void **state)
{
    (void)state;
    static const struct {
        int kind, http;
        int64_t later_ms;
    } rows[] = {
        {ML_EFORBIDDEN, 403, 10000},
        {ML_EUNAUTHORIZED, 401, 10000},
        {ML_ENOT_FOUND, 404, 1000},
    };
    struct ml_random random;
    ml_random_init(&random, 1);
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        const struct ml_err err = error_of(rows[i].kind, rows[i].http);
        struct reflector_delays delays = {0};
        for (int second = 1; second <= 60; second++)
            assert_in_range(
                reflector_delay(&delays, LIST_FAILED, &err, &random, second * ML_NS_PER_S),
                ML_NS_PER_S, 2 * ML_NS_PER_S);
        assert_in_range(reflector_delay(&delays, LIST_FAILED, &err, &random, 61 * ML_NS_PER_S),
                        rows[i].later_ms * ML_NS_PER_MS, (rows[i].later_ms + 1000) * ML_NS_PER_MS);
    }
}

/* 503 "the request has been made before all known HTTP paths have been installed" asks for 5 s. */
static void test_reflector_delay_of_a_server_that_starts_is_shorter_than_it_asks_for(void **state)
{
    (void)state;
    struct reflector_delays delays = {0};
    struct ml_random random;
    ml_random_init(&random, 1);
    struct ml_err err = error_of(ML_EUNAVAILABLE, 503);
    err.retry_after_ms = 5000;
    /* An intermediary, which sends no Status, is given what it asks for. */
    assert_in_range(reflector_delay(&delays, LIST_FAILED, &err, &random, 1), 5 * ML_NS_PER_S,
                    8 * ML_NS_PER_S);
    snprintf(err.reason, sizeof err.reason, "ServiceUnavailable");
    for (int second = 1; second <= 60; second++)
        assert_in_range(reflector_delay(&delays, LIST_FAILED, &err, &random, second * ML_NS_PER_S),
                        ML_NS_PER_S, 2 * ML_NS_PER_S);
    assert_in_range(reflector_delay(&delays, LIST_FAILED, &err, &random, 61 * ML_NS_PER_S),
                    5 * ML_NS_PER_S, 8 * ML_NS_PER_S);
    reflector_delays_end_outage(&delays); /* each restart of several has its minute */
    assert_in_range(reflector_delay(&delays, LIST_FAILED, &err, &random, 62 * ML_NS_PER_S),
                    ML_NS_PER_S, 2 * ML_NS_PER_S);
}

static void test_reflector_delay_after_an_answer_is_short_and_grows_after_a_minute(void **state)
{
    (void)state;
    struct reflector_delays delays = {0};
    struct ml_random random;
    ml_random_init(&random, 1);
    assert_in_range(reflector_delay_after_answer(&delays, &random, ML_NS_PER_S), 0,
                    200 * ML_NS_PER_MS);
    for (int second = 2; second <= 60; second++)
        assert_in_range(reflector_delay_after_answer(&delays, &random, second * ML_NS_PER_S),
                        800 * ML_NS_PER_MS, 1600 * ML_NS_PER_MS);
    int64_t now_ns = 61 * ML_NS_PER_S, last_ns = 0;
    for (int n = 0; n < 8; n++)
        now_ns += last_ns = reflector_delay_after_answer(&delays, &random, now_ns);
    assert_true(last_ns >= 30 * ML_NS_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reflector_fsm_decides_row_by_row),
        cmocka_unit_test(test_reflector_fsm_streams_row_by_row),
        cmocka_unit_test(test_reflector_fsm_begins_with_the_most_recent_version),
        cmocka_unit_test(test_reflector_fsm_never_pages_at_a_version),
        cmocka_unit_test(test_reflector_delay_that_one_cause_grew_serves_no_other),
        cmocka_unit_test(test_reflector_delay_of_a_gone_version_begins_anew_with_each_outage),
        cmocka_unit_test(test_reflector_delay_when_refused_is_brisk_for_a_minute),
        cmocka_unit_test(test_reflector_delay_of_a_server_that_starts_is_shorter_than_it_asks_for),
        cmocka_unit_test(test_reflector_delay_after_an_answer_is_short_and_grows_after_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
