/* When the expectations ask the server: a write that the watch is late to bring, and an object that
 * the cache may show wrongly. */
#include "state_informers.h"

#include "state/expectations.h"

#define POD_A "/api/v1/namespaces/default/pods/a"
#define KEY   ML_STR("default/owner")

struct read_world {
    struct informers_world all;
    struct ml_keys keys;
    struct ml_informer *informer;
    struct fake_call *watch; /* open, at version 5 */
    struct ml_expectations *expectations;
    struct ml_listener listener;
    struct ml_buf heard; /* versions that the listener got */
    int ready;
    struct ml_dict *dict;
    struct ml_object *object; /* default/a, of uid ua, at version 5 */
    int verified;
    int kind; /* of the error of the last of these */
};

static void on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct read_world *self = context;
    (void)informer;
    (void)old;
    ml_buf_printf(&self->heard, " " ML_STR_FMT, ML_STR_ARG(new ? ml_object_rv(new) : ML_STR("-")));
}

static void on_synced(void *context, struct ml_informer *informer)
{
    (void)context;
    (void)informer;
}

static void on_ready(void *context, struct ml_str key)
{
    (void)key;
    ((struct read_world *)context)->ready++;
}

static void on_verified(void *context, const struct ml_err *err)
{
    struct read_world *self = context;
    self->verified++;
    self->kind = err ? err->kind : 0;
}

static struct ml_object *object_at(struct read_world *self, int rv)
{
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(
        ml_object_new(self->dict, "v1", "Pod", ml_str_of(pod("a", "ua", rv)), &object, &err), 0);
    return object;
}

static int setup(void **state)
{
    struct read_world *self = ml_new(struct read_world);
    informers_world_init(&self->all, NULL);
    self->informer = ml_informers_get(self->all.informers, &pods, NULL);
    self->watch = list_and_watch(&self->all, 5, pod("old", "uo", 3));
    self->listener = (struct ml_listener){
        .change = on_change, .synced = on_synced, .context = self};
    ml_informer_listen(self->informer, &self->listener);
    ml_loop_poll(self->all.world.loop);
    ml_buf_clear(&self->heard);
    self->expectations = ml_expectations_new(
        &self->keys, self->all.world.loop, self->all.world.client, self->all.world.metrics, "cnat");
    self->dict = ml_dict_new();
    self->object = object_at(self, 5);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct read_world *self = *state;
    ml_expectations_free(self->expectations);
    ml_keys_fini(&self->keys);
    ml_informer_unlisten(&self->listener);
    ml_informer_put(self->informer);
    ml_loop_poll(self->all.world.loop);
    ml_object_unref(self->object);
    ml_dict_unref(self->dict);
    informers_world_fini(&self->all);
    ml_buf_fini(&self->heard);
    free(self);
    return 0;
}

static void wrote(struct read_world *self, const char *name, uint64_t rv)
{
    ml_expectations_wrote(self->expectations, KEY, self->informer, ML_STR("default"),
                          ml_str_of(name), rv);
}

static bool satisfied(struct read_world *self)
{
    return ml_expectations_satisfied(self->expectations, KEY, on_ready, self);
}

/* A write of default/`name`, and the key that waits for it. */
static void wait_for(struct read_world *self, const char *name, uint64_t rv)
{
    wrote(self, name, rv);
    assert_false(satisfied(self));
}

/* Keeps the watch alive, and at its version. */
static void pass(struct read_world *self, int64_t seconds)
{
    for (; seconds > 0; seconds -= 5) {
        advance(&self->all.world, 5000);
        send_bookmark(self->watch, 5);
        ml_loop_poll(self->all.world.loop);
    }
}

static const char *held_rv(struct read_world *self, const char *key)
{
    static char text[24];
    struct ml_object *object = ml_store_get(ml_informer_store(self->informer), ml_str_of(key));
    snprintf(text, sizeof text, ML_STR_FMT, ML_STR_ARG(object ? ml_object_rv(object) : ML_STR("")));
    return text;
}

static struct fake_call *expect_read(struct read_world *self)
{
    return fake_expect(self->all.world.server, "GET", POD_A);
}

/* ---- a write that the watch is late to bring ---- */

static void test_read_is_not_needed_when_the_watch_brings_the_write(void **state)
{
    struct read_world *self = *state;
    wait_for(self, "a", 8);
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_true(ml_expectations_shown(self->expectations, KEY, self->informer));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
    advance(&self->all.world, 60000);
    fake_expect_none(self->all.world.server);
    assert_int_equal(self->ready, 1);
}

