/* May this key run, is this change its own write, does the cache show what its run wrote?
 * test_expectations_read.c tests the reads that the server is asked for. */
#include "state_informers.h"

#include "state/expectations.h"

static const struct ml_kind services = {"v1", "", "v1", "Service", "services", true, true};

struct expectations_world {
    struct informers_world all;
    struct ml_keys keys;
    struct ml_informer *informer;
    struct fake_call *watch; /* open, at version 5 */
    struct ml_expectations *expectations;
    struct ml_buf freed; /* the keys that ready() named */
};

static void on_ready(void *context, struct ml_str key)
{
    struct expectations_world *self = context;
    ml_buf_printf(&self->freed, " " ML_STR_FMT, ML_STR_ARG(key));
    assert_true(ml_expectations_satisfied(self->expectations, key, on_ready,
                                          self)); /* what it says is so */
}

/* Of the run that waits. */
static void on_shown(void *context, struct ml_str key)
{
    struct expectations_world *self = context;
    assert_str_eq(key, "default/a");
    ml_buf_puts(&self->freed, " shown");
}

static int setup(void **state)
{
    struct expectations_world *self = ml_new(struct expectations_world);
    informers_world_init(&self->all, NULL);
    self->informer = ml_informers_get(self->all.informers, &pods, NULL);
    self->watch = list_and_watch(&self->all, 5, "");
    self->expectations = ml_expectations_new(
        &self->keys, self->all.world.loop, self->all.world.client, self->all.world.metrics, "cnat");
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct expectations_world *self = *state;
    ml_expectations_free(self->expectations);
    ml_keys_fini(&self->keys);
    ml_informer_put(self->informer);
    ml_loop_poll(self->all.world.loop);
    informers_world_fini(&self->all);
    ml_buf_fini(&self->freed);
    free(self);
    return 0;
}

static void wrote(struct expectations_world *self, const char *key, uint64_t rv)
{
    ml_expectations_wrote(self->expectations, ml_str_of(key), self->informer, ML_STR("default"),
                          ML_STR("p"), rv);
}

static bool is_open(struct expectations_world *self, const char *key)
{
    return ml_expectations_satisfied(self->expectations, ml_str_of(key), on_ready, self);
}

static void ended(struct expectations_world *self, const char *key)
{
    ml_expectations_ended(self->expectations, ml_str_of(key), true);
}

static bool is_echo(struct expectations_world *self, const char *key, uint64_t rv)
{
    return ml_expectations_is_echo(self->expectations, ml_str_of(key), self->informer, rv);
}

/* The keys freed since the last time, after the loop came round. */
static void assert_freed(struct expectations_world *self, const char *want)
{
    ml_loop_poll(self->all.world.loop);
    const char *got = ml_buf_cstr(&self->freed);
    assert_string_equal(*got == ' ' ? got + 1 : got, want);
    ml_buf_clear(&self->freed);
}

static double metric(struct expectations_world *self, const char *name)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ML_AUTO_FREE char *series = ml_asprintf("\n%s{controller=\"cnat\"} ", name);
    ml_metrics_write(self->all.world.metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), series);
    assert_non_null(at);
    return strtod(at + strlen(series), NULL);
}

static void test_expectations_of_a_key_that_wrote_nothing_unseen_are_satisfied(void **state)
{
    struct expectations_world *self = *state;
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 5);            /* shown already */
    wrote(self, "default/a", ML_RV_OPAQUE); /* no number */
    ml_expectations_wrote(self->expectations, ML_STR("default/a"), NULL, ML_STR("default"),
                          ML_STR("p"), 9); /* nobody looks */
    assert_true(is_open(self, "default/a"));
}

static void test_expectations_holds_a_key_until_its_write_shows(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    assert_false(is_open(self, "default/a"));
    assert_true(is_open(self, "default/b")); /* per key */
    send_bookmark(self->watch, 7);
    assert_freed(self, "");
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_freed(self, "default/a");
    send_bookmark(self->watch, 9);
    assert_freed(self, ""); /* once */
}

/* As the controller asks: in the round of the loop that brought the event. */
static void test_expectations_is_open_as_soon_as_the_event_is_in(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_true(is_open(self, "default/a"));
    assert_true(metric(self, "stale_sync_skips_total") == 0);
    assert_freed(self, "");
}

