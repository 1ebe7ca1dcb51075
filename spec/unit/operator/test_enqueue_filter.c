/* Own writes as they come back: before the answer, after it, or never; and keys that wake
 * themselves. */
#include "state_informers.h"

#include "operator/enqueue_filter.h"

static const struct ml_kind things = {"test.dev/v1", "test.dev", "v1", "Thing",
                                      "things",      true,       true};

#define KEY ML_STR("d/a") /* unless a test says another one */

struct wakes_world {
    struct informers_world base;
    struct ml_informer *own, *child; /* of Things and of pods, at version 1 */
    struct fake_call *own_watch, *child_watch;
    struct ml_keys keys;
    struct ml_expectations *expectations;
    struct ml_dict *dict;
    struct ml_read_sets *read_sets;
    struct ml_authors authors;
    struct ml_enqueue_filter *filter;
    int woken;
    int slowed, hot;
    bool fight; /* as the last one slowed was told */
    char fields[128], other_side[64];
    struct ml_str key;
    const char *author; /* a controller, of every change by somebody else; NULL: not known */
    bool deleted_here;  /* a run of the key deletes what goes */
};

static void follow(struct wakes_world *self, struct ml_verdict verdict)
{
    const struct ml_slowed *slowed = &verdict.slowed;
    self->woken += verdict.wakes;
    if (slowed->change) {
        snprintf(self->other_side, sizeof self->other_side, "%s",
                 slowed->other_side ? slowed->other_side : "");
        snprintf(self->fields, sizeof self->fields, "%s", slowed->fields);
        self->fight = slowed->fight;
        self->slowed++;
    }
    ml_verdict_fini(&verdict);
}

static int64_t restrain(struct wakes_world *self, int64_t delay_ns)
{
    bool hot;
    int64_t restrained_ns = ml_enqueue_filter_restrain(self->filter, KEY, delay_ns, &hot);
    self->hot += hot;
    return restrained_ns;
}

static int setup(void **state)
{
    struct wakes_world *self = ml_new(struct wakes_world);
    informers_world_init(&self->base, NULL);
    self->key = KEY;
    self->own = ml_informers_get(self->base.informers, &things, NULL);
    self->own_watch = list_and_watch(&self->base, 1, "");
    self->child = ml_informers_get(self->base.informers, &pods, NULL);
    self->child_watch = list_and_watch(&self->base, 1, "");
    self->dict = ml_dict_new();
    self->expectations = ml_expectations_new(&self->keys, self->base.world.loop,
                                             self->base.world.client, self->base.world.metrics,
                                             "things");
    self->read_sets = ml_read_sets_new(&self->keys); /* empty: every change matters */
    const struct ml_enqueue_filter_opts opts = {
        .keys = &self->keys,
        .loop = self->base.world.loop,
        .expectations = self->expectations,
        .read_sets = self->read_sets,
        .authors = &self->authors,
        .controller = "things",
        .slows_hot_keys = true,
    };
    self->filter = ml_enqueue_filter_new(&opts);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct wakes_world *self = *state;
    ml_enqueue_filter_free(self->filter);
    ml_read_sets_free(self->read_sets);
    ml_authors_fini(&self->authors);
    ml_expectations_free(self->expectations);
    ml_keys_fini(&self->keys);
    ml_dict_unref(self->dict);
    ml_informer_put(self->own);
    ml_informer_put(self->child);
    ml_loop_poll(self->base.world.loop);
    informers_world_fini(&self->base);
    free(self);
    return 0;
}

/* The object a at a version, with this in its spec and status. */
static struct ml_object *at(struct wakes_world *self, int rv, int spec, int status)
{
    ML_AUTO_FREE char *json = ml_asprintf("{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\","
                                          "\"uid\":\"u\",\"resourceVersion\":\"%d\"},"
                                          "\"spec\":{\"n\":%d},\"status\":{\"n\":%d}}",
                                          rv, spec, status);
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_object_new(self->dict, "v1", "X", ml_str_of(json), &object, &err), 0);
    return object;
}

/* The same with a list of two in its status. */
static struct ml_object *with_list(struct wakes_world *self, int rv, int ours, int theirs)
{
    ML_AUTO_FREE char *json = ml_asprintf("{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\","
                                          "\"uid\":\"u\",\"resourceVersion\":\"%d\"},"
                                          "\"status\":{\"list\":[%d,%d]}}",
                                          rv, ours, theirs);
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_object_new(self->dict, "v1", "X", ml_str_of(json), &object, &err), 0);
    return object;
}

/* The object a-N, with its version in its spec. */
static struct ml_object *named(struct wakes_world *self, int rv, int number)
{
    ML_AUTO_FREE char *json = ml_asprintf("{\"metadata\":{\"name\":\"a-%d\",\"namespace\":\"d\","
                                          "\"uid\":\"u\",\"resourceVersion\":\"%d\"},"
                                          "\"spec\":{\"n\":%d}}",
                                          number, rv, rv);
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_object_new(self->dict, "v1", "X", ml_str_of(json), &object, &err), 0);
    return object;
}

static int64_t pause_of(struct wakes_world *self)
{
    return ml_enqueue_filter_pause(self->filter, self->key);
}

