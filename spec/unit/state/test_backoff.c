#include "unit.h"

#include "state/reflector_fsm.h"

static void test_backoff_doubles_to_30_s_with_up_to_as_much_again(void **state)
{
    (void)state;
    static const int64_t steps_ms[] = {800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    struct ml_backoff backoff = {0};
    struct ml_random random;
    int64_t now_ns = 0;
    ml_random_init(&random, 3);
    for (size_t i = 0; i < ML_COUNT(steps_ms); i++) {
        int64_t delay_ns = ml_backoff_next(&backoff, 800 * ML_NS_PER_MS, &random, now_ns);
        assert_in_range(delay_ns, steps_ms[i] * ML_NS_PER_MS, steps_ms[i] * ML_NS_PER_MS * 2 - 1);
        now_ns += delay_ns + 10 * ML_NS_PER_S; /* the attempt itself takes a while */
    }
}

static void test_backoff_begins_anew_after_two_good_minutes(void **state)
{
    (void)state;
    static const struct {
        int64_t good_ns, least_ms;
    } rows[] = {{120 * ML_NS_PER_S, 1600}, {120 * ML_NS_PER_S + 1, 800}};
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_backoff backoff = {0};
        struct ml_random random;
        ml_random_init(&random, 3);
        int64_t end_ns = ml_backoff_next(&backoff, 800 * ML_NS_PER_MS, &random, 0);
        int64_t delay_ns = ml_backoff_next(&backoff, 800 * ML_NS_PER_MS, &random,
                                           end_ns + rows[i].good_ns);
        int64_t least_ns = rows[i].least_ms * ML_NS_PER_MS;
        assert_in_range(delay_ns, least_ns, least_ns * 2 - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backoff_doubles_to_30_s_with_up_to_as_much_again),
        cmocka_unit_test(test_backoff_begins_anew_after_two_good_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
