#include "state_world.h"

#include "state/workqueue.h"

struct queue_world {
    struct world world;
    struct ml_keys keys;
    struct ml_workqueue *queue;
    struct ml_task ready;
    int told; /* runs of `ready` */
};

static void on_ready(void *context)
{
    ((struct queue_world *)context)->told++;
}

static int setup(void **state)
{
    struct queue_world *self = ml_new(struct queue_world);
    world_init(&self->world);
    ml_task_init(&self->ready, on_ready, self);
    self->queue = ml_workqueue_new(&(struct ml_workqueue_opts){
        .loop = self->world.loop,
        .keys = &self->keys,
        .metrics = self->world.metrics,
        .name = "cnat",
        .ready = &self->ready,
    });
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_free(self->queue);
    ml_keys_fini(&self->keys);
    world_fini(&self->world);
    free(self);
    return 0;
}

static bool take(struct ml_workqueue *queue, struct ml_str *key)
{
    enum ml_priority priority;
    return ml_workqueue_get(queue, ML_PRIORITY_LOW, key, &priority);
}

static struct ml_str get(struct queue_world *self)
{
    struct ml_str key = {NULL, 0};
    assert_true(take(self->queue, &key));
    return key;
}

static bool is_empty(struct queue_world *self)
{
    return ml_workqueue_len(self->queue) == 0;
}

/* Returns the value on the metrics page of a series without labels of its own. */
static double metric(struct queue_world *self, const char *name)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ML_AUTO_FREE char *series = ml_asprintf("\n%s{name=\"cnat\",controller=\"cnat\"} ", name);
    ml_metrics_write(self->world.metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), series);
    assert_non_null(at);
    return strtod(at + strlen(series), NULL);
}

/* Returns the depth at a priority from the metrics page. */
static double depth(struct queue_world *self, const char *priority)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ML_AUTO_FREE char *series = ml_asprintf(
        "\nworkqueue_depth{name=\"cnat\",controller=\"cnat\",priority=\"%s\"} ", priority);
    ml_metrics_write(self->world.metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), series);
    assert_non_null(at);
    return strtod(at + strlen(series), NULL);
}

static void test_workqueue_key_added_twice_is_handed_out_once(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    assert_int_equal(ml_workqueue_len(self->queue), 2);
    assert_str_eq(get(self), "d/a");
    assert_str_eq(get(self), "d/b");
    struct ml_str none = ML_STR("untouched");
    assert_false(take(self->queue, &none));
    assert_str_eq(none, "untouched");
    assert_int_equal(ml_workqueue_processing(self->queue), 2);
}

static void test_workqueue_key_added_while_out_comes_once_more_after_done(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    struct ml_str key = get(self);
    for (int i = 0; i < 5; i++)
        ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    assert_true(is_empty(self));
    ml_workqueue_done(self->queue, key);
    key = get(self);
    assert_str_eq(key, "d/a");
    ml_workqueue_done(self->queue, key);
    assert_true(is_empty(self));
    assert_int_equal(ml_workqueue_processing(self->queue), 0);
}

static void test_workqueue_ready_is_told_from_the_loop_once_per_filling(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_NORMAL);
    assert_int_equal(self->told, 0);
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->told, 1);
    struct ml_str a = get(self);
    get(self);
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->told, 1); /* it is out: nothing to give */
    ml_workqueue_done(self->queue, a);
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->told, 2);
}

static void test_workqueue_delayed_key_comes_when_it_is_due(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 100 * ML_NS_PER_MS);
    advance(&self->world, 99);
    assert_true(is_empty(self));
    assert_int_equal(ml_workqueue_delayed(self->queue), 1);
    advance(&self->world, 1);
    assert_str_eq(get(self), "d/a");
    assert_int_equal(ml_workqueue_delayed(self->queue), 0);
}

static void test_workqueue_earliest_due_time_wins(void **state)
{
    struct queue_world *self = *state;
    static const int delays[][2] = {{50, 200}, {200, 50}};
    for (size_t i = 0; i < ML_COUNT(delays); i++) {
        ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL,
                               delays[i][0] * ML_NS_PER_MS);
        ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL,
                               delays[i][1] * ML_NS_PER_MS);
        assert_int_equal(ml_workqueue_delayed(self->queue), 1);
        advance(&self->world, 50);
        ml_workqueue_done(self->queue, get(self));
        advance(&self->world, 1000);
        assert_true(is_empty(self));
    }
}