static void test_expectations_asked_again_changes_nothing(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    for (int i = 0; i < 3; i++)
        assert_false(is_open(self, "default/a"));
    assert_true(metric(self, "stale_sync_skips_total") == 1);
    assert_true(metric(self, "moonloop_stale_keys") == 1);
    send_bookmark(self->watch, 8);
    assert_freed(self, "default/a");
    assert_true(metric(self, "moonloop_stale_keys") == 0);
}

static void test_expectations_holds_a_key_for_its_newest_write(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    wrote(self, "default/a", 12);
    wrote(self, "default/a", 10); /* answered out of order */
    assert_false(is_open(self, "default/a"));
    send_bookmark(self->watch, 8);
    send_bookmark(self->watch, 11);
    assert_freed(self, "");
    send_bookmark(self->watch, 12);
    assert_freed(self, "default/a");
}

static void test_expectations_counts_a_write_that_is_answered_while_the_key_waits(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    assert_false(is_open(self, "default/a"));
    wrote(self, "default/a", 12);
    send_bookmark(self->watch, 8);
    assert_freed(self, "");
    send_bookmark(self->watch, 12);
    assert_freed(self, "default/a");
}

/* The write comes between the event that frees the key and the loop that says so. */
static void test_expectations_counts_a_write_after_the_wait_was_over(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    assert_false(is_open(self, "default/a"));
    send_bookmark(self->watch, 8);
    wrote(self, "default/a", 9);
    assert_freed(self, "");
    assert_false(is_open(self, "default/a"));
    send_bookmark(self->watch, 9);
    assert_freed(self, "default/a");
}

/* An expected change may still come at any time: to act before is to do it twice. */
static void test_expectations_is_opened_by_no_time(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    assert_false(is_open(self, "default/a"));
    for (int minutes = 0; minutes < 120; minutes++) {
        advance(&self->all.world, 60000);
        assert_false(is_open(self, "default/a"));
    }
    assert_freed(self, "");
}

static void test_expectations_waits_for_every_kind_that_was_written(void **state)
{
    struct expectations_world *self = *state;
    struct ml_informer *other = ml_informers_get(self->all.informers, &services, NULL);
    struct fake_call *watch = list_and_watch(&self->all, 5, "");
    wrote(self, "default/a", 8);
    ml_expectations_wrote(self->expectations, ML_STR("default/a"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    assert_false(is_open(self, "default/a"));
    send_bookmark(self->watch, 8);
    assert_freed(self, "");
    send_bookmark(watch, 8);
    assert_freed(self, "default/a");
    ml_informer_put(other);
}

/* As till_relist_at_any, within the ten seconds after which the expectations reads for itself. */
static struct fake_call *relist_past_reads(struct expectations_world *self)
{
    assert_false(fake_piece(self->watch, "nonsense\n"));
    advance(&self->all.world, 9000); /* longer than the pause before the list */
    struct fake_call *list = fake_next(self->all.world.server);
    assert_false(has_query(list, "watch"));
    fake_refuse(list, 410, "Expired", "old");
    ml_loop_poll(self->all.world.loop);
    list = fake_next(self->all.world.server);
    assert_false(has_query(list, "resourceVersion"));
    return list;
}

static void test_expectations_opens_with_a_consistent_list_begun_after_the_write(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 1000);
    assert_false(is_open(self, "default/a"));
    struct fake_call *list = relist_past_reads(self);
    wrote(self, "default/b", 999); /* this one the list need not hold */
    assert_false(is_open(self, "default/b"));
    reply_list(list, 20, "", "");
    assert_freed(self, "default/a");
    assert_false(is_open(self, "default/b"));
}

/* The server was restored: it counts from a lower number, and the write comes between the list
 * that said so and the loop that frees the key. */
static void test_expectations_counts_a_lower_version_after_such_a_list(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 1000);
    assert_false(is_open(self, "default/a"));
    reply_list(relist_past_reads(self), 20, "", "");
    wrote(self, "default/a", 21);
    assert_freed(self, "");
    assert_false(is_open(self, "default/a"));
    self->watch = fake_next(self->all.world.server);
    fake_head(self->watch, 200);
    send_bookmark(self->watch, 21);
    assert_freed(self, "default/a");
}

static void test_expectations_version_once_seen_stays_seen(void **state)
{
    struct expectations_world *self = *state;
    send_bookmark(self->watch, 50);
    send_event(self->watch, "ADDED", pod("late", "ul", 40));
    wrote(self, "default/a", 45);
    assert_true(is_open(self, "default/a"));
}