static void test_read_frees_the_key_and_is_in_the_cache_before(void **state)
{
    struct read_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 5);
    fake_expect_none(self->all.world.server);
    pass(self, 5);
    struct fake_call *read = expect_read(self);
    assert_int_equal(self->ready, 0); /* the timer alone is no reason */
    fake_reply(read, 200, pod("a", "ua", 9));
    assert_string_equal(held_rv(self, "default/a"), "9"); /* before anybody acts */
    assert_int_equal(self->ready, 0);                     /* from the loop, not inside */
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
    assert_string_equal(ml_buf_cstr(&self->heard), " 9");
    /* A later event of the watch with an older version is old news. */
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_string_equal(held_rv(self, "default/a"), "9");
    assert_string_equal(ml_buf_cstr(&self->heard), " 9");
}

static void test_read_that_does_not_show_the_write_is_repeated(void **state)
{
    struct read_world *self = *state;
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

static void test_read_finds_what_neither_server_nor_cache_have(void **state)
{
    struct read_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 10);
    fake_refuse(expect_read(self), 404, "NotFound", "no");
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
}

static void test_read_comes_no_more_often_than_every_five_minutes_in_the_end(void **state)
{
    struct read_world *self = *state;
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

static void test_read_may_be_slower_than_the_watch(void **state)
{
    struct read_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 10);
    struct fake_call *read = expect_read(self);
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    fake_reply(read, 200, pod("a", "ua", 8));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
}

static void test_read_of_a_key_that_is_forgotten_is_canceled(void **state)
{
    struct read_world *self = *state;
    wait_for(self, "a", 8);
    pass(self, 10);
    struct fake_call *read = expect_read(self);
    ml_expectations_clear(self->expectations, KEY, false);
    assert_true(read->canceled);
    send_bookmark(self->watch, 9);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 0);
    assert_int_equal(ml_expectations_len(self->expectations), 0);
}

/* Two objects of a kind: each has to show. */
static void test_read_is_one_for_each_object_that_was_written(void **state)
{
    struct read_world *self = *state;
    wrote(self, "a", 8);
    wrote(self, "b", 9);
    assert_false(satisfied(self));
    pass(self, 10);
    struct fake_call *one = fake_next(self->all.world.server);
    struct fake_call *other = fake_next(self->all.world.server);
    bool is_a = strstr(one->path, "/pods/a") != NULL;
    fake_reply(is_a ? one : other, 200, pod("a", "ua", 8));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 0);
    fake_reply(is_a ? other : one, 200, pod("b", "ub", 9));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
}

/* The newest of them, ten seconds after that one. */
static void test_read_is_one_for_all_writes_of_an_object(void **state)
{
    struct read_world *self = *state;
    wrote(self, "a", 8);
    pass(self, 5);
    wrote(self, "a", 12);
    wrote(self, "a", 10); /* answered out of order */
    assert_false(satisfied(self));
    pass(self, 5);
    fake_expect_none(self->all.world.server);
    pass(self, 5);
    struct fake_call *read = expect_read(self);
    fake_expect_none(self->all.world.server);
    fake_reply(read, 200, pod("a", "ua", 10));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 0);
    pass(self, 20);
    fake_reply(expect_read(self), 200, pod("a", "ua", 12));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(self->ready, 1);
}

/* ---- an object that the cache may show wrongly ---- */

static struct ml_live_read *verify(struct read_world *self, struct ml_object *object)
{
    self->verified = 0;
    return ml_expectations_verify(self->expectations, &pods, object, on_verified, self);
}

/* A run of default/a, and whether the server is asked before the next one. */
static bool is_stale_after_run(struct read_world *self, bool child_goes, bool good)
{
    const struct ml_str key = ml_object_key(self->object);
    assert_true(ml_expectations_satisfied(self->expectations, key, on_ready, self));
    if (child_goes)
        ml_expectations_child_deleted(self->expectations, key);
    ml_expectations_ended(self->expectations, key, good);
    struct ml_live_read *live_read = verify(self, self->object);
    ml_live_read_cancel(live_read);
    if (live_read)
        assert_true(expect_read(self)->canceled);
    return live_read != NULL;
}

static void go_stale(struct read_world *self)
{
    ml_expectations_child_deleted(self->expectations, ml_object_key(self->object));
}

static void test_live_read_is_for_what_may_be_stale(void **state)
{
    struct read_world *self = *state;
    assert_null(verify(self, self->object));
    ml_live_read_cancel(NULL);
    fake_expect_none(self->all.world.server);
}