static void test_workqueue_delays_without_length_add_at_once(void **state)
{
    struct queue_world *self = *state;
    static const int64_t delays[] = {0, -1, INT64_MIN};
    for (size_t i = 0; i < ML_COUNT(delays); i++) {
        ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, delays[i]);
        assert_int_equal(ml_workqueue_delayed(self->queue), 0);
        ml_workqueue_done(self->queue, get(self));
    }
}

static void test_workqueue_longest_delay_does_not_overflow(void **state)
{
    struct queue_world *self = *state;
    advance(&self->world, 1000);
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, INT64_MAX);
    advance(&self->world, 1000000000);
    assert_true(is_empty(self));
    assert_int_equal(ml_workqueue_delayed(self->queue), 1);
}

static void test_workqueue_immediate_add_leaves_the_delayed_one(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 100 * ML_NS_PER_MS);
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    ml_workqueue_done(self->queue, get(self));
    assert_int_equal(ml_workqueue_delayed(self->queue), 1);
    advance(&self->world, 100);
    assert_str_eq(get(self), "d/a");
}

static void test_workqueue_key_that_falls_due_while_out_waits_for_done(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    struct ml_str key = get(self);
    ml_workqueue_add_after(self->queue, key, ML_PRIORITY_NORMAL, 10 * ML_NS_PER_MS);
    advance(&self->world, 10);
    assert_true(is_empty(self));
    ml_workqueue_done(self->queue, key);
    assert_str_eq(get(self), "d/a");
}

static void test_workqueue_canceled_delay_never_comes(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 10 * ML_NS_PER_MS);
    ml_workqueue_add_after(self->queue, ML_STR("d/b"), ML_PRIORITY_NORMAL, 20 * ML_NS_PER_MS);
    ml_workqueue_cancel_after(self->queue, ML_STR("d/a"));
    ml_workqueue_cancel_after(self->queue, ML_STR("d/unknown"));
    advance(&self->world, 20);
    assert_str_eq(get(self), "d/b");
    assert_true(is_empty(self));
}

static void test_workqueue_backoff_doubles_from_5_ms_to_1000_s(void **state)
{
    struct queue_world *self = *state;
    for (int n = 0; n < 80; n++) {
        int64_t want_ms = n < 18 ? INT64_C(5) << n : 1000000;
        ml_workqueue_add_rate_limited(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 0);
        advance(&self->world, want_ms - 1);
        assert_true(is_empty(self));
        advance(&self->world, 1);
        ml_workqueue_done(self->queue, get(self));
    }
    ml_workqueue_forget(self->queue, ML_STR("d/a"));
    ml_workqueue_add_rate_limited(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 0);
    advance(&self->world, 5);
    assert_str_eq(get(self), "d/a");
}

/* Fails the key so many times more; the last backoff runs. */
static int64_t fail_times(struct queue_world *self, const char *key, int times)
{
    int64_t delay_ns = 0;
    for (int i = 0; i < times; i++) {
        if (i > 0) {
            advance(&self->world, delay_ns / ML_NS_PER_MS);
            ml_workqueue_done(self->queue, get(self));
        }
        delay_ns = ml_workqueue_add_rate_limited(self->queue, ml_str_of(key), ML_PRIORITY_NORMAL,
                                                 0);
    }
    return delay_ns;
}

static void test_workqueue_keys_that_await_the_server_are_due_when_it_answers(void **state)
{
    struct queue_world *self = *state;
    enum ml_priority priority;
    struct ml_str key;
    assert_int_equal(fail_times(self, "d/script", 12), (INT64_C(5) << 11) * ML_NS_PER_MS);
    fail_times(self, "d/server", 11);
    ml_workqueue_await_server(self->queue, ML_STR("d/server"));
    ml_workqueue_await_server(self->queue, ML_STR("d/unknown"));
    ml_workqueue_server_answers(self->queue);
    advance(&self->world, 4);
    assert_true(is_empty(self));
    advance(&self->world, 1);
    assert_int_equal(ml_workqueue_len(self->queue), 1);
    assert_false(ml_workqueue_get(self->queue, ML_PRIORITY_NORMAL, &key, &priority));
    assert_str_eq(get(self), "d/server");
    ml_workqueue_server_answers(self->queue);
    advance(&self->world, 4000);
    assert_true(is_empty(self));
}