static void time_passes(struct wakes_world *self, int64_t ns)
{
    ml_clock_fake_advance(&self->base.world.clock, ns);
}

static void change(struct wakes_world *self, const struct ml_informer *informer,
                   struct ml_object *old, struct ml_object *new)
{
    const struct ml_change told = {
        .informer = informer, .old = old, .new = new, .reconciled = informer == self->own};
    if (new && self->author)
        ml_authors_note(&self->authors, ml_informer_kind(informer), ml_object_rv_number(new),
                        self->author, ML_STR("d/x"));
    if (!new && self->deleted_here)
        ml_authors_note_deletion(&self->authors, ml_object_uid(old), "things", self->key);
    follow(self, ml_enqueue_filter_changed(self->filter, NULL, self->key, &told));
    ml_object_unref(old);
    ml_object_unref(new);
}

/* The status, or else the spec, of the key's own object goes from one version to the next. */
static void status_changes(struct wakes_world *self, int rv)
{
    change(self, self->own, at(self, rv - 1, 1, rv - 1), at(self, rv, 1, rv));
}

static void spec_changes(struct wakes_world *self, const struct ml_informer *informer, int rv)
{
    change(self, informer, at(self, rv - 1, rv - 1, 1), at(self, rv, rv, 1));
}

static void not_ready(void *context, struct ml_str key)
{
    (void)context, (void)key;
    fail();
}

static void not_verified(void *context, const struct ml_err *err)
{
    (void)context, (void)err;
    fail();
}

/* A run, as controller.c has it. The caches show all that the one before it wrote. */
static void run_begins(struct wakes_world *self)
{
    ml_expectations_clear(self->expectations, self->key, false);
    assert_true(ml_expectations_satisfied(self->expectations, self->key, not_ready, NULL));
    ml_enqueue_filter_begun(self->filter, self->key);
}

static void run_writes(struct wakes_world *self, struct ml_informer *informer, uint64_t rv)
{
    ml_expectations_wrote(self->expectations, self->key, informer, ML_STR("d"), ML_STR("a"), rv);
}

static void run_ends(struct wakes_world *self)
{
    follow(self, ml_enqueue_filter_ended(self->filter, NULL, self->key));
    ml_expectations_ended(self->expectations, self->key, true);
}

static void cache_shows(struct wakes_world *self, const struct ml_informer *informer, int rv)
{
    send_bookmark(informer == self->own ? self->own_watch : self->child_watch, rv);
    ml_loop_poll(self->base.world.loop);
}

/* Some rates are kept for a minute. */
static void assert_nothing_known(struct wakes_world *self)
{
    time_passes(self, 61 * ML_NS_PER_S);
    assert_int_equal(ml_enqueue_filter_len(self->filter), 0);
    assert_int_equal(ml_expectations_len(self->expectations), 0);
}

/* One run that writes the spec of an object, told after the answer; it wakes the key again. */
static void run_that_wakes_itself(struct wakes_world *self, struct ml_informer *informer, int rv)
{
    run_begins(self);
    run_writes(self, informer, (uint64_t)rv);
    run_ends(self);
    int before = self->woken;
    spec_changes(self, informer, rv);
    assert_int_equal(self->woken, before + 1);
}

static void test_wakes_others_at_once_and_remembers_nothing(void **state)
{
    struct wakes_world *self = *state;
    status_changes(self, 5);
    spec_changes(self, self->child, 6);
    assert_int_equal(self->woken, 2);
    assert_int_equal(pause_of(self), 0);
    assert_nothing_known(self);
}

static void test_wakes_not_for_an_own_status_that_comes_back_after_the_run(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    run_writes(self, self->own, 5);
    run_ends(self);
    status_changes(self, 5);
    status_changes(self, 5); /* it concerns the key in two ways */
    assert_int_equal(self->woken, 0);
    cache_shows(self, self->own, 5);
    assert_nothing_known(self);
    status_changes(self, 6); /* this one is another's */
    assert_int_equal(self->woken, 1);
}

static void test_wakes_not_for_an_own_status_that_comes_back_before_its_answer(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    status_changes(self, 5);
    cache_shows(self, self->own, 5);
    run_writes(self, self->own, 5);
    run_ends(self);
    assert_int_equal(self->woken, 0);
    assert_nothing_known(self);
}

/* An echo that comes during the run, and one that comes after the cache showed the write. */
static void test_wakes_tell_an_echo_that_comes_late(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    run_writes(self, self->own, 5);
    status_changes(self, 5);
    cache_shows(self, self->own, 5);
    run_ends(self);
    assert_int_equal(self->woken, 0);
    assert_nothing_known(self);
    run_begins(self);
    run_writes(self, self->own, 6);
    run_ends(self);
    cache_shows(self, self->own, 6);
    status_changes(self, 6); /* as by a watch function that had to wait for its turn */
    assert_int_equal(self->woken, 0);
}

