#include "unit.h"

#include "state/reflector_fsm.h"

enum step_name { LIST_ANY, LIST_ANY_WHOLE, LIST_LAST, WATCH };

static const struct reflector_step steps[] = {
    [LIST_ANY] = {.any_version = true, .paged = true},
    [LIST_ANY_WHOLE] = {.any_version = true},
    [LIST_LAST] = {.any_version = false},
    [WATCH] = {.watch = true},
};

static void assert_step(const struct reflector_step *got, enum step_name want, bool wait)
{
    assert_int_equal(got->watch, steps[want].watch);
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
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct reflector_step next = reflector_next(&steps[rows[i].last], rows[i].end);
        assert_step(&next, rows[i].next, rows[i].wait);
    }
}

static void test_reflector_fsm_begins_with_the_most_recent_version(void **state)
{
    (void)state;
    struct reflector_step first = reflector_first();
    assert_step(&first, LIST_ANY, false);
}

/* A limit together with a version asks for exactly that version: never both. */
static void test_reflector_fsm_never_pages_at_a_version(void **state)
{
    (void)state;
    for (size_t last = 0; last < ML_COUNT(steps); last++)
        for (int end = LIST_COMPLETE; end <= WATCH_FAILED; end++) {
            struct reflector_step next = reflector_next(&steps[last], (enum reflector_end)end);
            assert_false(next.paged && !next.any_version);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reflector_fsm_decides_row_by_row),
        cmocka_unit_test(test_reflector_fsm_begins_with_the_most_recent_version),
        cmocka_unit_test(test_reflector_fsm_never_pages_at_a_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