static void test_expectations_clear_forgets_the_key(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    assert_false(is_open(self, "default/a"));
    ml_expectations_clear(self->expectations, ML_STR("default/a"), false);
    ml_expectations_clear(self->expectations, ML_STR("default/unknown"), false);
    assert_true(is_open(self, "default/a"));
    send_bookmark(self->watch, 8);
    assert_freed(self, "");
    assert_true(metric(self, "moonloop_stale_keys") == 0);
}

/* A run goes on reading what it wrote when its object is gone, and may wait for that. */
static void test_expectations_clear_leaves_a_run_under_way_alone(void **state)
{
    struct expectations_world *self = *state;
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 8);
    ml_expectations_clear(self->expectations, ML_STR("default/a"), false);
    assert_false(ml_expectations_shown(self->expectations, ML_STR("default/a"), self->informer));
    ml_expectations_await(self->expectations, ML_STR("default/a"), self->informer, on_shown, self);
    ml_expectations_clear(self->expectations, ML_STR("default/a"), false);
    send_bookmark(self->watch, 8);
    assert_freed(self, "shown");
    ended(self, "default/a");
    ml_expectations_clear(self->expectations, ML_STR("default/a"), false);
    assert_int_equal(ml_expectations_len(self->expectations), 0);
}

/* The read after a write waits for its kind, in the run, and for no other. */
static void test_expectations_run_waits_for_the_kind_it_wrote(void **state)
{
    struct expectations_world *self = *state;
    struct ml_informer *other = ml_informers_get(self->all.informers, &services, NULL);
    struct fake_call *watch = list_and_watch(&self->all, 5, "");
    const struct ml_str key = ML_STR("default/a");
    assert_true(ml_expectations_shown(self->expectations, key, self->informer));
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 8);
    wrote(self, "default/a", 9);
    ml_expectations_wrote(self->expectations, key, other, ML_STR("default"), ML_STR("p"), 7);
    wrote(self, "default/b", 20);
    send_bookmark(watch, 7);
    assert_true(ml_expectations_shown(self->expectations, key, other));
    assert_false(ml_expectations_shown(self->expectations, key, self->informer));
    ml_expectations_await(self->expectations, key, self->informer, on_shown, self);
    assert_true(metric(self, "moonloop_stale_keys") == 0); /* it is not the queue that waits */
    send_bookmark(self->watch, 8);
    assert_freed(self, "");
    send_bookmark(self->watch, 9);
    assert_int_equal(self->freed.len, 0); /* from the loop, not inside */
    assert_freed(self, "shown");
    assert_true(ml_expectations_shown(self->expectations, key, self->informer));
    ml_informer_put(other);
}

static void test_expectations_canceled_wait_of_a_run_is_silent(void **state)
{
    struct expectations_world *self = *state;
    for (int round = 0; round < 2; round++) { /* 1: the loop is about to say so */
        int rv = 8 + round;
        assert_true(is_open(self, "default/a"));
        wrote(self, "default/a", (uint64_t)rv);
        ml_expectations_await(self->expectations, ML_STR("default/a"), self->informer, on_shown,
                              self);
        if (round == 1)
            send_bookmark(self->watch, rv);
        ml_expectations_cancel(self->expectations, ML_STR("default/a"));
        ended(self, "default/a");
        send_bookmark(self->watch, rv);
        assert_freed(self, "");
    }
    ml_expectations_cancel(self->expectations, ML_STR("default/unknown"));
}