static void test_wakes_note_a_child_that_has_gone(void **state)
{
    struct wakes_world *self = *state;
    struct ml_object *object = at(self, 5, 1, 1);
    for (int under_way = 0; under_way < 2; under_way++) {
        const struct ml_change gone = {
            .informer = self->child, .old = object, .child_deleted = true};
        assert_null(
            ml_expectations_verify(self->expectations, &things, object, not_verified, self));
        if (under_way)
            run_begins(self);
        follow(self, ml_enqueue_filter_changed(self->filter, NULL, KEY, &gone));
        if (under_way)
            run_ends(self);
        assert_int_equal(self->woken, under_way + 1);
        struct ml_live_read *live_read = ml_expectations_verify(self->expectations, &things, object,
                                                                not_verified, self);
        assert_non_null(live_read);
        ml_live_read_cancel(live_read);
        ml_expectations_clear(self->expectations, KEY, false);
    }
    ml_object_unref(object);
}

static void test_wakes_take_a_change_that_concerns_a_key_twice_for_one_echo(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int run = 1; run <= 25; run++, rv++) {
        run_that_wakes_itself(self, self->child, rv);
        int64_t pause_ns = pause_of(self);
        spec_changes(self, self->child, rv);
        assert_int_equal(pause_of(self), pause_ns);
    }
    assert_int_equal(self->slowed, 5);
}

/* As when two hands write the status, and the other one's was first. */
static void test_wakes_for_what_others_did_before_the_own_status_comes_back(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    run_writes(self, self->own, 6);
    run_ends(self);
    status_changes(self, 5);
    assert_int_equal(self->woken, 1);
    status_changes(self, 6);
    assert_int_equal(self->woken, 1);
}

static void test_wakes_after_the_run_for_what_others_did_meanwhile(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    status_changes(self, 5);
    status_changes(self, 6);
    cache_shows(self, self->own, 6);
    run_writes(self, self->own, 5);
    assert_int_equal(self->woken, 0);
    run_ends(self);
    assert_int_equal(self->woken, 1);
    assert_int_equal(pause_of(self), 0);
}

static void test_wakes_after_a_run_with_more_changes_than_are_held(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    for (int rv = 2; rv < 40; rv++) {
        spec_changes(self, self->child, rv);
        cache_shows(self, self->child, rv);
        run_writes(self, self->child, (uint64_t)rv);
    }
    run_ends(self);
    assert_int_equal(self->woken, 1);
}

static void test_wakes_for_a_version_that_another_kind_has_too(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    run_writes(self, self->child, 5);
    run_ends(self);
    status_changes(self, 5);
    assert_int_equal(self->woken, 1);
}

static void test_wakes_never_take_an_opaque_version_for_an_own_one(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    run_writes(self, self->own, ML_RV_OPAQUE);
    run_ends(self);
    assert_nothing_known(self);
}

static void test_wakes_forget_a_write_that_changed_nothing(void **state)
{
    struct wakes_world *self = *state;
    run_begins(self);
    cache_shows(self, self->child, 4);
    run_writes(self, self->child, 3);
    run_ends(self);
    assert_nothing_known(self);
}

static void test_wakes_slow_a_key_after_twenty_runs_that_change_the_same(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int run = 1; run <= 20; run++, rv++) {
        run_that_wakes_itself(self, self->child, rv);
        assert_int_equal(pause_of(self), 0);
    }
    for (int64_t pause_s = 1; pause_s < 5000; pause_s *= 2, rv++) {
        run_that_wakes_itself(self, self->child, rv);
        assert_int_equal(pause_of(self), ML_MIN(pause_s, INT64_C(1000)) * ML_NS_PER_S);
        time_passes(self, pause_of(self));
        assert_int_equal(pause_of(self), 0);
    }
    assert_int_equal(self->slowed, 13);
    assert_false(self->fight);
    assert_string_equal(self->fields, "Pod d/a: spec.n");
}

/* As when each run rolls out a Deployment, whose controller then writes its status. */
static void test_wakes_slow_a_key_whatever_others_write_between(void **state)
{
    struct wakes_world *self = *state;
    for (int run = 1, rv = 2; run <= 21; run++, rv += 3) {
        assert_int_equal(pause_of(self), 0);
        run_that_wakes_itself(self, self->child, rv);
        change(self, self->child, at(self, rv, rv, 1), at(self, rv + 1, rv, 2));
        run_begins(self); /* for that, and changes nothing */
        run_ends(self);
    }
    assert_int_equal(self->slowed, 1);
    assert_string_equal(self->fields, "Pod d/a: spec.n");
    assert_int_equal(pause_of(self), ML_NS_PER_S);
}

/* Nothing wakes it earlier but an edit of the key's own object, in another field. */
static void test_wakes_keep_the_pause_whatever_others_change(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int run = 1; run <= 24; run++, rv++)
        run_that_wakes_itself(self, self->child, rv);
    assert_int_equal(pause_of(self), 8 * ML_NS_PER_S);
    change(self, self->child, at(self, rv, rv, 1), at(self, rv + 1, rv, 2));
    spec_changes(self, self->child, rv + 2);
    change(self, self->child, at(self, rv + 3, 1, 1), NULL);
    status_changes(self, rv + 4);
    assert_int_equal(pause_of(self), 8 * ML_NS_PER_S);
    time_passes(self, ML_NS_PER_S);
    spec_changes(self, self->own, rv + 5);
    assert_int_equal(pause_of(self), 0);
    run_that_wakes_itself(self, self->child, rv + 6); /* the pause begins again, and is no longer */
    assert_int_equal(pause_of(self), 8 * ML_NS_PER_S);
}

