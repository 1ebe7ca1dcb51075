#include "state_informers.h"

static const struct ml_kind nodes = {"v1", "", "v1", "Node", "nodes", false, true};

struct informer_world {
    struct informers_world all;
    struct ml_informer *informer;
    struct ml_listener listener;
    struct ml_buf heard;
    struct ml_listener *leave; /* unlistened during the next change */
};

static void hear(struct informer_world *self, char sign, const struct ml_object *object)
{
    ml_buf_printf(&self->heard, " %c" ML_STR_FMT ":" ML_STR_FMT "@" ML_STR_FMT, sign,
                  ML_STR_ARG(ml_object_name(object)), ML_STR_ARG(ml_object_uid(object)),
                  ML_STR_ARG(ml_object_rv(object)));
}

static void on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct informer_world *self = context;
    const struct ml_store *store = ml_informer_store(informer);
    assert_true(old || new);
    hear(self, new ? old ? '~' : '+' : '-', new ? new : old);
    if (new) /* the store has changed before anybody hears of it */
        assert_ptr_equal(ml_store_get(store, ml_object_key(new)), new);
    if (old && new)
        assert_true(ml_str_eq(ml_object_uid(old), ml_object_uid(new)));
    if (self->leave)
        ml_informer_unlisten(ml_take(&self->leave));
}

static void on_synced(void *context, struct ml_informer *informer)
{
    struct informer_world *self = context;
    assert_true(ml_informer_synced(informer));
    ml_buf_puts(&self->heard, " synced");
}

static void assert_heard(struct informer_world *self, const char *want)
{
    const char *got = ml_buf_cstr(&self->heard);
    assert_string_equal(*got == ' ' ? got + 1 : got, want);
    ml_buf_clear(&self->heard);
}

static int setup(void **state)
{
    struct informer_world *self = ml_new(struct informer_world);
    informers_world_init(&self->all, NULL);
    self->informer = ml_informers_get(self->all.informers, &pods, NULL);
    self->listener = (struct ml_listener){
        .change = on_change, .synced = on_synced, .context = self};
    ml_informer_listen(self->informer, &self->listener);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct informer_world *self = *state;
    ml_informer_unlisten(&self->listener);
    ml_informer_put(self->informer);
    ml_loop_poll(self->all.world.loop);
    informers_world_fini(&self->all);
    ml_buf_fini(&self->heard);
    free(self);
    return 0;
}

/* Two pods are in and told of; the watch from version 5 is open. */
static struct fake_call *till_watching(struct informer_world *self)
{
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
    struct fake_call *watch = list_and_watch(&self->all, 5, items);
    ml_buf_clear(&self->heard);
    return watch;
}

static const struct ml_object *held(struct informer_world *self, const char *key)
{
    return ml_store_get(ml_informer_store(self->informer), ml_str_of(key));
}

static void test_informer_list_is_told_then_synced_once(void **state)
{
    struct informer_world *self = *state;
    assert_false(ml_informer_synced(self->informer));
    list_and_watch(&self->all, 5, pod("a", "ua", 3));
    assert_heard(self, "+a:ua@3 synced");
    assert_true(ml_informer_synced(self->informer));
}

static void test_informer_empty_list_is_synced(void **state)
{
    struct informer_world *self = *state;
    list_and_watch(&self->all, 5, "");
    assert_heard(self, "synced");
}

static void test_informer_events_reach_store_and_listeners(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "ADDED", pod("c", "uc", 6));
    send_event(watch, "MODIFIED", pod("a", "ua", 7));
    send_event(watch, "DELETED", pod("b", "ub", 8));
    assert_heard(self, "+c:uc@6 ~a:ua@7 -b:ub@4");
    assert_null(held(self, "default/b"));
    assert_int_equal(ml_store_len(ml_informer_store(self->informer)), 2);
}

static void test_informer_recreated_object_comes_as_delete_and_add(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "MODIFIED", pod("a", "ua2", 9)); /* the DELETED went unseen */
    assert_heard(self, "-a:ua@3 +a:ua2@9");
    send_event(watch, "DELETED", pod("a", "ua", 10)); /* of the former one: too late */
    assert_heard(self, "");
    assert_non_null(held(self, "default/a"));
}