/* Nobody looks at that cache any more: nothing is left to wait for. */
static void test_expectations_wait_of_a_run_ends_with_the_informer(void **state)
{
    struct expectations_world *self = *state;
    struct ml_informer *other = ml_informers_get(self->all.informers, &services, NULL);
    list_and_watch(&self->all, 5, "");
    assert_true(is_open(self, "default/a"));
    ml_expectations_wrote(self->expectations, ML_STR("default/a"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    ml_expectations_await(self->expectations, ML_STR("default/a"), other, on_shown, self);
    ml_informer_put(other);
    assert_freed(self, "shown");
}

static void test_expectations_tell_an_echo_by_kind_and_version(void **state)
{
    struct expectations_world *self = *state;
    struct ml_informer *other = ml_informers_get(self->all.informers, &services, NULL);
    list_and_watch(&self->all, 5, "");
    const struct ml_str key = ML_STR("default/a");
    assert_true(is_open(self, "default/a"));
    assert_false(is_echo(self, "default/a", 8));
    wrote(self, "default/a", 8);
    wrote(self, "default/a", 9);
    assert_true(ml_expectations_echo_pending(self->expectations, key));
    assert_true(is_echo(self, "default/a", 8)); /* the older one of an object too */
    assert_true(is_echo(self, "default/a", 8)); /* it concerns the key in two ways */
    assert_true(is_echo(self, "default/a", 9));
    assert_false(ml_expectations_echo_pending(self->expectations, key));
    assert_false(is_echo(self, "default/a", 10));
    assert_false(is_echo(self, "default/b", 8));
    assert_false(ml_expectations_is_echo(self->expectations, key, other, 8));
    ml_informer_put(other);
}

/* A write that has come back and shows is forgotten when the run is over. Another is forgotten only
 * when the next run begins, as its echo may have to wait for a watch function. */
static void test_expectations_forget_echoes_with_the_run(void **state)
{
    struct expectations_world *self = *state;
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 8);
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    ml_loop_poll(self->all.world.loop);
    wrote(self, "default/a", 7); /* changed nothing */
    assert_true(is_echo(self, "default/a", 8));
    assert_true(is_echo(self, "default/a", 7));
    ended(self, "default/a");
    assert_int_equal(ml_expectations_len(self->expectations), 0);
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 9);
    ended(self, "default/a");
    send_bookmark(self->watch, 9);
    assert_freed(self, "");
    assert_true(is_echo(self, "default/a", 9));
    assert_true(is_open(self, "default/a"));
    assert_false(is_echo(self, "default/a", 9));
    ended(self, "default/a");
    assert_int_equal(ml_expectations_len(self->expectations), 0);
}

static void test_expectations_forget_an_echo_that_shows_after_the_run(void **state)
{
    struct expectations_world *self = *state;
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 8);
    ended(self, "default/a");
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_true(is_echo(self, "default/a", 8)); /* as a listener asks */
    assert_freed(self, "");
    assert_int_equal(ml_expectations_len(self->expectations), 0);
}

/* A watch function may have left the echo out, and no later run drops the write. */
static void test_expectations_await_no_echo_for_a_key_that_is_gone(void **state)
{
    struct expectations_world *self = *state;
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 8);
    ml_expectations_clear(self->expectations, ML_STR("default/a"), false);
    ended(self, "default/a");
    assert_int_equal(ml_expectations_len(self->expectations), 1); /* the cache does not show it */
    send_bookmark(self->watch, 8);
    assert_freed(self, "");
    assert_int_equal(ml_keys_len(&self->keys), 0);
}

/* The changes for the key are not looked at any more, so its echoes are not, either. */
static void test_expectations_await_no_echo_for_a_key_of_another_replica(void **state)
{
    struct expectations_world *self = *state;
    ml_expectations_clear(self->expectations, ML_STR("default/unknown"), true);
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 8);
    ended(self, "default/a");
    ml_expectations_clear(self->expectations, ML_STR("default/a"), true);
    assert_false(is_open(self, "default/a")); /* it has come back */
    send_event(self->watch, "ADDED", pod("a", "ua", 8));
    assert_freed(self, "default/a");
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 9);
    ml_expectations_clear(self->expectations, ML_STR("default/a"), true);
    ended(self, "default/a");
    assert_int_equal(ml_keys_len(&self->keys), 1); /* the cache does not show it */
    send_bookmark(self->watch, 9);
    assert_freed(self, "");
    assert_int_equal(ml_keys_len(&self->keys), 0);
}

static void test_expectations_forget_who_waits_for_a_key_of_another_replica(void **state)
{
    struct expectations_world *self = *state;
    assert_true(is_open(self, "default/a"));
    wrote(self, "default/a", 8);
    ended(self, "default/a");
    assert_false(is_open(self, "default/a"));
    ml_expectations_clear(self->expectations, ML_STR("default/a"), true);
    send_bookmark(self->watch, 8);
    assert_freed(self, "");
    assert_int_equal(ml_keys_len(&self->keys), 0);
}

