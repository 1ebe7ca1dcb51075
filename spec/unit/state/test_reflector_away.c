/* The reflector while the server cannot be reached. */
#include "state_reflector.h"

static void on_done(void *context, struct ml_str body, const struct ml_err *err)
{
    (void)context, (void)body, (void)err;
}

/* Somebody else writes through the same client, and is answered with `status`. */
static void write_beside(struct reflector_world *self, int status)
{
    const struct ml_client_request request = {.verb = ML_VERB_UPDATE,
                                              .kind = &pods,
                                              .ns = ML_STR("default"),
                                              .name = ML_STR("a"),
                                              .body = ML_STR("{}")};
    ml_client_send(self->world.client, &request, on_done, NULL);
    fake_refuse(fake_expect(self->world.server, "PUT", "/api/v1/namespaces/default/pods/a"), status,
                "", "no");
    ml_loop_poll(self->world.loop);
}

/* Ten seconds without an answer: one of those who wait looks each second or two. */
static void look_in_vain(struct reflector_world *self)
{
    int64_t begun_ns = ml_clock_monotonic(&self->world.clock.clock);
    int looks = 0;
    while (ml_clock_monotonic(&self->world.clock.clock) - begun_ns < 10 * ML_NS_PER_S) {
        fake_fail(next_call(self), ML_ENETWORK, "refused");
        size_t count = fake_count(self->world.server);
        while (fake_count(self->world.server) == count)
            advance(&self->world, 100);
        looks++;
    }
    assert_in_range(looks, 5, 11);
}

static void till_away(struct reflector_world *self)
{
    struct fake_call *watch = till_watching(self);
    advance(&self->world, 5000);
    fake_end(watch);
}

static void test_reflector_looks_each_second_or_two_for_a_server_that_is_away(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    for (int i = 0; i < 6; i++)
        look_in_vain(self);
    fake_head(expect_resumed(self, "b", 4, 5), 200);
}

static void test_reflector_is_back_soon_after_the_server_answers_somebody(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    look_in_vain(self);
    fake_fail(next_call(self), ML_ENETWORK, "refused");
    write_beside(self, 409);
    advance(&self->world, 200);
    fake_head(expect_resumed(self, "b", 4, 5), 200);
}

/* Of several servers behind one address one may be away for good. */
static void test_reflector_that_alone_is_refused_asks_no_more_than_once_a_backoff(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    fake_fail(next_call(self), ML_ENETWORK, "refused");
    write_beside(self, 409); /* the first answer to anybody counts at once */
    advance(&self->world, 200);
    for (int failures = 0; failures < 20; failures++) {
        fake_fail(next_call(self), ML_ENETWORK, "refused");
        for (int ms = 0; ms < 700; ms += 100) {
            write_beside(self, 409);
            expect_silence(self, 100);
        }
        size_t count = fake_count(self->world.server);
        while (fake_count(self->world.server) == count)
            advance(&self->world, 100);
    }
    fake_head(expect_resumed(self, "b", 4, 5), 200);
}

/* A connection that brings no end in time has been dead for up to 25 s. All that follows within 30
 * s is one attempt to make another; a server that is slow has more time for the next. */
static void test_reflector_connects_in_a_hurry_once_after_a_dead_connection(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *watch = till_watching(self);
    assert_int_equal(watch->deadlines.connect_ms, 10000);
    advance(&self->world, 25000);
    struct fake_call *next = next_call(self);
    assert_in_range(next->deadlines.connect_ms, 1000, 5000);
    fake_fail(next, ML_ETIMEOUT, "connect to api:6443: no connection within 4 s");
    advance(&self->world, 4000);
    next = next_call(self);
    assert_int_equal(next->deadlines.connect_ms, 10000);
}

/* The first try is so short that a connection which is dead is left within 30 s. */
static void test_reflector_gives_a_slow_list_more_time_after_the_first_try(void **state)
{
    struct reflector_world *self = *state;
    struct fake_call *list = expect_list(self, "");
    assert_in_range(list->deadlines.first_byte_ms, 20000, 30000);
    for (int i = 0; i < 3; i++) {
        fake_fail(list, ML_ETIMEOUT, "no answer from api:6443 within 25 s");
        advance(&self->world, 30000);
        list = expect_list(self, "");
        assert_int_equal(list->deadlines.first_byte_ms, 60000);
    }
    ml_buf_clear(&self->heard);
    reply_list(list, 4, "", "");
    assert_heard(self, "replace 4: trouble(over)");
}