static void test_informer_never_goes_back_in_time(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "MODIFIED", pod("a", "ua", 10));
    ml_buf_clear(&self->heard);
    send_event(watch, "MODIFIED", pod("a", "ua", 10));
    send_event(watch, "MODIFIED", pod("a", "ua", 9));
    send_event(watch, "ADDED", pod("a", "ua", 3));
    assert_heard(self, "");
    assert_str_eq(ml_object_rv(held(self, "default/a")), "10");
}

static void test_informer_relist_tells_the_difference_deletes_first(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("c", "uc", 8), pod("b", "ub", 9));
    reply_list(till_relist(&self->all, watch), 10, "", items);
    assert_heard(self, "-a:ua@3 +c:uc@8 ~b:ub@9");
}

static void test_informer_relist_of_a_recreated_object_is_delete_and_add(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua2", 8), pod("b", "ub", 4));
    reply_list(till_relist(&self->all, watch), 10, "", items);
    assert_heard(self, "-a:ua@3 +a:ua2@8");
}

static void test_informer_relist_keeps_unchanged_objects_by_identity(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    const struct ml_object *a = held(self, "default/a"), *b = held(self, "default/b");
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
    reply_list(till_relist(&self->all, watch), 10, "", items);
    assert_heard(self, "");
    assert_ptr_equal(held(self, "default/a"), a);
    assert_ptr_equal(held(self, "default/b"), b);
}

/* Readers never see half a list, neither while its pages come nor while it is told. */
static void on_change_whole(void *context, struct ml_informer *informer, struct ml_object *old,
                            struct ml_object *new)
{
    (void)old;
    (void)new;
    assert_int_equal(ml_store_len(ml_informer_store(informer)), 2);
    ++*(int *)context;
}

static void on_synced_ignored(void *context, struct ml_informer *informer)
{
    (void)context;
    (void)informer;
}

static void test_informer_list_enters_the_store_as_a_whole(void **state)
{
    struct informer_world *self = *state;
    int told = 0;
    struct ml_listener whole = {
        .change = on_change_whole, .synced = on_synced_ignored, .context = &told};
    ml_informer_listen(self->informer, &whole);
    ml_loop_poll(self->all.world.loop);
    reply_list(fake_next(self->all.world.server), 5, "t1", pod("a", "ua", 3));
    assert_int_equal(ml_store_len(ml_informer_store(self->informer)), 0);
    ml_loop_poll(self->all.world.loop);
    reply_list(fake_next(self->all.world.server), 5, "", pod("b", "ub", 4));
    assert_int_equal(told, 2);
    ml_loop_poll(self->all.world.loop);
    struct fake_call *watch = fake_next(self->all.world.server);
    fake_head(watch, 200);
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("c", "uc", 8), pod("d", "ud", 9));
    reply_list(till_relist(&self->all, watch), 10, "", items);
    assert_int_equal(told, 6);
    ml_informer_unlisten(&whole);
}

static void test_informer_late_listener_hears_the_store_first(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    ml_informer_unlisten(&self->listener);
    ml_informer_listen(self->informer, &self->listener);
    send_event(watch, "ADDED", pod("c", "uc", 6)); /* before the replay: part of it */
    assert_heard(self, "");
    ml_loop_poll(self->all.world.loop);
    const char *heard = ml_buf_cstr(&self->heard);
    assert_non_null(strstr(heard, "+a:ua@3"));
    assert_non_null(strstr(heard, "+b:ub@4"));
    assert_non_null(strstr(heard, "+c:uc@6"));
    assert_true(ml_str_ends(ml_buf_str(&self->heard), " synced"));
    ml_buf_clear(&self->heard);
    send_event(watch, "MODIFIED", pod("c", "uc", 7));
    assert_heard(self, "~c:uc@7");
}

