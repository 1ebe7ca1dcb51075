/* A lease that is lost, doubted, deleted, or full of nonsense; clocks that jump, processes that
 * sleep. */
#include "state_election.h"

/* Both ways of being away, to the renew deadline and beyond. */
static void check_away(struct pair *pair, enum mood mood)
{
    start_both(pair);
    run(pair, 2000);
    pair->a.mood = mood;
    run(pair, 7900);
    assert_int_equal(pair->a.lost, 0);
    assert_true(may_write(&pair->a)); /* at most 2 s old when it went */
    run(pair, 2200);
    assert_int_equal(pair->a.lost, 1);
    assert_false(may_write(&pair->a));
    assert_true(master_status(&pair->a) == 0);
    assert_non_null(strstr(pair->a.why, "lost the lease ns/moonloop: not renewed for 10 s"));
    assert_int_equal(pair->b.led, 0); /* not before the lease is over */
    run(pair, 10000);
    assert_int_equal(pair->b.led, 1);
}

static void test_election_is_lost_when_the_server_is_silent_to_the_deadline(void **state)
{
    check_away(*state, SILENT);
}

static void test_election_is_lost_when_the_server_is_unreachable_to_the_deadline(void **state)
{
    check_away(*state, UNREACHABLE);
}

static void test_election_outlives_an_outage_that_ends_before_the_deadline(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    for (int i = 0; i < 20; i++) { /* five seconds up, five down */
        pair->a.mood = pair->b.mood = i % 2 ? UNREACHABLE : ANSWERS;
        run(pair, 5000);
    }
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.lost, 0);
    assert_int_equal(transitions(pair), 0);
}

static void test_election_outage_for_all_leaves_at_most_one_holder(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    pair->a.mood = pair->b.mood = UNREACHABLE;
    run(pair, 60000);
    assert_int_equal(pair->a.lost, 1);
    assert_int_equal(pair->b.led, 0);
    pair->a.mood = pair->b.mood = ANSWERS;
    run(pair, 25000); /* it may not have seen the last renewal before */
    assert_int_equal(pair->b.led, 1);
}

static void test_election_lost_reply_of_a_renewal_is_found_out(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    pair->a.mood = LOSES_WRITES;
    run(pair, 4000);
    pair->a.mood = ANSWERS;
    run(pair, 20000);
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.lost, 0);
    assert_true(slow_paths(&pair->a) >= 2);
    assert_int_equal(transitions(pair), 0);
}

static void test_election_lost_reply_of_the_first_write_is_found_out(void **state)
{
    struct pair *pair = *state;
    pair->a.mood = LOSES_WRITES;
    ml_election_start(pair->a.election);
    run(pair, 1000);
    assert_holder(pair, "a");
    assert_false(may_write(&pair->a)); /* nobody said so */
    pair->a.mood = ANSWERS;
    run(pair, 5000);
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.led, 1);
}

static void test_election_conflict_is_read_and_written_again(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    set_spec(&pair->server, ml_str_of(pair->server.spec)); /* somebody added a label */
    run(pair, 2100);
    assert_true(may_write(&pair->a));
    assert_true(slow_paths(&pair->a) == 1);
    run(pair, 30000);
    assert_true(slow_paths(&pair->a) == 1);
    assert_int_equal(pair->b.led, 0);
}

static void test_election_holder_that_sees_another_name_has_lost_at_once(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    set_spec(&pair->server, ML_STR("{\"holderIdentity\":\"c\",\"leaseDurationSeconds\":15}"));
    run(pair, 2100);
    assert_int_equal(pair->a.lost, 1);
    assert_non_null(strstr(pair->a.why, "c holds it now"));
    assert_false(may_write(&pair->a));
}

static void test_election_garbage_in_the_lease_does_no_harm(void **state)
{
    static const char *const garbage[] = {
        "",
        "{}",
        "null",
        "{\"holderIdentity\":7}",
        "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":-4,\"leaseTransitions\":-1}",
        "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":99999999999999,\"renewTime\":\"?\"}",
        "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":\"15\",\"acquireTime\":[]}",
        "[1,2]",
    };
    (void)state;
    for (size_t i = 0; i < ML_COUNT(garbage); i++) {
        void *other;
        setup(&other);
        struct pair *pair = other;
        set_spec(&pair->server, ml_str_of(garbage[i]));
        ml_election_start(pair->a.election);
        ml_election_start(pair->b.election);
        run(pair, 25000);
        assert_int_equal(pair->a.led + pair->b.led, 1);
        teardown(&other);
    }
}

static void test_election_unreadable_lease_is_left_alone(void **state)
{
    struct pair *pair = *state;
    set_spec(&pair->server, ML_STR("{broken"));
    ml_election_start(pair->a.election);
    run(pair, 60000);
    assert_int_equal(pair->a.led, 0);
    assert_int_equal(pair->server.writes, 0);
}

