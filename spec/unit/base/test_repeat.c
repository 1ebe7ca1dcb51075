/* Which repetitions of a failure are logged. */
#include "unit.h"

#include "base/clock.h"
#include "base/repeat.h"

#include <stdio.h>

static bool fails(struct ml_repeat *repeat, const char *text, int64_t at_ms)
{
    return ml_repeat_failed(repeat, ml_str_of(text), at_ms * ML_NS_PER_MS);
}

static void test_repeat_is_logged_once_per_doubling_of_the_pause(void **state)
{
    (void)state;
    struct ml_repeat repeat = {0};
    int64_t at_ms = 7000, pause_ms = 5, lines = 0;
    for (int i = 1; i <= 18; i++, at_ms += pause_ms, pause_ms *= 2) {
        bool logged = fails(&repeat, "boom", at_ms);
        assert_int_equal(repeat.failures, i);
        /* The pauses before the ninth come to more than a second. */
        assert_int_equal(logged, i == 1 || i >= 9);
        lines += logged;
    }
    assert_int_equal(lines, 11);
}

static void test_repeat_with_a_constant_pause_is_logged_ever_more_seldom(void **state)
{
    (void)state;
    struct ml_repeat repeat = {0};
    int lines = 0;
    for (int64_t at_s = 0; at_s <= 4096; at_s += 2)
        lines += fails(&repeat, "refused", at_s * 1000);
    assert_int_equal(lines, 13); /* at 0, 2, 4, 8, … 4096 s */
    assert_int_equal(repeat.failures, 2049);
}

static void test_repeat_with_another_text_or_after_a_success_is_new(void **state)
{
    (void)state;
    struct ml_repeat repeat = {0};
    assert_true(fails(&repeat, "a", 0));
    assert_false(fails(&repeat, "a", 10));
    assert_true(fails(&repeat, "b", 20));
    assert_int_equal(repeat.failures, 1);
    assert_true(fails(&repeat, "a", 30));
    ml_repeat_over(&repeat);
    assert_true(fails(&repeat, "a", 40));
    assert_int_equal(repeat.failures, 1);
    assert_true(fails(&(struct ml_repeat){0}, "", 0));
}

static void test_repeats_are_apart_by_key_and_bounded(void **state)
{
    (void)state;
    struct ml_repeats repeats = {0};
    assert_true(fails(ml_repeats_get(&repeats, ML_STR("d/a")), "boom", 0));
    assert_true(fails(ml_repeats_get(&repeats, ML_STR("d/b")), "boom", 0));
    assert_false(fails(ml_repeats_get(&repeats, ML_STR("d/a")), "boom", 1));
    ml_repeats_over(&repeats, ML_STR("d/a"));
    ml_repeats_over(&repeats, ML_STR("d/none"));
    assert_true(fails(ml_repeats_get(&repeats, ML_STR("d/a")), "boom", 2));
    assert_false(fails(ml_repeats_get(&repeats, ML_STR("d/b")), "boom", 2));
    for (int i = 0; i < 25000; i++) {
        char key[16];
        snprintf(key, sizeof key, "d/%d", i);
        assert_true(fails(ml_repeats_get(&repeats, ml_str_of(key)), "boom", 3));
        assert_in_range(repeats.by_id.len, 1, 10000);
    }
    ml_repeats_clear(&repeats);
    assert_int_equal(repeats.by_id.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeat_is_logged_once_per_doubling_of_the_pause),
        cmocka_unit_test(test_repeat_with_a_constant_pause_is_logged_ever_more_seldom),
        cmocka_unit_test(test_repeat_with_another_text_or_after_a_success_is_new),
        cmocka_unit_test(test_repeats_are_apart_by_key_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