static void test_informer_listener_may_leave_or_make_others_leave(void **state)
{
    struct informer_world *self = *state;
    struct ml_listener others[2];
    for (size_t i = 0; i < ML_COUNT(others); i++) {
        others[i] = (struct ml_listener){.change = on_change, .synced = on_synced, .context = self};
        ml_informer_listen(self->informer, &others[i]);
    }
    struct fake_call *watch = till_watching(self);
    self->leave = &others[0]; /* the next one */
    send_event(watch, "ADDED", pod("c", "uc", 6));
    assert_heard(self, "+c:uc@6 +c:uc@6");
    self->leave = &others[1]; /* the last one */
    send_event(watch, "ADDED", pod("d", "ud", 7));
    assert_heard(self, "+d:ud@7");
    self->leave = &self->listener; /* itself */
    send_event(watch, "ADDED", pod("e", "ue", 8));
    assert_heard(self, "+e:ue@8");
    send_event(watch, "ADDED", pod("f", "uf", 9));
    assert_heard(self, "");
}

static void on_change_put(void *context, struct ml_informer *informer, struct ml_object *old,
                          struct ml_object *new)
{
    struct ml_listener *listener = context;
    (void)old;
    (void)new;
    ml_informer_unlisten(listener);
    ml_informer_put(informer);
}

static void test_informer_may_be_given_back_while_it_tells(void **state)
{
    struct informer_world *self = *state;
    struct ml_informer *own = ml_informers_get_scoped(self->all.informers, &pods, ML_STR("x"),
                                                      ML_STR(""));
    struct ml_listener listener = {.change = on_change_put, .synced = on_synced_ignored};
    listener.context = &listener;
    ml_informer_listen(own, &listener);
    ml_loop_poll(self->all.world.loop);
    fake_next(self->all.world.server);
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
    reply_list(fake_next(self->all.world.server), 5, "", items);
    ml_loop_poll(self->all.world.loop);
    fake_expect_none(self->all.world.server); /* no watch of it follows */
}

/* Leaves in the middle of its replay and is gone before the call returns. */
static void on_change_leave(void *context, struct ml_informer *informer, struct ml_object *old,
                            struct ml_object *new)
{
    struct ml_listener **listener = context;
    (void)informer;
    (void)old;
    (void)new;
    ml_informer_unlisten(*listener);
    free(ml_take(listener)); /* a second call would meet NULL */
}

static void test_informer_listener_may_be_freed_while_it_is_told_what_is_there(void **state)
{
    struct informer_world *self = *state;
    till_watching(self);
    struct ml_listener *listener = ml_new(struct ml_listener);
    *listener = (struct ml_listener){
        .change = on_change_leave, .synced = on_synced_ignored, .context = &listener};
    ml_informer_listen(self->informer, listener);
    ml_loop_poll(self->all.world.loop);
    assert_null(listener);
}

static void test_informer_is_shared_by_kind_and_ends_with_the_last_user(void **state)
{
    struct informer_world *self = *state;
    struct ml_informer *same = ml_informers_get(self->all.informers, &pods, NULL);
    assert_ptr_equal(same, self->informer);
    assert_int_equal(ml_informer_users(same), 2);
    ml_informer_put(same);
    struct fake_call *watch = till_watching(self);
    ml_informer_unlisten(&self->listener);
    ml_informer_put(self->informer);
    assert_null(ml_informers_next(self->all.informers, NULL));
    ml_loop_poll(self->all.world.loop);
    assert_true(watch->canceled);
    self->informer = ml_informers_get(self->all.informers, &pods, NULL); /* a fresh one */
    assert_int_equal(ml_store_len(ml_informer_store(self->informer)), 0);
}

static void test_informer_scoped_is_not_shared(void **state)
{
    struct informer_world *self = *state;
    struct ml_informer *scoped = ml_informers_get_scoped(self->all.informers, &nodes, ML_STR(""),
                                                         ML_STR("n1"));
    struct ml_informer *all = ml_informers_get(self->all.informers, &nodes, NULL);
    assert_ptr_not_equal(all, scoped);
    ml_informer_put(all);
    ml_informer_put(scoped);
}

