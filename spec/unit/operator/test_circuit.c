#include "unit.h"

#include "operator/circuit.h"

#define S ML_NS_PER_S

static void test_circuit_opens_after_five_hits_in_a_row(void **state)
{
    struct ml_circuit circuit = {0};
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_false(ml_circuit_hit(&circuit, 0));
    assert_false(ml_circuit_success(&circuit)); /* it was not open */
    for (int i = 0; i < 4; i++)
        assert_false(ml_circuit_hit(&circuit, 0));
    assert_int_equal(ml_circuit_wait(&circuit, 0), 0);
    assert_true(ml_circuit_hit(&circuit, 7));
    assert_int_equal(ml_circuit_wait(&circuit, 7), S);
    assert_false(ml_circuit_hit(&circuit, 8)); /* was under way; told once */
    assert_int_equal(ml_circuit_wait(&circuit, 7), S);
}

static void open_at_once(struct ml_circuit *circuit, int64_t now)
{
    for (int i = 0; i < 5; i++)
        ml_circuit_hit(circuit, now);
}

static void
test_circuit_lets_one_probe_through_and_doubles_its_pause_up_to_ten_minutes(void **state)
{
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600};
    struct ml_circuit circuit = {0};
    int64_t now = 0;
    (void)state;
    open_at_once(&circuit, now);
    for (size_t i = 0; i < ML_COUNT(pauses); i++) {
        assert_int_equal(ml_circuit_wait(&circuit, now), pauses[i] * S);
        now += pauses[i] * S;
        assert_int_equal(ml_circuit_wait(&circuit, now), 0);
        assert_true(ml_circuit_begin(&circuit));
        assert_int_equal(ml_circuit_wait(&circuit, now + 3600 * S), INT64_MAX);
        assert_false(ml_circuit_hit(&circuit, now)); /* told when it opened first */
    }
}

static void test_circuit_edit_brings_the_next_probe_a_second_after_the_opening(void **state)
{
    struct ml_circuit circuit = {0};
    (void)state;
    open_at_once(&circuit, 0);
    for (int i = 0; i < 9; i++) {
        assert_true(ml_circuit_begin(&circuit));
        ml_circuit_hit(&circuit, 0);
    }
    assert_int_equal(ml_circuit_wait(&circuit, 0), 512 * S);
    ml_circuit_hurry(&circuit);
    ml_circuit_hurry(&circuit);
    assert_int_equal(ml_circuit_wait(&circuit, 0), S);
    assert_true(ml_circuit_begin(&circuit));
    ml_circuit_hit(&circuit, S); /* no cure: the pause goes on doubling */
    assert_int_equal(ml_circuit_wait(&circuit, S), 600 * S);
}

static void test_circuit_one_success_closes_it_and_forgets(void **state)
{
    struct ml_circuit circuit = {0};
    (void)state;
    open_at_once(&circuit, 0);
    assert_true(ml_circuit_begin(&circuit));
    ml_circuit_hit(&circuit, S);
    assert_true(ml_circuit_begin(&circuit));
    assert_true(ml_circuit_success(&circuit));
    assert_false(ml_circuit_begin(&circuit));
    open_at_once(&circuit, 0);
    assert_int_equal(ml_circuit_wait(&circuit, 0), S);
}

static void test_circuit_probe_that_came_to_nothing_makes_room_for_another(void **state)
{
    struct ml_circuit circuit = {0};
    (void)state;
    ml_circuit_abandon(&circuit);
    assert_int_equal(ml_circuit_wait(&circuit, 0), 0);
    open_at_once(&circuit, 0);
    assert_true(ml_circuit_begin(&circuit));
    ml_circuit_abandon(&circuit);
    assert_int_equal(ml_circuit_wait(&circuit, S), 0);
    assert_true(ml_circuit_begin(&circuit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_circuit_opens_after_five_hits_in_a_row),
        cmocka_unit_test(
            test_circuit_lets_one_probe_through_and_doubles_its_pause_up_to_ten_minutes),
        cmocka_unit_test(test_circuit_edit_brings_the_next_probe_a_second_after_the_opening),
        cmocka_unit_test(test_circuit_one_success_closes_it_and_forgets),
        cmocka_unit_test(test_circuit_probe_that_came_to_nothing_makes_room_for_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
