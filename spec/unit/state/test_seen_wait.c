#include "state_informers.h"

static const struct ml_kind nodes = {"v1", "", "v1", "Node", "nodes", false, true};

struct seen_world {
    struct informers_world all;
    struct ml_informer *informer;
};

static int setup(void **state)
{
    struct seen_world *self = ml_new(struct seen_world);
    informers_world_init(&self->all, NULL);
    self->informer = ml_informers_get(self->all.informers, &pods, NULL);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct seen_world *self = *state;
    ml_informer_put(self->informer);
    ml_loop_poll(self->all.world.loop);
    informers_world_fini(&self->all);
    free(self);
    return 0;
}

/* The cache is at version 5, and the watch is open. */
static struct fake_call *till_watching(struct seen_world *self)
{
    return list_and_watch(&self->all, 5, pod("a", "ua", 3));
}

static void on_ready(void *context)
{
    ++*(int *)context;
}

static void wait_start(struct seen_world *self, struct ml_seen_wait *wait, uint64_t rv, int *ready)
{
    ml_seen_wait_start(wait, self->informer, ML_STR("default"), rv, on_ready, ready);
}

static void test_seen_wait_ends_with_the_event_or_a_bookmark(void **state)
{
    struct seen_world *self = *state;
    struct fake_call *watch = till_watching(self);
    struct ml_seen_wait waits[3];
    int ready[3] = {0};
    wait_start(self, &waits[0], 8, &ready[0]);
    wait_start(self, &waits[1], 6, &ready[1]);
    wait_start(self, &waits[2], 5, &ready[2]); /* seen already */
    assert_int_equal(ready[2], 0);             /* from the loop, not inside */
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready[2], 1);
    send_event(watch, "ADDED", pod("c", "uc", 6));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready[1], 1);
    assert_false(ml_seen_wait_over(&waits[0]));
    send_bookmark(watch, 50);
    assert_true(ml_seen_wait_over(&waits[0]));
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready[0], 1);
    advance(&self->all.world, 100000);
    for (size_t i = 0; i < ML_COUNT(waits); i++) {
        assert_int_equal(ready[i], 1);
        ml_seen_wait_cancel(&waits[i]); /* fine on a finished one */
    }
}

static void test_seen_wait_has_no_time_out(void **state)
{
    struct seen_world *self = *state;
    struct fake_call *watch = till_watching(self);
    struct ml_seen_wait wait;
    int ready = 0;
    wait_start(self, &wait, 6, &ready);
    for (int i = 0; i < 50; i++) {
        advance(&self->all.world, 70000);
        send_bookmark(watch, 5);
    }
    assert_int_equal(ready, 0);
    ml_seen_wait_cancel(&wait);
    send_bookmark(watch, 7);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready, 0);
}

static void test_seen_wait_of_an_opaque_version_is_over_at_once(void **state)
{
    struct seen_world *self = *state;
    struct ml_seen_wait wait;
    int ready = 0;
    wait_start(self, &wait, ML_RV_OPAQUE, &ready);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready, 1);
}

/* A restored etcd counts from a lower number: only a list that was begun afterwards helps. */
static void test_seen_wait_ends_with_a_consistent_list_begun_after_it(void **state)
{
    struct seen_world *self = *state;
    struct fake_call *watch = till_watching(self);
    struct ml_seen_wait before, during;
    int before_ready = 0, during_ready = 0;
    wait_start(self, &before, 1000, &before_ready);
    struct fake_call *list = till_relist_restored(&self->all, watch);
    wait_start(self, &during, 999, &during_ready);
    reply_list(list, 2, "", "");
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(before_ready, 1);
    assert_int_equal(during_ready, 0);
    ml_seen_wait_cancel(&during);
}

/* A list at the last version may come from a cache: it is not newer than anything written. */
static void test_seen_wait_does_not_end_with_a_list_at_the_last_version(void **state)
{
    struct seen_world *self = *state;
    struct fake_call *watch = till_watching(self);
    struct ml_seen_wait wait;
    int ready = 0;
    wait_start(self, &wait, 1000, &ready);
    reply_list(till_relist(&self->all, watch), 7, "", "");
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready, 0);
    ml_seen_wait_cancel(&wait);
}

static void test_seen_wait_ends_with_its_informer(void **state)
{
    struct seen_world *self = *state;
    struct ml_informer *own = ml_informers_get(self->all.informers, &nodes, NULL);
    struct ml_seen_wait waits[2];
    int ready = 0;
    for (size_t i = 0; i < ML_COUNT(waits); i++)
        ml_seen_wait_start(&waits[i], own, ML_STR(""), 6, on_ready, &ready);
    ml_informer_put(own);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready, 2);
    ml_seen_wait_cancel(&waits[0]); /* its source is gone */
}

static void test_seen_wait_zeroed_may_be_canceled(void **state)
{
    (void)state;
    struct ml_seen_wait wait = {0};
    ml_seen_wait_cancel(&wait);
}

/* Canceled by another one that became ready in the same round of the loop. */
static void on_ready_cancel(void *context)
{
    ml_seen_wait_cancel(context);
}

static void test_seen_wait_canceled_by_its_neighbour_is_not_called(void **state)
{
    struct seen_world *self = *state;
    struct fake_call *watch = till_watching(self);
    struct ml_seen_wait first, second;
    int ready = 0;
    ml_seen_wait_start(&first, self->informer, ML_STR("default"), 6, on_ready_cancel, &second);
    wait_start(self, &second, 6, &ready);
    send_bookmark(watch, 6);
    ml_loop_poll(self->all.world.loop);
    assert_int_equal(ready, 0);
}

static void test_seen_wait_in_a_namespace_that_is_not_watched_is_over_at_once(void **state)
{
    (void)state;
    static const char *const namespaces[] = {"default", NULL};
    struct informers_world all;
    informers_world_init(&all, namespaces);
    struct ml_informer *informer = ml_informers_get(all.informers, &pods, NULL);
    struct ml_seen_wait wait;
    int ready = 0;
    ml_seen_wait_start(&wait, informer, ML_STR("other"), 9, on_ready, &ready);
    ml_loop_poll(all.world.loop);
    assert_int_equal(ready, 1);
    ml_informer_put(informer);
    ml_loop_poll(all.world.loop);
    informers_world_fini(&all);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_seen_wait_ends_with_the_event_or_a_bookmark),
        TEST(test_seen_wait_has_no_time_out),
        TEST(test_seen_wait_of_an_opaque_version_is_over_at_once),
        TEST(test_seen_wait_ends_with_a_consistent_list_begun_after_it),
        TEST(test_seen_wait_does_not_end_with_a_list_at_the_last_version),
        TEST(test_seen_wait_ends_with_its_informer),
        cmocka_unit_test(test_seen_wait_zeroed_may_be_canceled),
        TEST(test_seen_wait_canceled_by_its_neighbour_is_not_called),
        cmocka_unit_test(test_seen_wait_in_a_namespace_that_is_not_watched_is_over_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