/* The server answers others all the time, and this key never. */
static void test_workqueue_key_that_alone_is_failed_comes_ever_later(void **state)
{
    struct queue_world *self = *state;
    fail_times(self, "d/a", 19);
    for (int n = 0; n < 30; n++) {
        int64_t want_ms = n < 18 ? INT64_C(5) << n : 1000000;
        ml_workqueue_await_server(self->queue, ML_STR("d/a"));
        ml_workqueue_server_answers(self->queue);
        advance(&self->world, want_ms - 1);
        assert_true(is_empty(self));
        advance(&self->world, 1);
        ml_workqueue_done(self->queue, get(self));
        assert_true(fail_times(self, "d/a", 1) == 1000 * ML_NS_PER_S);
    }
}

static void test_workqueue_answer_never_postpones_a_key(void **state)
{
    struct queue_world *self = *state;
    fail_times(self, "d/a", 1);
    ml_workqueue_await_server(self->queue, ML_STR("d/a"));
    advance(&self->world, 3);
    ml_workqueue_server_answers(self->queue);
    advance(&self->world, 2);
    assert_str_eq(get(self), "d/a");
    ml_workqueue_done(self->queue, ML_STR("d/a"));
    /* Another delay of the key has nothing to do with the server. */
    fail_times(self, "d/a", 1);
    ml_workqueue_await_server(self->queue, ML_STR("d/a"));
    ml_workqueue_cancel_after(self->queue, ML_STR("d/a"));
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, ML_NS_PER_S);
    ml_workqueue_server_answers(self->queue);
    advance(&self->world, 999);
    assert_true(is_empty(self));
}

static void test_workqueue_forget_is_safe_whatever_the_key_does(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_forget(self->queue, ML_STR("d/unknown"));
    ml_workqueue_add_rate_limited(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 0);
    ml_workqueue_forget(self->queue, ML_STR("d/a")); /* still delayed */
    advance(&self->world, 5);
    struct ml_str key = get(self);
    ml_workqueue_forget(self->queue, key); /* out: the slice stays valid */
    assert_str_eq(key, "d/a");
    ml_workqueue_done(self->queue, key);
}

static void test_workqueue_shut_down_takes_nothing_more(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/out"), ML_PRIORITY_NORMAL);
    struct ml_str out = get(self);
    ml_workqueue_add(self->queue, ML_STR("d/out"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/queued"), ML_PRIORITY_NORMAL);
    ml_workqueue_add_after(self->queue, ML_STR("d/later"), ML_PRIORITY_NORMAL, ML_NS_PER_S);
    ml_workqueue_shut_down(self->queue);
    ml_workqueue_add(self->queue, ML_STR("d/new"), ML_PRIORITY_NORMAL);
    ml_workqueue_add_after(self->queue, ML_STR("d/new"), ML_PRIORITY_NORMAL, 1);
    ml_workqueue_add_rate_limited(self->queue, ML_STR("d/new"), ML_PRIORITY_NORMAL, 0);
    assert_int_equal(ml_workqueue_delayed(self->queue), 0);
    ml_workqueue_done(self->queue, out);
    assert_str_eq(get(self), "d/queued");
    advance(&self->world, 10000);
    assert_true(is_empty(self));
}

static void test_workqueue_counts_under_the_names_of_client_go(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_NORMAL);
    ml_workqueue_add_after(self->queue, ML_STR("d/c"), ML_PRIORITY_NORMAL, ML_NS_PER_S);
    assert_true(metric(self, "workqueue_adds_total") == 2);
    assert_true(metric(self, "workqueue_retries_total") == 1);
    assert_true(depth(self, "0") == 2);
    advance(&self->world, 500);
    struct ml_str a = get(self);
    assert_true(metric(self, "workqueue_queue_duration_seconds_count") == 1);
    assert_true(metric(self, "workqueue_queue_duration_seconds_sum") == 0.5);
    advance(&self->world, 250);
    get(self);
    advance(&self->world, 250);
    assert_true(metric(self, "workqueue_unfinished_work_seconds") == 0.75);
    assert_true(metric(self, "workqueue_longest_running_processor_seconds") == 0.5);
    ml_workqueue_done(self->queue, a);
    assert_true(metric(self, "workqueue_work_duration_seconds_sum") == 0.5);
    assert_true(metric(self, "workqueue_adds_total") == 3); /* c fell due */
}

static void test_workqueue_without_metrics_works(void **state)
{
    struct queue_world *self = *state;
    struct ml_keys keys = {0};
    struct ml_workqueue *bare = ml_workqueue_new(&(struct ml_workqueue_opts){
        .loop = self->world.loop, .keys = &keys, .name = "bare", .ready = &self->ready});
    struct ml_str key;
    ml_workqueue_add(bare, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    assert_true(take(bare, &key));
    ml_workqueue_done(bare, key);
    ml_workqueue_free(bare);
    ml_keys_fini(&keys);
    ml_workqueue_free(NULL);
}

static void test_workqueue_keeps_nothing_of_a_removed_key(void **state)
{
    struct queue_world *self = *state;
    struct ml_str key = ML_STR("d/a");
    ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL); /* ready */
    ml_workqueue_remove(self->queue, key);
    assert_true(is_empty(self));
    assert_int_equal(ml_keys_len(&self->keys), 0);
    ml_workqueue_add_rate_limited(self->queue, key, ML_PRIORITY_NORMAL, 0); /* backs off */
    ml_workqueue_remove(self->queue, key);
    assert_int_equal(ml_workqueue_delayed(self->queue), 0);
    assert_int_equal(ml_keys_len(&self->keys), 0);
    ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL); /* out, and added again meanwhile */
    struct ml_str out = get(self);
    ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
    ml_workqueue_remove(self->queue, key);
    assert_int_equal(ml_workqueue_processing(self->queue), 1);
    ml_workqueue_done(self->queue, out);
    assert_true(is_empty(self));
    assert_int_equal(ml_keys_len(&self->keys), 0);
}

