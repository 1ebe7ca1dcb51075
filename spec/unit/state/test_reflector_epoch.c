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
        {3, "100", "99", AGE_BEHIND},   /* not for long yet */
        {4, "100", "100", AGE_CURRENT}, /* it was another server, and that is over */
        {5, "100", "97", AGE_BEHIND},
        {7, "100", "98", AGE_BEHIND},
        {8, "100", "98", AGE_RESTORED},
        {9, "98", "90", AGE_BEHIND},
        {12, "98", "90", AGE_RESTORED}, /* nobody writes there */
        {13, "1000000000000000000000", "999999999999999999999", AGE_BEHIND},
    };
    struct reflector_epoch epoch = {0};
    for (size_t i = 0; i < ML_COUNT(rows); i++)
        assert_int_equal(
            reflector_epoch_check(&epoch, rows[i].known, rows[i].shown, rows[i].at_s * ML_NS_PER_S),
            rows[i].age);
    reflector_epoch_fini(&epoch);
}

/* ---- the reflector by it ---- */

/* One answer of another server: nothing of its past is told. */
static void test_reflector_waits_while_the_server_is_behind(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    fake_refuse(expect_list(self, "5"), 410, "Expired", "old");
    reply_list(expect_list(self, ""), 4, "", pod("b", "ub", 4));
    assert_heard(self, "listing trouble(Unavailable)");
    expect_brisk_backoff(self);
    assert_int_equal(self->progress, 5);
    reply_list(expect_list(self, ""), 7, "", pod("a", "ua", 7));
    assert_heard(self, "listing replace 7: a@7 trouble(over)");
    expect_watch(self, "7");
}

static void test_reflector_takes_a_restored_server_for_a_new_epoch(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
    fake_refuse(expect_list(self, "5"), 410, "Expired", "old");
    reply_list(expect_list(self, ""), 2, "", "");
    advance(&self->world, 60000);
    reply_list(expect_list(self, ""), 3, "", pod("a", "ua", 3));
    assert_heard(self, "listing trouble(Unavailable) listing restored(5>3) replace 3: a@3 "
                       "trouble(over)");
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
    expect_brisk_backoff(self);
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

/* ---- a store that went back while the server was away ---- */

/* In a watch from 9, where b@8 is the newest; then the connection breaks. */
static void till_cut(struct reflector_world *self)
{
    struct fake_call *watch = till_watching(self);
    send_event(watch, "MODIFIED", pod("b", "ub", 8));
    send_bookmark(watch, 9);
    fake_fail(watch, ML_ENETWORK, "cut");
    ml_buf_clear(&self->heard);
}

static void test_reflector_asks_for_the_newest_object_before_it_resumes_a_watch(void **state)
{
    struct reflector_world *self = *state;
    till_cut(self);
    /* From the object on, not from the bookmark: what another history has there is not skipped. */
    struct fake_call *watch = expect_resumed(self, "b", 8, 9);
    fake_head(watch, 200);
    send_event(watch, "ADDED", pod("c", "uc", 10));
    assert_heard(self, "upsert c@10");
    fake_fail(watch, ML_ENETWORK, "cut");
    expect_resumed(self, "c", 10, 10);
}

static void test_reflector_lists_when_the_newest_object_is_not_as_it_was(void **state)
{
    struct reflector_world *self = *state;
    const struct {
        const char *shown;
        int version;
    } rows[] = {
        {"", 9},                   /* it is not there yet, or was deleted */
        {pod("b", "ub", 4), 9},    /* in an earlier state */
        {pod("b", "ub", 12), 12},  /* changed: in which history? */
        {pod("b", "other", 8), 9}, /* made again */
        {pod("b", "ub", 8), 8},    /* the store has not come so far */
        {"{\"metadata\":7}", 9},   /* nonsense */
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        reply_list(restart(self), 5, "", "");
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        send_event(watch, "ADDED", pod("b", "ub", 8));
        send_bookmark(watch, 9);
        fake_fail(watch, ML_ENETWORK, "cut");
        reply_list(expect_question(self, "b"), rows[i].version, "", rows[i].shown);
        assert_string_equal(self->turn, "watch doubted, list");
        struct fake_call *list = expect_list(self, ""); /* at once */
        assert_string_equal(list->path, "/api/v1/pods?limit=500");
    }
}

/* No object shows whether a deletion has happened, nor that nothing has. */
static void test_reflector_lists_when_no_object_is_the_newest(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "DELETED", pod("b", "ub", 8));
    fake_fail(watch, ML_ENETWORK, "cut");
    reply_list(expect_list(self, ""), 20, "", "");
    watch = expect_watch(self, "20");
    fake_head(watch, 200);
    fake_fail(watch, ML_ENETWORK, "cut");
    expect_backoff(self); /* a watch of no second and no event */
    reply_list(expect_list(self, "20"), 20, "", "");
    watch = expect_watch(self, "20");
    fake_head(watch, 200);
    advance(&self->world, 5000);
    fake_fail(watch, ML_ENETWORK, "cut");
    reply_list(expect_list(self, ""), 20, "", "");
}

/* Three versions back, and nobody writes: the second list that says so is believed. */
static void test_reflector_believes_a_store_that_went_back(void **state)
{
    struct reflector_world *self = *state;
    till_cut(self);
    reply_list(expect_question(self, "b"), 6, "", pod("b", "ub", 4));
    reply_list(expect_list(self, ""), 6, "", pod("b", "ub", 4));
    assert_heard(self, "listing trouble(Unavailable)");
    expect_brisk_backoff(self);
    reply_list(expect_list(self, ""), 6, "", pod("b", "ub", 4));
    assert_heard(self, "listing trouble(Unavailable)");
    advance(&self->world, 2000);
    reply_list(expect_list(self, ""), 6, "", pod("b", "ub", 4));
    assert_heard(self, "listing restored(9>6) replace 6: b@4 trouble(over)");
    expect_watch(self, "6");
}

/* The server's own end of a watch: it was there all the time. */
static void test_reflector_resumes_a_watch_that_the_server_ended_without_asking(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_bookmark(watch, 9);
    advance(&self->world, 18000);
    fake_end(watch);
    expect_watch(self, "9");
}

static void test_reflector_asks_for_nothing_older_than_known(void **state)
{
    struct reflector_world *self = *state;
    fake_end(till_watching(self));
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
        TEST(test_reflector_asks_for_the_newest_object_before_it_resumes_a_watch),
        TEST(test_reflector_lists_when_the_newest_object_is_not_as_it_was),
        TEST(test_reflector_lists_when_no_object_is_the_newest),
        TEST(test_reflector_believes_a_store_that_went_back),
        TEST(test_reflector_resumes_a_watch_that_the_server_ended_without_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
