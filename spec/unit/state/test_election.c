/* Leader election in virtual time: who leads, who stands by, who follows. */
#include "state_election.h"

static void test_election_alone_creates_the_lease_and_leads(void **state)
{
    struct pair *pair = *state;
    struct ml_err err;
    assert_false(may_write(&pair->a));
    start_a(pair);
    assert_int_equal(pair->a.led, 1);
    assert_true(master_status(&pair->a) == 1);
    assert_string_equal(pair->server.spec,
                        "{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15,"
                        "\"acquireTime\":\"2023-11-14T22:13:20.000000Z\","
                        "\"renewTime\":\"2023-11-14T22:13:20.000000Z\",\"leaseTransitions\":0}");
    assert_int_equal(ml_election_fence(pair->a.election, "DELETE", PODS, &err), 0);
}

static void test_election_renews_every_two_seconds_with_one_write(void **state)
{
    struct pair *pair = *state;
    start_a(pair);
    size_t before = fake_count(pair->a.world.server);
    run(pair, 60000);
    assert_int_equal(fake_count(pair->a.world.server) - before, 30);
    assert_true(may_write(&pair->a));
    assert_int_equal(transitions(pair), 0);
    assert_true(slow_paths(&pair->a) == 0);
    ML_AUTO_FREE char *acquired = field(pair, "acquireTime");
    ML_AUTO_FREE char *renewed = field(pair, "renewTime");
    assert_string_equal(acquired, "2023-11-14T22:13:20.000000Z");
    assert_string_equal(renewed, "2023-11-14T22:14:20.000000Z");
}

static void test_election_standby_writes_nothing_but_events(void **state)
{
    struct pair *pair = *state;
    struct ml_err err;
    start_both(pair);
    assert_int_equal(ml_election_fence(pair->b.election, "PATCH", PODS "/x/status", &err),
                     ML_ECANCELED);
    assert_non_null(strstr(err.message, "does not hold ns/moonloop"));
    assert_int_equal(ml_election_fence(pair->b.election, "POST",
                                       "/apis/apps/v1/namespaces/ns/deployments", &err),
                     ML_ECANCELED);
    assert_int_equal(ml_election_fence(pair->b.election, "POST",
                                       "/apis/events.k8s.io/v1/namespaces/ns/events", &err),
                     0);
    run(pair, 600000);
    assert_int_equal(pair->b.led, 0);
    assert_holder(pair, "a");
}

static void test_election_successor_of_a_crash_waits_for_the_lease_to_expire(void **state)
{
    struct pair *pair = *state;
    start_both(pair);
    ml_election_free(ml_take(&pair->a.election));
    run(pair, 12000);
    assert_int_equal(pair->b.led, 0);
    run(pair, 8000); /* lease + 5 s in all */
    assert_int_equal(pair->b.led, 1);
    assert_true(may_write(&pair->b));
    assert_holder(pair, "b");
    assert_int_equal(transitions(pair), 1);
}

static void test_election_many_hand_overs_never_have_two_holders(void **state)
{
    struct pair *pair = *state;
    struct ml_random random;
    ml_random_init(&random, 42);
    start_both(pair);
    for (int i = 0; i < 200; i++) {
        static const enum mood moods[] = {ANSWERS, ANSWERS, SILENT, UNREACHABLE, LOSES_WRITES};
        struct candidate *self = ml_random_between(&random, 0, 2) ? &pair->a : &pair->b;
        self->mood = moods[ml_random_between(&random, 0, ML_COUNT(moods))];
        if (ml_random_between(&random, 0, 10) == 0 && pair->server.spec)
            delete_lease(&pair->server);
        run(pair, ml_random_between(&random, 0, 12000));
        if (pair->server.watch_count > WATCHES / 2)
            pair->server.watch_count = 0;
    }
}

static void test_election_times_are_checked_as_client_go_does(void **state)
{
    static const struct {
        struct ml_lease_times seconds;
        const char *says; /* NULL: good */
    } cases[] = {
        {{15, 10, 2}, NULL},
        {{60, 40, 5}, NULL},
        {{10, 10, 2}, "must be longer than --leader-election-renew-deadline"},
        {{15, 12, 10}, "1.2 times"},
        {{0, 10, 2}, "whole seconds"},
        {{15, 0, 2}, "more than 0"},
        {{15, 10, 0}, "more than 0"},
    };
    (void)state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        const struct ml_lease_times *seconds = &cases[i].seconds;
        const struct ml_lease_times times = {seconds->lease_ns * ML_NS_PER_S,
                                             seconds->renew_ns * ML_NS_PER_S,
                                             seconds->retry_ns * ML_NS_PER_S};
        struct ml_err err;
        int r = ml_lease_times_check(&times, &err);
        assert_int_equal(r, cases[i].says ? ML_EINVALID : 0);
        if (cases[i].says)
            assert_non_null(strstr(err.message, cases[i].says));
    }
    struct ml_err err;
    assert_int_equal(
        ml_lease_times_check(
            &(struct ml_lease_times){1500 * ML_NS_PER_MS, ML_NS_PER_S, 100 * ML_NS_PER_MS}, &err),
        ML_EINVALID); /* the Lease has whole seconds */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_election_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(alone_creates_the_lease_and_leads),
        TEST(renews_every_two_seconds_with_one_write),
        TEST(standby_writes_nothing_but_events),
        TEST(successor_of_a_crash_waits_for_the_lease_to_expire),
        TEST(many_hand_overs_never_have_two_holders),
        TEST(times_are_checked_as_client_go_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