static void test_election_holder_brings_a_deleted_lease_back(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    for (int i = 0; i < 5; i++) {
        delete_lease(&pair->server);
        run(pair, 7300);
        assert_true(may_write(&pair->a));
        assert_holder(pair, "a");
    }
    assert_int_equal(pair->b.led, 0);
}

static void
test_election_deleted_lease_of_a_dead_holder_is_taken_when_its_time_is_over(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_free(ml_take(&pair->a.election));
    delete_lease(&pair->server);
    run(pair, 10000);
    assert_int_equal(pair->b.led, 0); /* `a` might live: it may not know yet */
    run(pair, 10000);
    assert_int_equal(pair->b.led, 1);
}

static void
test_election_process_that_slept_past_the_lease_writes_nothing_and_has_lost(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_free(ml_take(&pair->b.election));
    sleep_through(pair, 20000);
    set_spec(&pair->server, ML_STR("{\"holderIdentity\":\"b\",\"leaseDurationSeconds\":15}"));
    assert_false(may_write(&pair->a)); /* before its loop has run at all */
    run(pair, 50);
    assert_int_equal(pair->a.lost, 1);
    assert_false(may_write(&pair->a));
}

static void test_election_process_that_slept_and_still_holds_goes_on(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    sleep_through(pair, 1800 * 1000);
    assert_false(may_write(&pair->a));
    pair->a.mood = SILENT;
    run(pair, 1000);
    assert_false(may_write(&pair->a)); /* asking */
    assert_int_equal(pair->a.lost, 0);
    run(pair, 6000); /* an answer in time, or none */
    assert_int_equal(pair->a.lost, 1);
}

static void test_election_short_sleep_is_forgiven_by_the_server_alone(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    sleep_through(pair, 12000);
    assert_false(may_write(&pair->a));
    run(pair, 50);
    assert_true(may_write(&pair->a));
    assert_int_equal(pair->a.led, 1); /* told once */
    assert_int_equal(pair->a.lost, 0);
}

static void test_election_grant_that_comes_after_its_time_is_none(void **state)
{
    struct pair *pair = *state;
    ml_election_start(pair->a.election);
    pair->a.mood = SILENT;
    run(pair, 50);
    sleep_through(pair, 11000);
    assert_false(may_write(&pair->a));
    pair->a.mood = ANSWERS;
    run(pair, 6000);
    assert_true(may_write(&pair->a));
}

/* Others count from when the server had the renewal, which may be as early as it was sent. */
static void test_election_slow_grant_counts_from_when_it_was_asked_for(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    pair->a.mood = SILENT;
    run(pair, 6500); /* the renewal went out at 2 s */
    pair->a.mood = ANSWERS;
    answer(&pair->a, fake_call_at(pair->a.world.server, fake_count(pair->a.world.server) - 1));
    pair->a.mood = UNREACHABLE;
    run(pair, 5400);
    assert_true(may_write(&pair->a));
    run(pair, 100);
    assert_false(may_write(&pair->a));
}

static void test_election_wall_clock_may_jump(void **state)
{
    static const int64_t jumps_s[] = {3600, -3600, 315360000, -315360000};
    struct pair *pair = *state;
    start_both(pair);
    for (size_t i = 0; i < ML_COUNT(jumps_s); i++) {
        int before = pair->server.writes;
        pair->clock.wall_ns += jumps_s[i] * ML_NS_PER_S;
        assert_true(may_write(&pair->a));
        run(pair, 30000);
        assert_true(may_write(&pair->a));
        assert_in_range(pair->server.writes - before, 14, 16); /* every two seconds, as ever */
    }
    assert_int_equal(pair->b.led, 0);
    assert_true(slow_paths(&pair->a) == 0);
    assert_int_equal(transitions(pair), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_election_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(is_lost_when_the_server_is_silent_to_the_deadline),
        TEST(is_lost_when_the_server_is_unreachable_to_the_deadline),
        TEST(outlives_an_outage_that_ends_before_the_deadline),
        TEST(outage_for_all_leaves_at_most_one_holder),
        TEST(lost_reply_of_a_renewal_is_found_out),
        TEST(lost_reply_of_the_first_write_is_found_out),
        TEST(conflict_is_read_and_written_again),
        TEST(holder_that_sees_another_name_has_lost_at_once),
        TEST(garbage_in_the_lease_does_no_harm),
        TEST(unreadable_lease_is_left_alone),
        TEST(holder_brings_a_deleted_lease_back),
        TEST(deleted_lease_of_a_dead_holder_is_taken_when_its_time_is_over),
        TEST(process_that_slept_past_the_lease_writes_nothing_and_has_lost),
        TEST(process_that_slept_and_still_holds_goes_on),
        TEST(short_sleep_is_forgiven_by_the_server_alone),
        TEST(grant_that_comes_after_its_time_is_none),
        TEST(slow_grant_counts_from_when_it_was_asked_for),
        TEST(wall_clock_may_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