static void test_workqueue_higher_priority_overtakes_in_order_of_addition(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/low1"), ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, ML_STR("d/low2"), ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, ML_STR("d/edit1"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/edit2"), ML_PRIORITY_NORMAL);
    assert_str_eq(get(self), "d/edit1");
    assert_str_eq(get(self), "d/edit2");
    assert_str_eq(get(self), "d/low1");
    assert_str_eq(get(self), "d/low2");
}

static void test_workqueue_key_that_waits_rises_and_never_sinks(void **state)
{
    struct queue_world *self = *state;
    struct ml_str key;
    enum ml_priority priority;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, ML_STR("d/c"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_NORMAL);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_LOW);
    assert_int_equal(ml_workqueue_len(self->queue), 3);
    assert_str_eq(get(self), "d/c");
    assert_true(ml_workqueue_get(self->queue, ML_PRIORITY_LOW, &key, &priority));
    assert_str_eq(key, "d/b");
    assert_int_equal(priority, ML_PRIORITY_NORMAL);
    assert_true(ml_workqueue_get(self->queue, ML_PRIORITY_LOW, &key, &priority));
    assert_str_eq(key, "d/a");
    assert_int_equal(priority, ML_PRIORITY_LOW);
}

static void test_workqueue_key_that_is_out_comes_back_at_the_priority_it_was_raised_to(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_LOW);
    struct ml_str key = get(self);
    ml_workqueue_add(self->queue, key, ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
    ml_workqueue_done(self->queue, key);
    assert_str_eq(get(self), "d/a");
    assert_str_eq(get(self), "d/b");
    assert_true(is_empty(self));
}

static void
test_workqueue_delayed_key_keeps_the_earliest_time_and_the_highest_priority(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_LOW, 10 * ML_NS_PER_MS);
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 20 * ML_NS_PER_MS);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_LOW);
    advance(&self->world, 10);
    assert_str_eq(get(self), "d/a");
    assert_str_eq(get(self), "d/b");
    advance(&self->world, 10);
    assert_true(is_empty(self));
}

static void test_workqueue_get_leaves_what_is_lower_than_asked(void **state)
{
    struct queue_world *self = *state;
    struct ml_str key = ML_STR("untouched");
    enum ml_priority priority;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_LOW);
    assert_false(ml_workqueue_get(self->queue, ML_PRIORITY_NORMAL, &key, &priority));
    assert_str_eq(key, "untouched");
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->told, 1);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_NORMAL);
    ml_loop_poll(self->world.loop);
    assert_int_equal(self->told, 2); /* low ones waited, but this one need not */
    assert_true(ml_workqueue_get(self->queue, ML_PRIORITY_NORMAL, &key, &priority));
    assert_str_eq(key, "d/b");
}