/* moonloop.dev/retry is an annotation. */
static struct ml_object *retried(struct wakes_world *self, int rv)
{
    ML_AUTO_FREE char *json = ml_asprintf(
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"u\","
        "\"resourceVersion\":\"%d\",\"annotations\":{\"moonloop.dev/retry\":\"%d\"}}}",
        rv, rv);
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_object_new(self->dict, "v1", "X", ml_str_of(json), &object, &err), 0);
    return object;
}

static void test_wakes_end_a_pause_when_somebody_retries(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int run = 1; run <= 24; run++, rv++)
        run_that_wakes_itself(self, self->child, rv);
    assert_int_equal(pause_of(self), 8 * ML_NS_PER_S);
    int before = self->woken;
    change(self, self->own, retried(self, rv), retried(self, rv + 1));
    assert_int_equal(pause_of(self), 0);
    assert_int_equal(self->woken, before + 1);
}

static void test_wakes_end_pauses_for_no_more_than_twenty_edits_at_once(void **state)
{
    struct wakes_world *self = *state;
    int ended = 0, rv = 2;
    for (int run = 1; run <= 25; run++, rv++)
        run_that_wakes_itself(self, self->child, rv);
    for (int run = 1; run <= 60; run++, rv += 2) {
        run_that_wakes_itself(self, self->child, rv);
        bool pauses = pause_of(self) > 0;
        spec_changes(self, self->own, rv + 1);
        ended += pauses && pause_of(self) == 0;
    }
    assert_int_equal(ended, 20);
}

static void test_wakes_start_anew_a_minute_after_the_pause(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int run = 1; run <= 25; run++, rv++)
        run_that_wakes_itself(self, self->child, rv);
    assert_true(pause_of(self) > 0);
    time_passes(self, pause_of(self));
    run_begins(self);
    run_ends(self);
    assert_int_not_equal(ml_enqueue_filter_len(self->filter), 0);
    assert_nothing_known(self);
    run_that_wakes_itself(self, self->child, rv);
    assert_int_equal(pause_of(self), 0);
}

static void test_wakes_start_anew_under_a_new_script_and_for_a_new_object(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int turn = 0; turn < 2; turn++) {
        for (int run = 1; run <= 25; run++, rv++)
            run_that_wakes_itself(self, self->child, rv);
        assert_true(pause_of(self) > 0);
        if (turn == 0)
            ml_enqueue_filter_reset_backoff(self->filter);
        else
            ml_enqueue_filter_gone(self->filter, KEY);
        ml_loop_poll(self->base.world.loop);
        assert_int_equal(ml_enqueue_filter_len(self->filter), 0);
    }
}

static void test_wakes_take_ten_runs_a_minute_for_no_loop(void **state)
{
    struct wakes_world *self = *state;
    for (int rv = 2; rv < 200; rv++) {
        run_that_wakes_itself(self, self->child, rv);
        time_passes(self, 6 * ML_NS_PER_S);
    }
    assert_int_equal(self->slowed, 0);
    for (int rv = 200; rv < 300; rv++) {
        run_that_wakes_itself(self, self->child, rv);
        time_passes(self, 3 * ML_NS_PER_S);
    }
    assert_int_not_equal(self->slowed, 0);
}

static void test_wakes_take_new_objects_for_no_loop(void **state)
{
    struct wakes_world *self = *state;
    for (int run = 0, rv = 2; run < 100; run++, rv++) { /* makes one more each time */
        run_begins(self);
        run_writes(self, self->child, (uint64_t)rv);
        run_ends(self);
        change(self, self->child, NULL, at(self, rv, 1, 1));
    }
    assert_int_equal(self->slowed, 0);
}

/* As while a hundred pods are replaced, each in five steps: who counts them in a field and in the
 * status follows them. */
static void test_wakes_take_progress_that_follows_others_for_no_loop(void **state)
{
    struct wakes_world *self = *state;
    for (int step = 0, rv = 2; step < 450; step++, rv += 3) {
        change(self, self->child, at(self, rv - 1, 1, rv - 1), at(self, rv, 1, rv));
        run_begins(self);
        run_writes(self, self->own, (uint64_t)rv + 1);
        run_writes(self, self->own, (uint64_t)rv + 2);
        run_ends(self);
        spec_changes(self, self->own, rv + 1);
        status_changes(self, rv + 2);
    }
    assert_int_equal(self->slowed, 0);
}

static void test_wakes_slow_what_follows_others_for_ever(void **state)
{
    struct wakes_world *self = *state;
    for (int step = 0, rv = 2; step < 520; step++, rv += 2) {
        change(self, self->child, at(self, rv - 1, 1, rv - 1), at(self, rv, 1, rv));
        run_begins(self);
        run_writes(self, self->own, (uint64_t)rv + 1);
        run_ends(self);
        status_changes(self, rv + 1);
    }
    assert_true(self->slowed > 0);
    assert_true(pause_of(self) <= ML_NS_PER_S); /* it grows no longer */
}

