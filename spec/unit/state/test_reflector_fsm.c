#include "unit.h"

#include "state/reflector_fsm.h"

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
        {WATCH, WATCH_SHORT, LIST_LAST, true},
        {WATCH, WATCH_GONE, LIST_LAST, true},
        {WATCH, WATCH_FAILED, LIST_LAST, true},
        {WATCH, WATCH_BEHIND, LIST_LAST, true},
        {WATCH, WATCH_HASTY, WATCH, true},
        {LIST_ANY, LIST_BEHIND, LIST_ANY, true},
        {LIST_LAST, LIST_BEHIND, LIST_ANY, true},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct reflector_step next = reflector_next(&steps[rows[i].last], rows[i].end, false);
        assert_step(&next, rows[i].next, rows[i].wait);
    }
}

/* What differs when lists are to be streams. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reflector_fsm_decides_row_by_row),
        cmocka_unit_test(test_reflector_fsm_streams_row_by_row),
        cmocka_unit_test(test_reflector_fsm_begins_with_the_most_recent_version),
        cmocka_unit_test(test_reflector_fsm_never_pages_at_a_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
