/* A lease that is given back. */
#include "state_election.h"

static void test_election_release_hands_over_within_a_second(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    assert_false(may_write(&pair->a)); /* from now on, before the server knows */
    run(pair, 500);
    assert_int_equal(pair->a.released, 1);
    assert_int_equal(pair->a.lost, 0);
    assert_true(master_status(&pair->a) == 0);
    assert_int_equal(pair->b.led, 1);
    assert_true(may_write(&pair->b));
    assert_int_equal(transitions(pair), 1);
}

static void test_election_release_hands_over_without_the_right_to_watch_too(void **state)
{
    struct pair *pair = *state;
    pair->b.mood = NO_WATCH;
    start_both(pair);
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    run(pair, 4500);
    assert_int_equal(pair->b.led, 1);
}

static void test_election_release_of_what_it_does_not_hold_writes_nothing(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    int writes = pair->server.writes;
    ml_election_release(pair->b.election, 2 * ML_NS_PER_S, on_released, &pair->b);
    assert_int_equal(pair->b.released, 0); /* never inside the call */
    run(pair, 50);
    assert_int_equal(pair->b.released, 1);
    assert_int_equal(pair->server.writes, writes);
    assert_holder(pair, "a");
}

static void test_election_release_after_a_renewal_of_unknown_outcome(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    set_spec(&pair->server, ml_str_of(pair->server.spec)); /* the version is not what `a` knows */
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    run(pair, 50);
    assert_int_equal(pair->a.released, 1);
    assert_holder(pair, "");
}

static void test_election_release_gives_up_after_its_patience(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    pair->a.mood = SILENT;
    ml_election_release(pair->a.election, 2 * ML_NS_PER_S, on_released, &pair->a);
    run(pair, 1900);
    assert_int_equal(pair->a.released, 0);
    run(pair, 200);
    assert_int_equal(pair->a.released, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_election_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(release_hands_over_within_a_second),
        TEST(release_hands_over_without_the_right_to_watch_too),
        TEST(release_of_what_it_does_not_hold_writes_nothing),
        TEST(release_after_a_renewal_of_unknown_outcome),
        TEST(release_gives_up_after_its_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
