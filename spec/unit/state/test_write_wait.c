#include "state_informers.h"

#include "state/write_wait.h"

#define POD_A "/api/v1/namespaces/default/pods/a"

struct wait_world {
    struct informers_world all;
    struct ml_informer *informer;
    struct fake_call *watch; /* open, at version 5 */
    struct ml_write_wait wait;
    struct ml_listener listener;
    struct ml_buf heard; /* versions that the listener got */
    int ready;
};

static void on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct wait_world *self = context;
    (void)informer;
    (void)old;
    ml_buf_printf(&self->heard, " " ML_STR_FMT, ML_STR_ARG(new ? ml_object_rv(new) : ML_STR("-")));
}

static void on_synced(void *context, struct ml_informer *informer)
{
    (void)context;
    (void)informer;
}

static void on_ready(void *context)
{
    ((struct wait_world *)context)->ready++;
}

static int setup(void **state)
{
    struct wait_world *self = ml_new(struct wait_world);
    informers_world_init(&self->all, NULL);
    self->informer = ml_informers_get(self->all.informers, &pods);
    self->watch = list_and_watch(&self->all, 5, pod("old", "uo", 3));
    self->listener = (struct ml_listener){
        .change = on_change, .synced = on_synced, .context = self};
    ml_informer_listen(self->informer, &self->listener);
    ml_loop_poll(self->all.world.loop);
    ml_buf_clear(&self->heard);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct wait_world *self = *state;
    ml_write_wait_cancel(&self->wait);
    ml_informer_unlisten(&self->listener);
    ml_informer_put(self->informer);
    ml_loop_poll(self->all.world.loop);
    informers_world_fini(&self->all);
    ml_buf_fini(&self->heard);
    free(self);
    return 0;
}

static void wait_for(struct wait_world *self, const char *name, uint64_t rv)
{
    ml_write_wait_start(&self->wait, self->informer, ML_STR("default"), ml_str_of(name), rv,
                        on_ready, self);
}

/* Keeps the watch alive, and at its version. */
static void pass(struct wait_world *self, int64_t seconds)
{
    for (; seconds > 0; seconds -= 5) {
        advance(&self->all.world, 5000);
        send_bookmark(self->watch, 5);
        ml_loop_poll(self->all.world.loop);
    }
}

static const char *held_rv(struct wait_world *self, const char *key)
{
    static char text[24];
    struct ml_object *object = ml_store_get(ml_informer_store(self->informer), ml_str_of(key));
    snprintf(text, sizeof text, ML_STR_FMT, ML_STR_ARG(object ? ml_object_rv(object) : ML_STR("")));
    return text;
}

static void test_write_wait_ends_with_the_watch(void **state)
{
    struct wait_world *self = *state;
    wait_for(self, "a", 8);
    assert_false(ml_write_wait_over(&self->wait));
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_true(ml_write_wait_over(&self->wait));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
    advance(&self->all.world, 60000);
    fake_expect_none(self->all.world.server);
    assert_int_equal(self->ready, 1);
}

static void test_write_wait_reads_when_the_watch_lags_and_learns_what_it_read(void **state)
{
    struct wait_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 5);
    fake_expect_none(self->all.world.server);
    pass(self, 5);
    struct fake_call *read = fake_expect(self->all.world.server, "GET", POD_A);
    assert_int_equal(self->ready, 0); /* the timer alone is no reason */
    fake_reply(read, 200, pod("a", "ua", 9));
    assert_string_equal(held_rv(self, "default/a"), "9"); /* before anybody acts */
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
    assert_string_equal(ml_buf_cstr(&self->heard), " 9");
    /* What the watch brings of it afterwards is old news. */
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_string_equal(held_rv(self, "default/a"), "9");
    assert_string_equal(ml_buf_cstr(&self->heard), " 9");
}

static void test_write_wait_goes_on_when_the_read_does_not_show_the_write(void **state)
{
    struct wait_world *self = *state;
    wait_for(self, "old", 8);
    pass(self, 10);
    const char *path = "/api/v1/namespaces/default/pods/old";
    fake_reply(fake_expect(self->all.world.server, "GET", path), 200, pod("old", "uo", 7));
    pass(self, 15);
    fake_expect_none(self->all.world.server); /* 20 s this time */
    pass(self, 5);
    fake_refuse(fake_expect(self->all.world.server, "GET", path), 500, "InternalError", "no");
    pass(self, 40);
    /* Gone, while the cache still shows it: only the watch can take that away. */
    fake_refuse(fake_expect(self->all.world.server, "GET", path), 404, "NotFound", "no");
    assert_int_equal(self->ready, 0);
    send_event(self->watch, "DELETED", pod("old", "uo", 9));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
}

static void test_write_wait_ends_when_neither_server_nor_cache_have_it(void **state)
{
    struct wait_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 10);
    fake_refuse(fake_expect(self->all.world.server, "GET", POD_A), 404, "NotFound", "no");
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
}

static void test_write_wait_asks_no_more_often_than_every_five_minutes_in_the_end(void **state)
{
    struct wait_world *self = *state;
    wait_for(self, "a", 8);
    for (int i = 0; i < 10; i++) {
        pass(self, 310);
        while (fake_waiting(self->all.world.server) > 1) /* beside the watch */
            fake_refuse(fake_next(self->all.world.server), 503, "ServiceUnavailable", "no");
    }
    /* Two hours of it: 10 + 20 + … + 160 s, then every 300 s. */
    assert_in_range(fake_count(self->all.world.server), 10, 20);
    assert_int_equal(self->ready, 0);
}

static void test_write_wait_watch_may_be_faster_than_its_read(void **state)
{
    struct wait_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 10);
    struct fake_call *read = fake_expect(self->all.world.server, "GET", POD_A);
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    fake_reply(read, 200, pod("a", "ua", 8));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
}

static void test_write_wait_canceled_while_it_reads_is_silent(void **state)
{
    struct wait_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 10);
    struct fake_call *read = fake_expect(self->all.world.server, "GET", POD_A);
    ml_write_wait_cancel(&self->wait);
    assert_true(read->canceled);
    send_bookmark(self->watch, 9);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 0);
}

static void test_write_wait_zeroed_may_be_canceled(void **state)
{
    (void)state;
    struct ml_write_wait wait = {0};
    ml_write_wait_cancel(&wait);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_write_wait_ends_with_the_watch),
        TEST(test_write_wait_reads_when_the_watch_lags_and_learns_what_it_read),
        TEST(test_write_wait_goes_on_when_the_read_does_not_show_the_write),
        TEST(test_write_wait_ends_when_neither_server_nor_cache_have_it),
        TEST(test_write_wait_asks_no_more_often_than_every_five_minutes_in_the_end),
        TEST(test_write_wait_watch_may_be_faster_than_its_read),
        TEST(test_write_wait_canceled_while_it_reads_is_silent),
        cmocka_unit_test(test_write_wait_zeroed_may_be_canceled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
