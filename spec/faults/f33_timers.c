/* F33: a million keys armed in the queue, ten thousand of them due in one second, and a week that
 * nobody was awake in: none is missed, none comes twice, the oldest comes first. */
#include "unit.h"

#include "tried.h"

#include <stdio.h>

#include "state/workqueue.h"

#define ARMED 1000000
#define RUSH  10000

struct world {
    struct ml_clock_fake clock;
    struct ml_loop *loop;
    struct ml_keys keys;
    struct ml_workqueue *queue;
    struct ml_task ready;
    uint8_t *seen; /* how often, by number */
};

static void ignore(void *context)
{
    (void)context;
}

static int set_up(void **state)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, 0);
    world->loop = ml_loop_new(&world->clock.clock);
    ml_task_init(&world->ready, ignore, world);
    world->queue = ml_workqueue_new(&(struct ml_workqueue_opts){
        .loop = world->loop, .keys = &world->keys, .name = "at", .ready = &world->ready});
    world->seen = ml_zalloc(ARMED);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ml_workqueue_free(world->queue);
    ml_keys_fini(&world->keys);
    ml_loop_poll(world->loop);
    ml_loop_free(world->loop);
    free(world->seen);
    free(world);
    return 0;
}

static void arm(struct world *world, int number, int64_t delay_ns)
{
    char key[24];
    int len = snprintf(key, sizeof key, "d/%d", number);
    ml_workqueue_add_after(world->queue, (struct ml_str){key, (size_t)len}, ML_PRIORITY_NORMAL,
                           delay_ns);
}

static void advance(struct world *world, int64_t ns)
{
    ml_clock_fake_advance(&world->clock, ns);
    ml_loop_poll(world->loop);
}

/* Hands out all that is ready. Returns how many; with `in_order` each number is above the one
 * before. */
static size_t hand_out(struct world *world, bool in_order)
{
    struct ml_str key;
    enum ml_priority priority;
    size_t count = 0;
    int64_t last = -1, number = 0;
    while (ml_workqueue_get(world->queue, ML_PRIORITY_LOW, &key, &priority)) {
        assert_true(ml_str_to_i64((struct ml_str){key.ptr + 2, key.len - 2}, &number));
        assert_true(!in_order || number > last);
        last = number;
        world->seen[number]++;
        ml_workqueue_done(world->queue, key);
        count++;
    }
    return count;
}

static void test_timers_a_rush_in_one_second_among_a_million(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < ARMED; i++)
        arm(world, i,
            i < RUSH ? 60 * ML_NS_PER_S + i * (ML_NS_PER_S / RUSH)
                     : (3600 + (int64_t)i) * ML_NS_PER_S);
    advance(world, 60 * ML_NS_PER_S - 1);
    assert_int_equal(hand_out(world, true), 0);
    advance(world, ML_NS_PER_S);
    assert_int_equal(hand_out(world, true), RUSH);
    advance(world, 3600 * ML_NS_PER_S);
    assert_int_equal(ml_workqueue_delayed(world->queue), ARMED - RUSH);
    advance(world, (int64_t)2 * ARMED * ML_NS_PER_S); /* weeks, in one leap */
    assert_int_equal(hand_out(world, true), ARMED - RUSH);
    for (int i = 0; i < ARMED; i++)
        assert_int_equal(world->seen[i], 1);
    assert_int_equal(ml_workqueue_delayed(world->queue), 0);
    faults_tried("F33", ARMED);
}

static void test_timers_at_the_very_same_instant_each_come_once(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < RUSH; i++)
        arm(world, i, ML_NS_PER_S);
    for (int i = 0; i < RUSH; i++) /* asked for again, earlier and later */
        arm(world, i, i % 2 ? 2 * ML_NS_PER_S : ML_NS_PER_S / 2);
    advance(world, 3 * ML_NS_PER_S);
    assert_int_equal(hand_out(world, false), RUSH);
    for (int i = 0; i < RUSH; i++)
        assert_int_equal(world->seen[i], 1);
    faults_tried("F33", RUSH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_timers_a_rush_in_one_second_among_a_million, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_timers_at_the_very_same_instant_each_come_once, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