static void test_wakes_take_what_is_due_for_no_loop(void **state)
{
    struct wakes_world *self = *state;
    for (int rv = 2; rv < 200; rv++) {
        time_passes(self, ML_NS_PER_S);
        run_begins(self);
        run_writes(self, self->child, (uint64_t)rv);
        assert_int_equal(restrain(self, ML_NS_PER_S), ML_NS_PER_S);
        run_ends(self);
        spec_changes(self, self->child, rv);
    }
    assert_int_equal(self->slowed, 0);
}

static void test_wakes_slow_who_writes_status_and_asks_to_come_back_at_once(void **state)
{
    struct wakes_world *self = *state;
    for (int rv = 2; rv < 30; rv++) {
        run_begins(self);
        run_writes(self, self->own, (uint64_t)rv);
        assert_int_equal(restrain(self, 0), 0);
        run_ends(self);
        status_changes(self, rv);
        assert_int_equal(pause_of(self) > 0, rv >= 22);
        time_passes(self, pause_of(self));
    }
    assert_int_equal(self->woken, 0);
    assert_string_equal(self->fields, "Thing d/a: status.n");
    run_begins(self);
    assert_int_equal(restrain(self, INT64_MAX), INT64_MAX);
    run_ends(self);
}

static int64_t run_that_asks_for(struct wakes_world *self, int64_t delay_ns)
{
    run_begins(self);
    int64_t restrained_ns = restrain(self, delay_ns);
    run_ends(self);
    return restrained_ns;
}

static void test_wakes_key_that_asks_again_at_once_is_slowed_after_100_runs(void **state)
{
    struct wakes_world *self = *state;
    static const int ms[] = {10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000};
    for (int i = 0; i < 100; i++)
        assert_int_equal(run_that_asks_for(self, 0), 0);
    assert_int_equal(self->hot, 0);
    for (size_t i = 0; i < ML_COUNT(ms); i++)
        assert_int_equal(run_that_asks_for(self, -5), ms[i] * ML_NS_PER_MS);
    assert_int_equal(self->hot, 1);
    run_begins(self);
    run_ends(self); /* asks for nothing */
    assert_int_equal(ml_enqueue_filter_len(self->filter), 0);
    assert_int_equal(run_that_asks_for(self, 0), 0);
}

static void test_wakes_key_that_asks_for_10_ms_is_not_hot(void **state)
{
    struct wakes_world *self = *state;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(run_that_asks_for(self, 10 * ML_NS_PER_MS), 10 * ML_NS_PER_MS);
    for (int i = 0; i < 99; i++)
        assert_int_equal(run_that_asks_for(self, 0), 0);
    run_that_asks_for(self, ML_NS_PER_S);
    for (int i = 0; i < 99; i++)
        assert_int_equal(run_that_asks_for(self, 0), 0);
    assert_int_equal(self->hot, 0);
    assert_int_equal(ml_enqueue_filter_len(self->filter), 1);
    ml_enqueue_filter_gone(self->filter, KEY);
    assert_int_equal(ml_enqueue_filter_len(self->filter), 0);
}

/* ---- many keys that do the same ---- */

#define MANY 30

/* A run of each of the keys d/0 to d/29 changes the same field of an object of its own: to the same
 * `value` for all of them, or to a version if that is 0. How many of them are slowed? */
static int round_of_many(struct wakes_world *self, int *rv, int value)
{
    int before = self->slowed;
    for (int i = 0; i < MANY; i++, ++*rv) {
        ML_AUTO_FREE char *key = ml_asprintf("d/%d", i);
        self->key = ml_str_of(key);
        if (pause_of(self) > 0)
            continue;
        ML_AUTO_FREE char *old = ml_asprintf("{\"metadata\":{\"name\":\"%d\",\"namespace\":\"d\","
                                             "\"uid\":\"u\",\"resourceVersion\":\"%d\"}}",
                                             i, *rv - 1);
        ML_AUTO_FREE char *new = ml_asprintf("{\"metadata\":{\"name\":\"%d\",\"namespace\":\"d\","
                                             "\"uid\":\"u\",\"resourceVersion\":\"%d\"},"
                                             "\"spec\":{\"version\":%d}}",
                                             i, *rv, value ? value : *rv);
        struct ml_object *objects[2] = {NULL, NULL};
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(ml_object_new(self->dict, "v1", "X", ml_str_of(old), &objects[0], &err),
                         0);
        assert_int_equal(ml_object_new(self->dict, "v1", "X", ml_str_of(new), &objects[1], &err),
                         0);
        run_begins(self);
        ml_expectations_wrote(self->expectations, self->key, self->child, ML_STR("d"),
                              ml_object_name(objects[1]), (uint64_t)*rv);
        run_ends(self);
        change(self, self->child, objects[0], objects[1]);
    }
    self->key = KEY;
    return self->slowed - before;
}