static void test_informer_trouble_is_kept_and_logged_ever_more_seldom(void **state)
{
    struct informer_world *self = *state;
    assert_null(ml_informer_trouble(self->informer));
    for (int i = 0; i < 10; i++) {
        fake_refuse(fake_next(self->all.world.server), 403, "Forbidden", "not for you");
        advance(&self->all.world, 11000);
    }
    assert_int_equal(ml_informer_trouble(self->informer)->kind, ML_EFORBIDDEN);
    assert_int_equal(count_logged(&self->all, "cannot list or watch"), 5); /* 0, 11, 22, 44, 88 s */
    assert_int_equal(count_logged(&self->all, "failures=9 retry_seconds=10."), 1);
    fake_refuse(fake_next(self->all.world.server), 404, "NotFound", "no such kind");
    assert_int_equal(count_logged(&self->all, "error=\"no such kind\""), 1);
    advance(&self->all.world, 11000);
    list_and_watch(&self->all, 5, "");
    assert_null(ml_informer_trouble(self->informer));
    assert_int_equal(count_logged(&self->all, "work again"), 1);
}

static void test_informer_poisoned_object_is_named_in_the_log(void **state)
{
    struct informer_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "MODIFIED",
               "{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\",\"uid\":\"ua\","
               "\"resourceVersion\":\"9\"},\"x\":\"\xff\"}");
    assert_heard(self, "");
    assert_str_eq(ml_object_rv(held(self, "default/a")), "3");
    assert_int_equal(count_logged(&self->all, "namespace=\"default\" name=\"a\""), 1);
}

/* ---- namespaces ---- */

static void test_informer_of_namespaces_is_synced_with_the_last_of_them(void **state)
{
    (void)state;
    static const char *const namespaces[] = {"default", "other", NULL};
    struct informers_world all;
    informers_world_init(&all, namespaces);
    struct ml_informer *informer = ml_informers_get(all.informers, &pods, NULL);
    struct fake_call *first = fake_expect(all.world.server, "GET",
                                          "/api/v1/namespaces/default/pods?limit=500");
    struct fake_call *second = fake_expect(all.world.server, "GET",
                                           "/api/v1/namespaces/other/pods?limit=500");
    reply_list(second, 9, "",
               "{\"metadata\":{\"name\":\"o\",\"namespace\":\"other\",\"uid\":\"uo\","
               "\"resourceVersion\":\"1\"}}");
    assert_false(ml_informer_synced(informer));
    reply_list(first, 5, "", pod("a", "ua", 3));
    assert_true(ml_informer_synced(informer));
    assert_int_equal(ml_store_len(ml_informer_store(informer)), 2);

    /* Each namespace has a version of its own; one that is not watched counts as seen. */
    assert_true(ml_informer_seen(informer, ML_STR("other"), 9));
    assert_false(ml_informer_seen(informer, ML_STR("default"), 9));
    assert_true(ml_informer_seen(informer, ML_STR("elsewhere"), 1000));

    /* A relist of one namespace leaves the objects of the other alone. */
    ml_loop_poll(all.world.loop);
    struct fake_call *watch = fake_next(all.world.server);
    if (!strstr(watch->path, "/default/"))
        watch = fake_next(all.world.server);
    fake_head(watch, 200);
    fake_piece(watch, "nonsense\n");
    advance(&all.world, 1600);
    struct fake_call *again = fake_call_at(all.world.server, fake_count(all.world.server) - 1);
    reply_list(again, 10, "", "");
    assert_int_equal(ml_store_len(ml_informer_store(informer)), 1);
    ml_informer_put(informer);
    ml_loop_poll(all.world.loop);
    informers_world_fini(&all);
}

static void test_informer_of_a_cluster_scoped_kind_is_whole_whatever_the_namespaces(void **state)
{
    (void)state;
    static const char *const namespaces[] = {"default", "other", NULL};
    struct informers_world all;
    informers_world_init(&all, namespaces);
    struct ml_informer *informer = ml_informers_get(all.informers, &nodes, NULL);
    fake_expect(all.world.server, "GET", "/api/v1/nodes?limit=500");
    fake_expect_none(all.world.server);
    assert_false(ml_informer_seen(informer, ML_STR(""), 1));
    ml_informer_put(informer);
    ml_loop_poll(all.world.loop);
    informers_world_fini(&all);
}

