#include "unit.h"

#include "state/reflector_fsm.h"
#include "state_reflector.h"

/* ---- the judgement ---- */

static void test_epoch_judges_by_version_and_time(void **state)
{
    (void)state;
    static const struct {
        int64_t at_s;
        const char *known, *shown;
        enum reflector_age age;
    } rows[] = {
        {0, NULL, "5", AGE_CURRENT},
        {0, "5", "5", AGE_CURRENT},
        {0, "5", "10", AGE_CURRENT},
        {0, "5", "opaque", AGE_CURRENT},
        {0, "opaque", "5", AGE_CURRENT},
        {1, "100", "99", AGE_BEHIND},
        {20, "100", "99", AGE_BEHIND},
        {300, "100", "99", AGE_BEHIND},   /* it stands still */
        {301, "100", "100", AGE_CURRENT}, /* it was behind, and that is over */
        {302, "100", "97", AGE_BEHIND},
        {331, "100", "98", AGE_BEHIND},   /* not for long yet */
        {332, "100", "98", AGE_RESTORED}, /* goes on from there */
        {333, "98", "90", AGE_BEHIND},
        {933, "98", "90", AGE_RESTORED}, /* for too long */
        {934, "1000000000000000000000", "999999999999999999999", AGE_BEHIND},
    };
    struct reflector_epoch epoch = {0};
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        assert_int_equal(
            reflector_epoch_check(&epoch, rows[i].known, rows[i].shown, rows[i].at_s * ML_NS_PER_S),
            rows[i].age);
    reflector_epoch_fini(&epoch);
}

/* ---- the reflector by it ---- */

/* A server that lags behind the one before it: nothing of its past is told. */
static void test_reflector_waits_while_the_server_is_behind(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    expect_backoff(self);
    fake_refuse(expect_list(self, "5"), 410, "Expired", "old");
    for (int turn = 0; turn < 5; turn++) {
        reply_list(expect_list(self, ""), 4, "", pod("b", "ub", 4));
        assert_heard(self, "listing trouble(Unavailable)");
        expect_silence(self, 1599); /* each time after a backoff */
        advance(&self->world, 60000);
    }
    assert_int_equal(self->progress, 5);
    reply_list(expect_list(self, ""), 7, "", pod("a", "ua", 7));
    assert_heard(self, "listing replace 7: a@7");
    fake_head(expect_watch(self, "7"), 200);
    assert_heard(self, "trouble(over)");
}

static void test_reflector_takes_a_restored_server_for_a_new_epoch(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    expect_backoff(self);
    fake_refuse(expect_list(self, "5"), 410, "Expired", "old");
    reply_list(expect_list(self, ""), 2, "", "");
    advance(&self->world, 60000);
    reply_list(expect_list(self, ""), 3, "", pod("a", "ua", 3));
    assert_heard(self, "listing trouble(Unavailable) listing restored(5>3) replace 3: a@3");
    assert_int_equal(self->progress, 3);
    struct fake_call *watch = expect_watch(self, "3");
    fake_head(watch, 200);
    send_event(watch, "MODIFIED", pod("a", "ua", 4));
    assert_int_equal(self->progress, 4);
}

/* The server says by itself that it is behind what we know. */
static void test_reflector_bookmark_of_the_past_leads_to_a_list(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    ML_AUTO_FREE char *line = event_line("BOOKMARK", pod("x", "ux", 4));
    assert_false(fake_piece(watch, line));
    assert_heard(self, "trouble(Unavailable)");
    assert_int_equal(self->progress, 5);
    expect_backoff(self);
    expect_list(self, "5");
}

/* Held up on its way: told, for it is news of its object; but it takes the version nowhere. */
static void test_reflector_version_never_goes_back(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "MODIFIED", pod("a", "ua", 9));
    send_event(watch, "MODIFIED", pod("b", "ub", 8));
    assert_heard(self, "upsert a@9 upsert b@8");
    assert_int_equal(self->progress, 9);
    fake_end(watch);
    expect_watch(self, "9");
}

static void test_reflector_asks_for_nothing_older_than_known(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    expect_backoff(self);
    struct fake_call *list = expect_list(self, "5");
    assert_string_equal(query_of(list, "resourceVersionMatch"), "NotOlderThan");
    assert_false(has_query(list, "limit")); /* it would ask for exactly that version */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epoch_judges_by_version_and_time),
        TEST(test_reflector_waits_while_the_server_is_behind),
        TEST(test_reflector_takes_a_restored_server_for_a_new_epoch),
        TEST(test_reflector_bookmark_of_the_past_leads_to_a_list),
        TEST(test_reflector_version_never_goes_back),
        TEST(test_reflector_asks_for_nothing_older_than_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