/* ---- a server that restarts ----
 * It opens each watch, and says in it that the version is gone. */

static void fail_for_a_minute(struct reflector_world *self)
{
    for (int i = 0; i < 6; i++)
        look_in_vain(self);
}

static void test_reflector_lists_soon_after_a_server_that_was_away_restarts(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    fail_for_a_minute(self);
    ml_buf_clear(&self->heard);
    struct fake_call *watch = expect_resumed(self, "b", 4, 9);
    fake_head(watch, 200);
    assert_heard(self, ""); /* not well yet */
    ML_AUTO_FREE char *line = event_line(
        "ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
    assert_false(fake_piece(watch, line));
    expect_short_backoff(self);
    reply_list(expect_list(self, "5"), 9, "", "");
    assert_heard(self, "replace 9: trouble(over)");
}

static void test_reflector_is_well_with_the_first_event(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    look_in_vain(self);
    ml_buf_clear(&self->heard);
    struct fake_call *watch = expect_resumed(self, "b", 4, 9);
    fake_head(watch, 200);
    assert_heard(self, "");
    send_event(watch, "MODIFIED", pod("b", "ub", 8));
    assert_heard(self, "upsert b@8 trouble(over)");
}

static void test_reflector_is_well_when_its_watch_stays_open_for_a_second(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    look_in_vain(self);
    ml_buf_clear(&self->heard);
    fake_head(expect_resumed(self, "b", 4, 9), 200);
    advance(&self->world, 999);
    assert_heard(self, "");
    advance(&self->world, 1);
    assert_heard(self, "trouble(over)");
}

/* Answers of a server that starts: the reflector tries again within two seconds of each. */
static void test_reflector_is_not_delayed_by_what_a_server_answers_while_it_starts(void **state)
{
    struct reflector_world *self = *state;
    static const struct {
        int status;
        const char *reason;
    } rows[] = {
        {401, "Unauthorized"}, {403, "Forbidden"},     {404, "NotFound"},
        {410, "Expired"},      {500, "InternalError"}, {503, "ServiceUnavailable"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
        reply_list(restart(self), 5, "", items);
        struct fake_call *watch = expect_watch(self, "5");
        fake_head(watch, 200);
        advance(&self->world, 5000);
        fake_end(watch);
        fail_for_a_minute(self);
        fake_refuse(next_call(self), rows[i].status, rows[i].reason, "starting");
        write_beside(self, 409);
        size_t count = fake_count(self->world.server);
        advance(&self->world, 2000);
        assert_true(fake_count(self->world.server) > count);
        while (fake_count(self->world.server) > ++count)
            next_call(self);
        next_call(self);
    }
}

/* A refusal is an answer: it says nothing against the connection. */
static void test_reflector_refused_by_an_answer_keeps_its_pace(void **state)
{
    struct reflector_world *self = *state;
    fake_refuse(expect_list(self, ""), 403, "Forbidden", "no");
    write_beside(self, 409);
    expect_brisk_backoff(self);
    expect_list(self, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reflector_looks_each_second_or_two_for_a_server_that_is_away),
        TEST(test_reflector_is_back_soon_after_the_server_answers_somebody),
        TEST(test_reflector_that_alone_is_refused_asks_no_more_than_once_a_backoff),
        TEST(test_reflector_connects_in_a_hurry_once_after_a_dead_connection),
        TEST(test_reflector_gives_a_slow_list_more_time_after_the_first_try),
        TEST(test_reflector_lists_soon_after_a_server_that_was_away_restarts),
        TEST(test_reflector_is_well_with_the_first_event),
        TEST(test_reflector_is_well_when_its_watch_stays_open_for_a_second),
        TEST(test_reflector_is_not_delayed_by_what_a_server_answers_while_it_starts),
        TEST(test_reflector_refused_by_an_answer_keeps_its_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