static void test_expectations_drop_of_an_informer_frees_what_waits_only_on_it(void **state)
{
    struct expectations_world *self = *state;
    struct ml_informer *other = ml_informers_get(self->all.informers, &services, NULL);
    list_and_watch(&self->all, 5, "");
    ml_expectations_wrote(self->expectations, ML_STR("default/a"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    ml_expectations_wrote(self->expectations, ML_STR("default/b"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    ml_expectations_wrote(self->expectations, ML_STR("default/quiet"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    wrote(self, "default/b", 8);
    assert_false(is_open(self, "default/a"));
    assert_false(is_open(self, "default/b"));
    ml_expectations_drop_informer(self->expectations, other);
    assert_int_equal(self->freed.len, 0); /* from the loop, not inside */
    ml_informer_put(other);
    assert_freed(self, "default/a");
    assert_true(is_open(self, "default/quiet"));
    assert_false(is_open(self, "default/b"));
    send_bookmark(self->watch, 8);
    assert_freed(self, "default/b");
}

static void test_expectations_write_right_after_a_drop_is_not_lost(void **state)
{
    struct expectations_world *self = *state;
    struct ml_informer *other = ml_informers_get(self->all.informers, &services, NULL);
    list_and_watch(&self->all, 5, "");
    ml_expectations_wrote(self->expectations, ML_STR("default/a"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    assert_false(is_open(self, "default/a"));
    ml_expectations_drop_informer(self->expectations, other);
    wrote(self, "default/a", 8);
    ml_informer_put(other);
    assert_freed(self, "");
    assert_false(is_open(self, "default/a"));
    send_bookmark(self->watch, 8);
    assert_freed(self, "default/a");
}

/* The informer of a kind that another controller watches ends without this expectations being told.
 */
static void test_expectations_survives_the_end_of_an_informer_of_others(void **state)
{
    struct expectations_world *self = *state;
    struct ml_informer *other = ml_informers_get(self->all.informers, &services, NULL);
    list_and_watch(&self->all, 5, "");
    ml_expectations_wrote(self->expectations, ML_STR("default/a"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    ml_expectations_wrote(self->expectations, ML_STR("default/quiet"), other, ML_STR("default"),
                          ML_STR("p"), 7);
    assert_false(is_open(self, "default/a"));
    ml_informer_put(other);
    assert_freed(self, "default/a");
    assert_true(is_open(self, "default/quiet"));
}

static void test_expectations_may_be_freed_while_keys_wait(void **state)
{
    struct expectations_world *self = *state;
    wrote(self, "default/a", 8);
    wrote(self, "default/quiet", 8);
    assert_false(is_open(self, "default/a"));
    ml_expectations_free(ml_take(&self->expectations));
    send_bookmark(self->watch, 8);
    assert_freed(self, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_expectations_of_a_key_that_wrote_nothing_unseen_are_satisfied),
        TEST(test_expectations_holds_a_key_until_its_write_shows),
        TEST(test_expectations_is_open_as_soon_as_the_event_is_in),
        TEST(test_expectations_asked_again_changes_nothing),
        TEST(test_expectations_holds_a_key_for_its_newest_write),
        TEST(test_expectations_counts_a_write_that_is_answered_while_the_key_waits),
        TEST(test_expectations_counts_a_write_after_the_wait_was_over),
        TEST(test_expectations_is_opened_by_no_time),
        TEST(test_expectations_waits_for_every_kind_that_was_written),
        TEST(test_expectations_opens_with_a_consistent_list_begun_after_the_write),
        TEST(test_expectations_counts_a_lower_version_after_such_a_list),
        TEST(test_expectations_version_once_seen_stays_seen),
        TEST(test_expectations_clear_forgets_the_key),
        TEST(test_expectations_clear_leaves_a_run_under_way_alone),
        TEST(test_expectations_run_waits_for_the_kind_it_wrote),
        TEST(test_expectations_canceled_wait_of_a_run_is_silent),
        TEST(test_expectations_wait_of_a_run_ends_with_the_informer),
        TEST(test_expectations_tell_an_echo_by_kind_and_version),
        TEST(test_expectations_forget_echoes_with_the_run),
        TEST(test_expectations_forget_an_echo_that_shows_after_the_run),
        TEST(test_expectations_await_no_echo_for_a_key_that_is_gone),
        TEST(test_expectations_await_no_echo_for_a_key_of_another_replica),
        TEST(test_expectations_forget_who_waits_for_a_key_of_another_replica),
        TEST(test_expectations_drop_of_an_informer_frees_what_waits_only_on_it),
        TEST(test_expectations_write_right_after_a_drop_is_not_lost),
        TEST(test_expectations_survives_the_end_of_an_informer_of_others),
        TEST(test_expectations_may_be_freed_while_keys_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