static void test_workqueue_added_now_and_in_1_s_and_in_10_s_comes_now_and_in_1_s(void **state)
{
    struct queue_world *self = *state;
    int came[12] = {0};
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, 10 * ML_NS_PER_S);
    ml_workqueue_add_after(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL, ML_NS_PER_S);
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_NORMAL);
    for (size_t second = 0; second < ML_COUNT(came); second++, advance(&self->world, 1000))
        for (struct ml_str key; take(self->queue, &key); ml_workqueue_done(self->queue, key))
            came[second]++;
    for (size_t second = 0; second < ML_COUNT(came); second++)
        assert_int_equal(came[second], second < 2);
}

static void test_workqueue_tells_its_depth_by_priority(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add(self->queue, ML_STR("d/a"), ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, ML_STR("d/b"), ML_PRIORITY_LOW);
    ml_workqueue_add(self->queue, ML_STR("d/c"), ML_PRIORITY_NORMAL);
    assert_true(depth(self, "-100") == 2);
    assert_true(depth(self, "0") == 1);
    get(self);
    assert_true(depth(self, "0") == 0);
}

/* Everything at random; what must hold at every step is that no key is out twice, and at the
 * end that each key that was added after its last run began has run again. */
static void test_workqueue_never_hands_out_a_key_twice_under_random_use(void **state)
{
    enum { KEYS = 12, STEPS = 20000 };
    struct queue_world *self = *state;
    struct ml_str out[KEYS] = {{NULL, 0}};
    bool owed[KEYS] = {false};
    char names[KEYS][8];
    for (size_t i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "d/%c", 'a' + (int)i);
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)ml_random_between(&self->world.random, 0, KEYS);
        struct ml_str key = ml_str_of(names[i]);
        int64_t delay_ns = ml_random_between(&self->world.random, 0, 50) * ML_NS_PER_MS;
        switch (ml_random_between(&self->world.random, 0, 7)) {
        case 0:
            ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
            owed[i] = true;
            break;
        case 1:
            ml_workqueue_add_after(self->queue, key, ML_PRIORITY_NORMAL, delay_ns);
            break;
        case 2:
            ml_workqueue_add_rate_limited(self->queue, key, ML_PRIORITY_NORMAL, 0);
            break;
        case 3:
            ml_workqueue_forget(self->queue, key);
            break;
        case 4:
            advance(&self->world, delay_ns / ML_NS_PER_MS);
            break;
        case 5:
            if (take(self->queue, &key)) {
                i = (size_t)(key.ptr[2] - 'a');
                assert_null(out[i].ptr);
                out[i] = key;
                owed[i] = false;
            }
            break;
        case 6:
            if (out[i].ptr)
                ml_workqueue_done(self->queue, out[i]);
            out[i].ptr = NULL;
            break;
        }
    }
    for (size_t i = 0; i < KEYS; i++)
        if (out[i].ptr)
            ml_workqueue_done(self->queue, out[i]);
    for (struct ml_str key; take(self->queue, &key); ml_workqueue_done(self->queue, key))
        owed[key.ptr[2] - 'a'] = false;
    for (size_t i = 0; i < KEYS; i++)
        assert_false(owed[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void fail_once(struct queue_world *self, struct ml_str key)
{
    ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
    struct ml_str out = get(self);
    ml_workqueue_add_rate_limited(self->queue, out, ML_PRIORITY_NORMAL, 0);
    ml_workqueue_done(self->queue, out);
}

static void test_workqueue_next_leaves_out_what_fails_again_and_again(void **state)
{
    struct queue_world *self = *state;
    int64_t now = ml_clock_monotonic(ml_loop_clock(self->world.loop));
    assert_int_equal(ml_workqueue_next(self->queue, 2), INT64_MAX);
    fail_once(self, ML_STR("d/b"));
    assert_int_equal(ml_workqueue_next(self->queue, 2), now + 5 * ML_NS_PER_MS);
    fail_once(self, ML_STR("d/b"));
    assert_int_equal(ml_workqueue_next(self->queue, 2), INT64_MAX);
    assert_int_equal(ml_workqueue_next(self->queue, 3), now + 5 * ML_NS_PER_MS);
    ml_workqueue_add_after(self->queue, ML_STR("d/c"), ML_PRIORITY_NORMAL, ML_NS_PER_S);
    assert_int_equal(ml_workqueue_next(self->queue, 2), now + ML_NS_PER_S);
    ml_workqueue_add(self->queue, ML_STR("d/d"), ML_PRIORITY_NORMAL);
    assert_int_equal(ml_workqueue_next(self->queue, 2), 0);
    get(self);
    assert_int_equal(ml_workqueue_next(self->queue, 2), 0); /* it is out */
    ml_workqueue_done(self->queue, ML_STR("d/d"));
}

static void test_workqueue_failing_keys_are_those_to_be_tried_again(void **state)
{
    struct queue_world *self = *state;
    ml_workqueue_add_after(self->queue, ML_STR("d/z"), ML_PRIORITY_NORMAL, ML_NS_PER_S);
    assert_int_equal(ml_workqueue_failing(self->queue, ML_STR("d/z")).count, 0);
    fail_once(self, ML_STR("d/b"));
    fail_once(self, ML_STR("d/a"));
    fail_once(self, ML_STR("d/b"));
    struct ml_workqueue_failing failing = ml_workqueue_failing(self->queue, ML_STR("d/z"));
    assert_int_equal(failing.count, 2);
    assert_str_eq(failing.key, "d/a");
    assert_int_equal(failing.failures, 1);
    failing = ml_workqueue_failing(self->queue, ML_STR("d/b"));
    assert_str_eq(failing.key, "d/b");
    assert_int_equal(failing.failures, 2);
    ml_workqueue_cancel_after(self->queue, ML_STR("d/b")); /* not by itself */
    ml_workqueue_forget(self->queue, ML_STR("d/a"));
    assert_int_equal(ml_workqueue_failing(self->queue, ML_STR("")).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_workqueue_key_added_twice_is_handed_out_once),
        TEST(test_workqueue_next_leaves_out_what_fails_again_and_again),
        TEST(test_workqueue_failing_keys_are_those_to_be_tried_again),
        TEST(test_workqueue_key_added_while_out_comes_once_more_after_done),
        TEST(test_workqueue_ready_is_told_from_the_loop_once_per_filling),
        TEST(test_workqueue_delayed_key_comes_when_it_is_due),
        TEST(test_workqueue_earliest_due_time_wins),
        TEST(test_workqueue_delays_without_length_add_at_once),
        TEST(test_workqueue_longest_delay_does_not_overflow),
        TEST(test_workqueue_immediate_add_leaves_the_delayed_one),
        TEST(test_workqueue_key_that_falls_due_while_out_waits_for_done),
        TEST(test_workqueue_canceled_delay_never_comes),
        TEST(test_workqueue_backoff_doubles_from_5_ms_to_1000_s),
        TEST(test_workqueue_keys_that_await_the_server_are_due_when_it_answers),
        TEST(test_workqueue_key_that_alone_is_failed_comes_ever_later),
        TEST(test_workqueue_answer_never_postpones_a_key),
        TEST(test_workqueue_forget_is_safe_whatever_the_key_does),
        TEST(test_workqueue_shut_down_takes_nothing_more),
        TEST(test_workqueue_counts_under_the_names_of_client_go),
        TEST(test_workqueue_without_metrics_works),
        TEST(test_workqueue_keeps_nothing_of_a_removed_key),
        TEST(test_workqueue_higher_priority_overtakes_in_order_of_addition),
        TEST(test_workqueue_key_that_waits_rises_and_never_sinks),
        TEST(test_workqueue_key_that_is_out_comes_back_at_the_priority_it_was_raised_to),
        TEST(test_workqueue_delayed_key_keeps_the_earliest_time_and_the_highest_priority),
        TEST(test_workqueue_get_leaves_what_is_lower_than_asked),
        TEST(test_workqueue_added_now_and_in_1_s_and_in_10_s_comes_now_and_in_1_s),
        TEST(test_workqueue_tells_its_depth_by_priority),
        TEST(test_workqueue_never_hands_out_a_key_twice_under_random_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