static void test_live_read_finds_the_very_object_at_any_version(void **state)
{
    struct read_world *self = *state;
    go_stale(self);
    verify(self, self->object);
    fake_reply(expect_read(self), 200, pod("a", "ua", 77));
    assert_int_equal(self->verified, 1);
    assert_int_equal(self->kind, 0);
}

static void test_live_read_finds_another_one_or_one_that_goes_or_none(void **state)
{
    struct read_world *self = *state;
    static const char going[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                                "\"a\",\"namespace\":\"default\",\"uid\":\"ua\","
                                "\"resourceVersion\":\"6\","
                                "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}";
    const char *const found[] = {pod("a", "ub", 77), going, "{}"};
    go_stale(self);
    for (size_t i = 0; i < ML_COUNT(found); i++) {
        verify(self, self->object);
        fake_reply(expect_read(self), 200, found[i]);
        assert_int_equal(self->kind, ML_ECONFLICT);
    }
    verify(self, self->object);
    fake_refuse(expect_read(self), 404, "NotFound", "pods \"a\" not found");
    assert_int_equal(self->kind, ML_ECONFLICT);
    verify(self, self->object);
    fake_refuse(expect_read(self), 403, "Forbidden", "no");
    assert_int_equal(self->kind, ML_EFORBIDDEN);
    assert_true(is_stale_after_run(self, false, true)); /* none of these was good news */
}

static void test_live_read_canceled_is_silent(void **state)
{
    struct read_world *self = *state;
    go_stale(self);
    struct ml_live_read *live_read = verify(self, self->object);
    expect_read(self);
    ml_live_read_cancel(live_read);
    assert_int_equal(self->verified, 0);
}

/* Until the server has shown the object and a run was good; a child that goes meanwhile begins it
 * anew. */
static void test_live_read_after_a_child_has_gone_goes_on_till_a_good_run(void **state)
{
    struct read_world *self = *state;
    go_stale(self);
    verify(self, self->object);
    fake_reply(expect_read(self), 200, pod("a", "ua", 5));
    assert_true(is_stale_after_run(self, false, false));
    assert_true(is_stale_after_run(self, true, true));
    assert_true(is_stale_after_run(self, false, true)); /* not shown since */
    verify(self, self->object);
    fake_reply(expect_read(self), 200, pod("a", "ua", 5));
    assert_false(is_stale_after_run(self, false, true));
    assert_int_equal(ml_expectations_len(self->expectations), 0);
}

static void test_live_read_after_a_conflict_is_for_that_version(void **state)
{
    struct read_world *self = *state;
    struct ml_object *newer = object_at(self, 6);
    ml_expectations_conflict(self->expectations, self->object);
    assert_null(verify(self, newer));
    assert_true(is_stale_after_run(self, false, false));
    assert_false(is_stale_after_run(self, false, true));
    ml_expectations_conflict(self->expectations, self->object);
    ml_expectations_conflict(self->expectations, newer);
    assert_null(verify(self, self->object));
    go_stale(self); /* counts for more than a conflict, before or after it */
    ml_expectations_conflict(self->expectations, newer);
    assert_true(is_stale_after_run(self, false, true));
    ml_object_unref(newer);
}

static void test_live_read_is_forgotten_with_the_object(void **state)
{
    struct read_world *self = *state;
    go_stale(self);
    ml_expectations_clear(self->expectations, ml_object_key(self->object), false);
    assert_null(verify(self, self->object));
    assert_int_equal(ml_expectations_len(self->expectations), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_read_is_not_needed_when_the_watch_brings_the_write),
        TEST(test_read_frees_the_key_and_is_in_the_cache_before),
        TEST(test_read_that_does_not_show_the_write_is_repeated),
        TEST(test_read_finds_what_neither_server_nor_cache_have),
        TEST(test_read_comes_no_more_often_than_every_five_minutes_in_the_end),
        TEST(test_read_may_be_slower_than_the_watch),
        TEST(test_read_of_a_key_that_is_forgotten_is_canceled),
        TEST(test_read_is_one_for_each_object_that_was_written),
        TEST(test_read_is_one_for_all_writes_of_an_object),
        TEST(test_live_read_is_for_what_may_be_stale),
        TEST(test_live_read_finds_the_very_object_at_any_version),
        TEST(test_live_read_finds_another_one_or_one_that_goes_or_none),
        TEST(test_live_read_canceled_is_silent),
        TEST(test_live_read_after_a_child_has_gone_goes_on_till_a_good_run),
        TEST(test_live_read_after_a_conflict_is_for_that_version),
        TEST(test_live_read_is_forgotten_with_the_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