/* As when each rolls out a Deployment whose controller takes a second and a half for it. */
static void test_wakes_many_keys_that_write_versions_are_slowed_within_five_seconds(void **state)
{
    struct wakes_world *self = *state;
    int rv = 5, slowed = 0;
    for (int64_t ms = 0; ms <= 4500; ms += 1500) {
        slowed = round_of_many(self, &rv, 0);
        time_passes(self, 1500 * ML_NS_PER_MS);
    }
    assert_in_range(slowed, MANY / 2, MANY);
    assert_false(self->fight);
    self->slowed = 0;
    for (int second = 0; second < 3600; second++) {
        round_of_many(self, &rv, 0);
        time_passes(self, ML_NS_PER_S);
    }
    assert_in_range(self->slowed, 10 * MANY,
                    15 * MANY); /* each with pauses of its own, 1 s to 1000 s */
}

static void test_wakes_take_steps_that_many_keys_make_for_no_loop(void **state)
{
    struct wakes_world *self = *state;
    int rv = 5;
    for (int percent = 5; percent <= 100; percent += 5) { /* a rollout of each */
        round_of_many(self, &rv, percent);
        time_passes(self, ML_NS_PER_S);
    }
    ml_enqueue_filter_reset_backoff(self->filter);
    for (int step = 0; step < 10; step++) { /* a nonce, every few seconds */
        round_of_many(self, &rv, 0);
        time_passes(self, 6 * ML_NS_PER_S);
    }
    ml_enqueue_filter_reset_backoff(self->filter);
    round_of_many(self, &rv, 0); /* all start, and each looks at its work once more */
    round_of_many(self, &rv, 0);
    assert_int_equal(self->slowed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- two that change the same fields in turn ---- */

/* The other one changes the spec, or else the status, at version rv - 1; the run that this brings
 * changes it back. Returns after how long the run came. */
static int64_t round_of_fight(struct wakes_world *self, struct ml_informer *informer, bool of_spec,
                              int rv)
{
    int before = self->woken;
    if (of_spec)
        spec_changes(self, informer, rv - 1);
    else
        status_changes(self, rv - 1);
    assert_int_equal(self->woken, before + 1);
    int64_t pause_ns = pause_of(self);
    time_passes(self, pause_ns);
    run_begins(self);
    run_writes(self, informer, (uint64_t)rv);
    run_ends(self);
    if (of_spec)
        spec_changes(self, informer, rv);
    else
        status_changes(self, rv);
    if (pause_ns == 0) /* else the watch has ended meanwhile */
        cache_shows(self, informer, rv);
    return pause_ns;
}

static void fight_is_slowed(struct wakes_world *self, struct ml_informer *informer, bool of_spec,
                            const char *fields)
{
    int rv = 5;
    self->author = "other";
    for (int run = 1; run <= 21; run++, rv += 2)
        assert_int_equal(round_of_fight(self, informer, of_spec, rv), 0);
    assert_int_equal(self->slowed, 1);
    assert_true(self->fight);
    assert_string_equal(self->other_side, "controller other");
    assert_string_equal(self->fields, fields);
    for (int64_t pause_s = 1; pause_s <= 1000; pause_s *= 2, rv += 2)
        assert_int_equal(round_of_fight(self, informer, of_spec, rv), pause_s * ML_NS_PER_S);
}

static void test_wakes_fight_over_a_field_is_slowed_and_names_the_other(void **state)
{
    struct wakes_world *self = *state;
    run_that_wakes_itself(self, self->child, 2); /* the field is known from now on */
    fight_is_slowed(self, self->child, true, "Pod d/a: spec.n");
}

static void test_wakes_fight_over_the_status_is_slowed_too(void **state)
{
    struct wakes_world *self = *state;
    fight_is_slowed(self, self->own, false, "Thing d/a: status.n");
}

static void test_wakes_fight_goes_on_when_the_answer_comes_after_the_event(void **state)
{
    struct wakes_world *self = *state;
    int rv = 3;
    self->author = "other";
    round_of_fight(self, self->own, false, rv);
    self->author = NULL; /* from here on nobody knows yet who wrote it */
    for (int run = 2; run <= 21; run++)
        round_of_fight(self, self->own, false, rv += 2);
    assert_int_equal(self->slowed, 1);
    assert_string_equal(self->other_side, "controller other");
    assert_int_equal(round_of_fight(self, self->own, false, rv += 2), ML_NS_PER_S);
}

static void test_wakes_fight_with_somebody_outside_is_slowed_too(void **state)
{
    struct wakes_world *self = *state;
    int rv = 3;
    for (int run = 1; run <= 21; run++, rv += 2)
        assert_int_equal(round_of_fight(self, self->own, false, rv), 0);
    assert_int_equal(self->slowed, 1);
    assert_true(self->fight);
    assert_string_equal(self->other_side, "");
}

static void test_wakes_fight_at_a_slow_pace_is_found_too(void **state)
{
    struct wakes_world *self = *state;
    int run = 1;
    for (int rv = 3; run <= 60 && self->slowed == 0; run++, rv += 2) {
        spec_changes(self, self->child, rv - 1);
        run_begins(self);
        run_writes(self, self->child, (uint64_t)rv);
        run_ends(self);
        spec_changes(self, self->child, rv);
        time_passes(self, 15 * ML_NS_PER_S);
    }
    assert_in_range(run, 35, 45);
    assert_true(self->fight);
}

/* The other side sets the field to `theirs`, the run that this brings sets it to `ours`. */
static void values_in_turn(struct wakes_world *self, struct ml_informer *informer, int rv, int ours,
                           int theirs)
{
    change(self, informer, at(self, rv - 2, ours, 1), at(self, rv - 1, theirs, 1));
    time_passes(self, pause_of(self));
    run_begins(self);
    run_writes(self, informer, (uint64_t)rv);
    run_ends(self);
    change(self, informer, at(self, rv - 1, theirs, 1), at(self, rv, ours, 1));
}

/* How many rounds go by before it is slowed, at this pace; 1000: it is not. */
static int rounds_till_slowed(struct wakes_world *self, struct ml_informer *informer,
                              int64_t pace_ns, int step)
{
    int rv = 3;
    run_that_wakes_itself(self, informer, 1);
    for (int round = 1; round < 1000; round++, rv += 2) {
        values_in_turn(self, informer, rv, 2, 5 + round % 100 * step);
        if (self->slowed > 0)
            return round;
        time_passes(self, pace_ns);
    }
    return 1000;
}

static void test_wakes_fight_over_two_values_is_found_early(void **state)
{
    struct wakes_world *self = *state;
    assert_in_range(rounds_till_slowed(self, self->child, 0, 0), 4, 6);
    assert_true(self->fight);
    self->slowed = 0;
    ml_enqueue_filter_gone(self->filter, KEY);
    assert_in_range(rounds_till_slowed(self, self->child, 15 * ML_NS_PER_S, 0), 4, 9);
    assert_true(self->fight);
}

/* A person, or a job, asks for something with a field, and the script answers with the same one. */
static void test_wakes_take_requests_and_their_answers_for_no_fight(void **state)
{
    struct wakes_world *self = *state;
    assert_int_equal(rounds_till_slowed(self, self->child, 30 * ML_NS_PER_S, 0), 1000);
    ml_enqueue_filter_gone(self->filter, KEY);
    assert_int_equal(rounds_till_slowed(self, self->child, 30 * ML_NS_PER_S, 1), 1000);
    ml_enqueue_filter_gone(self->filter, KEY);
    assert_in_range(rounds_till_slowed(self, self->own, 0, 0), 20, 22);
    self->slowed = 0;
    ml_enqueue_filter_gone(self->filter, KEY);
    assert_in_range(rounds_till_slowed(self, self->child, 0, 1), 20, 22);
}

static void test_wakes_fight_is_over_after_peace(void **state)
{
    struct wakes_world *self = *state;
    int rv = 3;
    self->author = "other";
    for (int run = 1; run <= 15; run++, rv += 2)
        round_of_fight(self, self->own, false, rv);
    time_passes(self, 600 * ML_NS_PER_S);
    for (int run = 1; run <= 20; run++, rv += 2)
        round_of_fight(self, self->own, false, rv);
    assert_int_equal(self->slowed, 0);
}

/* The other one's write comes first: Conflict, so this run writes nothing. */
static void test_wakes_fight_is_seen_through_runs_that_lose(void **state)
{
    struct wakes_world *self = *state;
    int rv = 3;
    self->author = "other";
    for (int run = 1; run <= 22; run++, rv += 2) {
        assert_int_equal(self->slowed, 0);
        round_of_fight(self, self->child, true, rv);
        for (int lost = 0; lost < 10; lost++) {
            run_begins(self);
            run_ends(self);
        }
    }
    assert_int_equal(self->slowed, 1);
}

/* One makes what the other one deletes. */
static void test_wakes_fight_over_the_existence_of_an_object_is_slowed_on_both_sides(void **state)
{
    struct wakes_world *self = *state;
    for (int deletes = 0; deletes < 2; deletes++) {
        self->slowed = 0;
        for (int run = 1, rv = 3; run <= 21; run++, rv += 2) {
            self->deleted_here = deletes;
            if (deletes)
                change(self, self->child, NULL, at(self, rv - 1, 1, 1));
            else
                change(self, self->child, at(self, rv - 1, 1, 1), NULL);
            assert_int_equal(pause_of(self), 0);
            run_begins(self);
            if (!deletes)
                run_writes(self, self->child, (uint64_t)rv);
            run_ends(self);
            if (deletes)
                change(self, self->child, at(self, rv, 1, 1), NULL);
            else
                change(self, self->child, NULL, at(self, rv, 1, 1));
        }
        assert_int_equal(self->slowed, 1);
        assert_true(self->fight);
        assert_string_equal(self->fields, "Pod d/a: it is made and deleted");
        ml_enqueue_filter_gone(self->filter, KEY);
    }
}

/* Another controller writes one field, this one answers in another: that is work, not a fight. */
static void test_wakes_controllers_that_hand_work_to_each_other_are_not_slowed(void **state)
{
    struct wakes_world *self = *state;
    self->author = "other";
    for (int rv = 3; rv < 500; rv += 2) {
        int before = self->woken;
        spec_changes(self, self->own, rv - 1);
        assert_int_equal(self->woken, before + 1);
        assert_int_equal(pause_of(self), 0);
        run_begins(self);
        run_writes(self, self->own, (uint64_t)rv);
        run_ends(self);
        status_changes(self, rv);
        cache_shows(self, self->own, rv);
    }
    assert_int_equal(self->slowed, 0);
}

/* Each keeps its own entry of one list, as conditions are: no list is as this key left it. */
static void test_wakes_two_that_merge_into_one_list_do_not_fight(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int turn = 1; turn <= 50; turn++, rv += 2) {
        change(self, self->own, with_list(self, rv - 1, turn - 1, turn - 1),
               with_list(self, rv, turn - 1, turn));
        run_begins(self);
        run_writes(self, self->own, (uint64_t)rv + 1);
        run_ends(self);
        change(self, self->own, with_list(self, rv, turn - 1, turn),
               with_list(self, rv + 1, turn, turn));
    }
    assert_int_equal(self->slowed, 0);
    for (int turn = 1; turn <= 23; turn++, rv += 2) {
        change(self, self->own, with_list(self, rv - 1, 1, 1), with_list(self, rv, 1, 2));
        run_begins(self);
        run_writes(self, self->own, (uint64_t)rv + 1);
        run_ends(self);
        change(self, self->own, with_list(self, rv, 1, 2), with_list(self, rv + 1, 1, 1));
    }
    assert_true(self->slowed > 0);
    assert_true(self->fight);
}

/* 100 keys of many fields: each has a bounded number of them, and all are forgotten. */
static void test_wakes_count_a_bounded_number_of_fields(void **state)
{
    struct wakes_world *self = *state;
    int rv = 2;
    for (int turn = 0; turn < 25; turn++) {
        run_begins(self);
        for (int object = 0; object < 100; object++)
            run_writes(self, self->child, (uint64_t)rv + (uint64_t)object);
        run_ends(self);
        for (int object = 0; object < 100; object++, rv++)
            change(self, self->child, named(self, rv - 1, object), named(self, rv, object));
    }
    assert_int_equal(self->slowed, 5);
    time_passes(self, 200 * ML_NS_PER_S);
    assert_int_equal(ml_enqueue_filter_len(self->filter), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_wakes_others_at_once_and_remembers_nothing),
        TEST(test_wakes_not_for_an_own_status_that_comes_back_after_the_run),
        TEST(test_wakes_not_for_an_own_status_that_comes_back_before_its_answer),
        TEST(test_wakes_tell_an_echo_that_comes_late),
        TEST(test_wakes_note_a_child_that_has_gone),
        TEST(test_wakes_take_a_change_that_concerns_a_key_twice_for_one_echo),
        TEST(test_wakes_for_what_others_did_before_the_own_status_comes_back),
        TEST(test_wakes_after_the_run_for_what_others_did_meanwhile),
        TEST(test_wakes_after_a_run_with_more_changes_than_are_held),
        TEST(test_wakes_for_a_version_that_another_kind_has_too),
        TEST(test_wakes_never_take_an_opaque_version_for_an_own_one),
        TEST(test_wakes_forget_a_write_that_changed_nothing),
        TEST(test_wakes_slow_a_key_after_twenty_runs_that_change_the_same),
        TEST(test_wakes_slow_a_key_whatever_others_write_between),
        TEST(test_wakes_keep_the_pause_whatever_others_change),
        TEST(test_wakes_end_a_pause_when_somebody_retries),
        TEST(test_wakes_end_pauses_for_no_more_than_twenty_edits_at_once),
        TEST(test_wakes_start_anew_a_minute_after_the_pause),
        TEST(test_wakes_start_anew_under_a_new_script_and_for_a_new_object),
        TEST(test_wakes_take_ten_runs_a_minute_for_no_loop),
        TEST(test_wakes_take_new_objects_for_no_loop),
        TEST(test_wakes_take_progress_that_follows_others_for_no_loop),
        TEST(test_wakes_slow_what_follows_others_for_ever),
        TEST(test_wakes_take_what_is_due_for_no_loop),
        TEST(test_wakes_slow_who_writes_status_and_asks_to_come_back_at_once),
        TEST(test_wakes_key_that_asks_again_at_once_is_slowed_after_100_runs),
        TEST(test_wakes_key_that_asks_for_10_ms_is_not_hot),
        TEST(test_wakes_fight_over_a_field_is_slowed_and_names_the_other),
        TEST(test_wakes_fight_over_the_status_is_slowed_too),
        TEST(test_wakes_fight_goes_on_when_the_answer_comes_after_the_event),
        TEST(test_wakes_fight_with_somebody_outside_is_slowed_too),
        TEST(test_wakes_fight_at_a_slow_pace_is_found_too),
        TEST(test_wakes_fight_over_two_values_is_found_early),
        TEST(test_wakes_take_requests_and_their_answers_for_no_fight),
        TEST(test_wakes_fight_is_over_after_peace),
        TEST(test_wakes_fight_is_seen_through_runs_that_lose),
        TEST(test_wakes_fight_over_the_existence_of_an_object_is_slowed_on_both_sides),
        TEST(test_wakes_controllers_that_hand_work_to_each_other_are_not_slowed),
        TEST(test_wakes_two_that_merge_into_one_list_do_not_fight),
        TEST(test_wakes_count_a_bounded_number_of_fields),
        TEST(test_wakes_many_keys_that_write_versions_are_slowed_within_five_seconds),
        TEST(test_wakes_take_steps_that_many_keys_make_for_no_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
