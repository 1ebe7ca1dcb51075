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
        fake_fail(expect_watch(self, "5"), ML_ENETWORK, "refused");
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
    fake_head(expect_watch(self, "5"), 200);
}

static void test_reflector_is_back_soon_after_the_server_answers_somebody(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    look_in_vain(self);
    fake_fail(expect_watch(self, "5"), ML_ENETWORK, "refused");
    write_beside(self, 409);
    expect_backoff(self);
    fake_head(expect_watch(self, "5"), 200);
}

/* Of several servers behind one address one may be away for good. */
static void test_reflector_that_alone_is_refused_asks_no_more_than_once_a_backoff(void **state)
{
    struct reflector_world *self = *state;
    till_away(self);
    for (int failures = 0; failures < 20; failures++) {
        fake_fail(expect_watch(self, "5"), ML_ENETWORK, "refused");
        for (int ms = 0; ms < 700; ms += 100) {
            write_beside(self, 409);
            expect_silence(self, 100);
        }
        size_t count = fake_count(self->world.server);
        while (fake_count(self->world.server) == count)
            advance(&self->world, 100);
    }
    fake_head(expect_watch(self, "5"), 200);
}

/* What is refused by an answer has nothing to do with whether there are answers. */
static void test_reflector_refused_by_an_answer_keeps_its_pace(void **state)
{
    struct reflector_world *self = *state;
    fake_refuse(expect_list(self, ""), 403, "Forbidden", "no");
    write_beside(self, 409);
    expect_silence(self, 9999);
    advance(&self->world, 1001);
    expect_list(self, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_reflector_looks_each_second_or_two_for_a_server_that_is_away),
        TEST(test_reflector_is_back_soon_after_the_server_answers_somebody),
        TEST(test_reflector_that_alone_is_refused_asks_no_more_than_once_a_backoff),
        TEST(test_reflector_refused_by_an_answer_keeps_its_pace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