/* ---- metrics ---- */

static void assert_gauge(struct informer_world *self, const char *name, double want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ML_AUTO_FREE char *series = ml_asprintf("\n%s{resource=\"pods\"} ", name);
    ml_metrics_write(self->all.world.metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), series);
    assert_non_null(at);
    assert_true(strtod(at + strlen(series), NULL) == want);
}

static void test_informer_gauges_sum_what_is_held_and_end_at_0(void **state)
{
    struct informer_world *self = *state;
    till_watching(self);
    assert_gauge(self, "moonloop_cache_objects", 2);
    struct ml_informer *scoped = ml_informers_get_scoped(self->all.informers, &pods, ML_STR("x"),
                                                         ML_STR("y"));
    list_and_watch(&self->all, 5, pod("y", "uy", 3));
    assert_gauge(self, "moonloop_cache_objects", 3);
    ml_informer_put(scoped);
    ml_loop_poll(self->all.world.loop);
    assert_gauge(self, "moonloop_cache_objects", 2);
    ml_informer_unlisten(&self->listener);
    ml_informer_put(ml_take(&self->informer));
    ml_loop_poll(self->all.world.loop);
    assert_gauge(self, "moonloop_cache_objects", 0);
    assert_gauge(self, "moonloop_cache_bytes", 0);
}

/* An alert on increase() misses what a counter is born with. */
static void test_informer_counters_are_at_0_before_anything_happens(void **state)
{
    struct informer_world *self = *state;
    static const char *const lines[] = {
        "moonloop_objects_unreadable_total{resource=\"pods\"} 0\n",
        "moonloop_lists_total{resource=\"pods\",reason=\"start\"} 1\n",
        "moonloop_lists_total{resource=\"pods\",reason=\"gone\"} 0\n",
        "moonloop_lists_total{resource=\"pods\",reason=\"list_failed\"} 0\n",
        "moonloop_watch_ends_total{resource=\"pods\",how=\"ended\"} 0\n",
        "moonloop_watch_ends_total{resource=\"pods\",how=\"failed\"} 0\n",
        "moonloop_watch_ends_total{resource=\"pods\",how=\"throttled\"} 0\n",
    };
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(self->all.world.metrics, &page);
    for (size_t i = 0; i < ML_COUNT(lines); i++)
        if (!strstr(ml_buf_cstr(&page), lines[i]))
            fail_msg("%s is not in\n%s", lines[i], ml_buf_cstr(&page));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_informer_list_is_told_then_synced_once),
        TEST(test_informer_empty_list_is_synced),
        TEST(test_informer_events_reach_store_and_listeners),
        TEST(test_informer_recreated_object_comes_as_delete_and_add),
        TEST(test_informer_never_goes_back_in_time),
        TEST(test_informer_relist_tells_the_difference_deletes_first),
        TEST(test_informer_relist_of_a_recreated_object_is_delete_and_add),
        TEST(test_informer_relist_keeps_unchanged_objects_by_identity),
        TEST(test_informer_list_enters_the_store_as_a_whole),
        TEST(test_informer_late_listener_hears_the_store_first),
        TEST(test_informer_listener_may_leave_or_make_others_leave),
        TEST(test_informer_may_be_given_back_while_it_tells),
        TEST(test_informer_listener_may_be_freed_while_it_is_told_what_is_there),
        TEST(test_informer_is_shared_by_kind_and_ends_with_the_last_user),
        TEST(test_informer_scoped_is_not_shared),
        TEST(test_informer_trouble_is_kept_and_logged_ever_more_seldom),
        TEST(test_informer_poisoned_object_is_named_in_the_log),
        cmocka_unit_test(test_informer_of_namespaces_is_synced_with_the_last_of_them),
        cmocka_unit_test(test_informer_of_a_cluster_scoped_kind_is_whole_whatever_the_namespaces),
        TEST(test_informer_gauges_sum_what_is_held_and_end_at_0),
        TEST(test_informer_counters_are_at_0_before_anything_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
