#include "unit.h"

#include "base/budget.h"

#define MS ML_NS_PER_MS

static void test_meter_half_a_second_may_be_used_at_once(void **state)
{
    struct ml_meter meter = {0};
    (void)state;
    ml_meter_charge(&meter, 0, 500 * MS);
    assert_int_equal(ml_meter_debt(&meter, 0), 0);
    ml_meter_charge(&meter, 0, MS);
    assert_int_equal(ml_meter_debt(&meter, 0), 4 * MS);
    assert_int_equal(ml_meter_debt(&meter, 3 * MS), MS);
    assert_int_equal(ml_meter_debt(&meter, 4 * MS), 0);
}

/* With slices of any length. */
static void test_meter_who_waits_for_its_debts_uses_a_quarter_of_the_time(void **state)
{
    static const int64_t slices[] = {MS / 10, 7 * MS, 90 * MS, 100 * MS, 1000 * MS};
    (void)state;
    for (size_t i = 0; i < ML_COUNT(slices); i++) {
        struct ml_meter meter = {0};
        int64_t now = 0, used = 0;
        while (now < 1000 * ML_NS_PER_S) {
            ml_meter_charge(&meter, now, slices[i]);
            used += slices[i];
            now += slices[i] + ml_meter_debt(&meter, now + slices[i]);
            assert_int_equal(ml_meter_debt(&meter, now), 0);
            assert_true(used <= 500 * MS + now / 4 + slices[i]);
        }
        assert_true(used >= now / 4 - slices[i]);
    }
}

static void test_meter_what_was_not_used_is_kept_for_two_seconds(void **state)
{
    struct ml_meter meter = {0};
    (void)state;
    ml_meter_charge(&meter, 0, 500 * MS);
    ml_meter_charge(&meter, 1000 * ML_NS_PER_S, 501 * MS);
    assert_int_equal(ml_meter_debt(&meter, 1000 * ML_NS_PER_S), 4 * MS);
}

static void test_meter_clock_that_goes_back_and_sums_that_are_too_large_do_no_harm(void **state)
{
    struct ml_meter meter = {0};
    (void)state;
    ml_meter_charge(&meter, INT64_MAX, 600 * MS);
    assert_int_equal(ml_meter_debt(&meter, 0), 400 * MS);
    for (int i = 0; i < 3; i++)
        ml_meter_charge(&meter, INT64_MIN, INT64_MAX);
    ml_meter_charge(&meter, 0, INT64_MIN);
    assert_in_range(ml_meter_debt(&meter, 0), 0, 2400 * ML_NS_PER_S);
    assert_int_equal(ml_meter_debt(&meter, INT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meter_half_a_second_may_be_used_at_once),
        cmocka_unit_test(test_meter_who_waits_for_its_debts_uses_a_quarter_of_the_time),
        cmocka_unit_test(test_meter_what_was_not_used_is_kept_for_two_seconds),
        cmocka_unit_test(test_meter_clock_that_goes_back_and_sums_that_are_too_large_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
