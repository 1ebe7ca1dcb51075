/* An informer with old news, with kinds that go away, and with parts of a kind. */
#include "state/store.h"
#include "state_informers.h"

struct news_world {
    struct informers_world all;
    struct ml_discovery *discovery;
    struct ml_informer *informer;
    struct ml_listener listener;
    struct ml_buf heard;
};

static void on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct news_world *self = context;
    const struct ml_object *object = new ? new : old;
    (void)informer;
    ml_buf_printf(&self->heard, " %c" ML_STR_FMT ":" ML_STR_FMT "@" ML_STR_FMT,
                  new ? old ? '~' : '+' : '-', ML_STR_ARG(ml_object_name(object)),
                  ML_STR_ARG(ml_object_uid(object)), ML_STR_ARG(ml_object_rv(object)));
}

static void on_synced(void *context, struct ml_informer *informer)
{
    (void)context;
    (void)informer;
}

static void assert_heard(struct news_world *self, const char *want)
{
    const char *got = ml_buf_cstr(&self->heard);
    assert_string_equal(*got == ' ' ? got + 1 : got, want);
    ml_buf_clear(&self->heard);
}

static void listen_to(struct news_world *self, struct ml_informer *informer)
{
    self->informer = informer;
    self->listener = (struct ml_listener){
        .change = on_change, .synced = on_synced, .context = self};
    ml_informer_listen(informer, &self->listener);
}

static int setup(void **state)
{
    struct news_world *self = ml_new(struct news_world);
    informers_world_init(&self->all, NULL);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct news_world *self = *state;
    ml_informer_unlisten(&self->listener);
    ml_informer_put(self->informer);
    ml_loop_poll(self->all.world.loop);
    ml_informers_free(ml_take(&self->all.informers));
    ml_discovery_free(self->discovery);
    informers_world_fini(&self->all);
    ml_buf_fini(&self->heard);
    free(self);
    return 0;
}

/* Two pods are in and told of; the watch from version 5 is open. */
static struct fake_call *till_watching(struct news_world *self)
{
    listen_to(self, ml_informers_get(self->all.informers, &pods, NULL));
    ML_AUTO_FREE char *items = ml_asprintf("%s,%s", pod("a", "ua", 3), pod("b", "ub", 4));
    struct fake_call *watch = list_and_watch(&self->all, 5, items);
    ml_buf_clear(&self->heard);
    return watch;
}

/* ---- old news ---- */

static void test_informer_repeated_and_late_events_change_nothing(void **state)
{
    struct news_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "MODIFIED", pod("a", "ua", 9));
    send_event(watch, "DELETED", pod("b", "ub", 10));
    assert_heard(self, "~a:ua@9 -b:ub@4");
    send_event(watch, "MODIFIED", pod("a", "ua", 9));
    send_event(watch, "MODIFIED", pod("a", "ua", 8));
    send_event(watch, "DELETED", pod("a", "ua", 7));  /* it had left a selection, and come back */
    send_event(watch, "MODIFIED", pod("b", "ub", 4)); /* it does not rise again */
    send_event(watch, "ADDED", pod("a", "u0", 2));    /* one that had the name before */
    assert_heard(self, "");
}

static void test_informer_late_event_of_a_deleted_one_does_not_hide_its_successor(void **state)
{
    struct news_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "DELETED", pod("b", "ub", 10));
    send_event(watch, "ADDED", pod("b", "uc", 11));
    send_event(watch, "DELETED", pod("b", "ub", 10));
    send_event(watch, "MODIFIED", pod("b", "ub", 4));
    assert_heard(self, "-b:ub@4 +b:uc@11");
}

static void test_informer_object_that_comes_back_into_the_selection_is_told(void **state)
{
    struct news_world *self = *state;
    struct fake_call *watch = till_watching(self);
    send_event(watch, "DELETED", pod("b", "ub", 10));
    send_event(watch, "ADDED", pod("b", "ub", 12));
    assert_heard(self, "-b:ub@4 +b:ub@12");
}

static void test_informer_forgets_departed_objects_of_long_ago(void **state)
{
    struct news_world *self = *state;
    struct fake_call *watch = till_watching(self);
    for (int i = 0; i < 3 * ML_TOMBSTONES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        send_event(watch, "ADDED", pod(name, name, 10 + 2 * i));
        send_event(watch, "DELETED", pod(name, name, 11 + 2 * i));
    }
    ml_buf_clear(&self->heard);
    send_event(watch, "MODIFIED", pod("n767", "n767", 10 + 2 * 767));
    assert_heard(self, "");
}

/* ---- a kind that goes away ---- */

static const char ats[] =
    "{\"kind\":\"APIResourceList\",\"groupVersion\":\"cnat.io/v1\",\"resources\":"
    "[{\"name\":\"ats\",\"namespaced\":true,\"kind\":\"At\"}]}";
static const char other[] = "{\"kind\":\"APIResourceList\",\"groupVersion\":\"cnat.io/v1\","
                            "\"resources\":[]}";

static void on_resolved(void *context, const struct ml_kind *kind, const struct ml_err *err)
{
    assert_null(err);
    *(const struct ml_kind **)context = kind;
}

/* As till_watching, of a kind that discovery knows. */
static struct fake_call *till_watching_ats(struct news_world *self)
{
    const struct ml_gvk gvk = {ML_STR("cnat.io"), ML_STR("v1"), ML_STR("At")};
    const struct ml_kind *kind = NULL;
    struct world *world = &self->all.world;
    self->discovery = ml_discovery_new(world->client, world->loop);
    ml_informers_free(self->all.informers);
    self->all.informers = ml_informers_new(&(struct ml_informers_opts){
        .client = world->client,
        .loop = world->loop,
        .random = &world->random,
        .log = &self->all.log,
        .metrics = world->metrics,
        .discovery = self->discovery,
    });
    ml_discovery_resolve(self->discovery, &gvk, on_resolved, &kind);
    ml_loop_poll(world->loop);
    fake_reply(fake_next(world->server), 200, ats);
    ml_loop_poll(world->loop);
    listen_to(self, ml_informers_get(self->all.informers, kind, NULL));
    struct fake_call *watch = list_and_watch(&self->all, 5, pod("a", "ua", 3));
    assert_heard(self, "+a:ua@3");
    return watch;
}

/* The watch ends, and the collection is no more; returns what is asked of discovery. */
static struct fake_call *till_missing(struct news_world *self, struct fake_call *watch)
{
    struct world *world = &self->all.world;
    advance(world, 1000);
    fake_end(watch);
    ml_loop_poll(world->loop);
    fake_refuse(fake_next(world->server), 404, "NotFound", "the server could not find it");
    ml_loop_poll(world->loop);
    return fake_expect(world->server, "GET", "/apis/cnat.io/v1");
}

static void test_informer_of_a_kind_that_went_away_is_emptied(void **state)
{
    struct news_world *self = *state;
    struct fake_call *asked = till_missing(self, till_watching_ats(self));
    assert_heard(self, "");
    fake_reply(asked, 200, other);
    ml_loop_poll(self->all.world.loop);
    assert_heard(self, "-a:ua@3");
    assert_int_equal(ml_store_len(ml_informer_store(self->informer)), 0);
    assert_int_equal(count_logged(&self->all, "the kind no longer exists"), 1);
    /* Looked for with a pause, and not told again. */
    for (int i = 0; i < 3; i++) {
        advance(&self->all.world, 11000);
        fake_refuse(fake_next(self->all.world.server), 404, "NotFound", "no");
        ml_loop_poll(self->all.world.loop);
        fake_reply(fake_expect(self->all.world.server, "GET", "/apis/cnat.io/v1"), 200, other);
        ml_loop_poll(self->all.world.loop);
    }
    assert_int_equal(count_logged(&self->all, "the kind no longer exists"), 1);
    /* And back: what is there now is told. */
    advance(&self->all.world, 11000);
    reply_list(fake_next(self->all.world.server), 30, "", pod("a", "un", 29));
    assert_heard(self, "+a:un@29");
}

/* A proxy or a starting server says 404 of a kind that is still there. */
static void test_informer_keeps_its_objects_when_only_the_collection_is_missing(void **state)
{
    struct news_world *self = *state;
    struct fake_call *asked = till_missing(self, till_watching_ats(self));
    fake_reply(asked, 200, ats);
    ml_loop_poll(self->all.world.loop);
    assert_heard(self, "");
    advance(&self->all.world, 11000);
    fake_refuse(fake_next(self->all.world.server), 404, "NotFound", "no");
    ml_loop_poll(self->all.world.loop);
    fake_refuse(fake_next(self->all.world.server), 500, "InternalError", "oops");
    ml_loop_poll(self->all.world.loop);
    assert_heard(self, "");
}

static void on_seen(void *context)
{
    (void)context;
}

static void test_informer_of_a_kind_that_went_away_holds_nobody_up(void **state)
{
    struct news_world *self = *state;
    struct fake_call *watch = till_watching_ats(self);
    struct ml_seen_wait wait;
    ml_seen_wait_start(&wait, self->informer, ML_STR("default"), 1000, on_seen, NULL);
    assert_false(ml_seen_wait_over(&wait));
    fake_reply(till_missing(self, watch), 200, other);
    ml_loop_poll(self->all.world.loop);
    assert_true(ml_seen_wait_over(&wait));
}

static void test_informer_may_end_while_its_kind_is_looked_up(void **state)
{
    struct news_world *self = *state;
    struct fake_call *asked = till_missing(self, till_watching_ats(self));
    ml_informer_unlisten(&self->listener);
    ml_informer_put(ml_take(&self->informer));
    ml_loop_poll(self->all.world.loop);
    fake_reply(asked, 200, other);
    ml_loop_poll(self->all.world.loop);
    assert_heard(self, "");
}

/* ---- parts of a kind ---- */

static const struct ml_selection web = {ML_STR("app=web,tier!=cache"), ML_STR("spec.nodeName=n1"),
                                        false};
static const struct ml_selection bare = {ML_STR(""), ML_STR(""), true};

static void test_informer_of_a_part_lets_the_server_select(void **state)
{
    struct news_world *self = *state;
    listen_to(self, ml_informers_get(self->all.informers, &pods, &web));
    struct fake_call *watch = list_and_watch(&self->all, 5, pod("a", "ua", 3));
    struct fake_call *list = fake_call_at(self->all.world.server, 0);
    assert_string_equal(list->path, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1&labelSelector="
                                    "app%3Dweb%2Ctier%21%3Dcache&limit=500");
    assert_string_equal(query_of(watch, "labelSelector"), "app%3Dweb%2Ctier%21%3Dcache");
    assert_null(watch->accept);
}

static void test_informers_of_different_parts_are_not_shared(void **state)
{
    struct news_world *self = *state;
    struct ml_informers *informers = self->all.informers;
    struct ml_informer *part = ml_informers_get(informers, &pods, &web);
    struct ml_informer *same = ml_informers_get(informers, &pods, &web);
    listen_to(self, ml_informers_get(informers, &pods, NULL));
    assert_ptr_equal(part, same);
    assert_ptr_not_equal(part, self->informer);
    ml_informer_put(part);
    ml_informer_put(same);
    ml_loop_poll(self->all.world.loop);
}

/* A server that does not know the form, or a proxy, sends whole objects: the same is kept. */
static void test_informer_of_metadata_keeps_no_more(void **state)
{
    struct news_world *self = *state;
    listen_to(self, ml_informers_get(self->all.informers, &pods, &bare));
    struct fake_call *watch = list_and_watch(
        &self->all, 5,
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"ua\","
        "\"resourceVersion\":"
        "\"3\",\"labels\":{\"x\":\"y\"}}},"
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"spec\":{\"big\":1},\"metadata\":{\"name\":\"b\","
        "\"namespace\":\"default\",\"uid\":\"ub\",\"resourceVersion\":\"4\"}}");
    struct fake_call *list = fake_call_at(self->all.world.server, 0);
    assert_string_equal(list->accept, "application/json;as=PartialObjectMetadataList;"
                                      "g=meta.k8s.io;v=v1,application/json");
    assert_string_equal(watch->accept, "application/json;as=PartialObjectMetadata;"
                                       "g=meta.k8s.io;v=v1,application/json");
    send_event(
        watch, "ADDED",
        "{\"apiVersion\":\"meta.k8s.io/v1\",\"kind\":\"PartialObjectMetadata\",\"metadata\":{"
        "\"name\":\"c\",\"namespace\":\"default\",\"uid\":\"uc\",\"resourceVersion\":\"6\"}}");
    static const char *const want[][2] = {
        {"default/a", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                      "\"namespace\":\"default\",\"uid\":\"ua\",\"resourceVersion\":\"3\","
                      "\"labels\":{\"x\":\"y\"}}}"},
        {"default/b", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\","
                      "\"namespace\":\"default\",\"uid\":\"ub\",\"resourceVersion\":\"4\"}}"},
        {"default/c", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"c\","
                      "\"namespace\":\"default\",\"uid\":\"uc\",\"resourceVersion\":\"6\"}}"},
    };
    for (size_t i = 0; i < ML_COUNT(want); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
        ml_object_json(ml_store_get(ml_informer_store(self->informer), ml_str_of(want[i][0])),
                       &json);
        assert_string_equal(ml_buf_cstr(&json), want[i][1]);
    }
}

static void test_informer_of_metadata_refused_asks_for_whole_objects_for_good(void **state)
{
    struct news_world *self = *state;
    static const int codes[] = {406, 415};
    for (size_t i = 0; i < ML_COUNT(codes); i++) {
        struct ml_informer *informer = ml_informers_get(self->all.informers, &pods, &bare);
        struct fake_call *list = fake_next(self->all.world.server);
        if (i == 0) {
            assert_non_null(list->accept);
            fake_refuse(list, codes[i], "NotAcceptable", "no");
            advance(&self->all.world, 1600);
            list = fake_next(self->all.world.server);
        }
        assert_null(list->accept);
        ml_informer_put(informer);
        ml_loop_poll(self->all.world.loop);
    }
}

/* Metrics count the reasons of lists, and the ways in which watches end. */
static void test_informer_counts_lists_and_watch_ends(void **state)
{
    struct news_world *self = *state;
    struct fake_call *watch = till_watching(self);
    advance(&self->all.world, 1000);
    fake_end(watch);
    ml_loop_poll(self->all.world.loop);
    fake_refuse(fake_next(self->all.world.server), 410, "Expired", "old");
    advance(&self->all.world, 1600);
    fake_refuse(fake_next(self->all.world.server), 410, "Expired", "old");
    ml_loop_poll(self->all.world.loop);
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ml_metrics_write(self->all.world.metrics, &text);
    static const char *const lines[] = {
        "moonloop_lists_total{resource=\"pods\",reason=\"start\"} 1\n",
        "moonloop_lists_total{resource=\"pods\",reason=\"gone\"} 2\n",
        "moonloop_watch_ends_total{resource=\"pods\",how=\"ended\"} 1\n",
        "moonloop_watch_ends_total{resource=\"pods\",how=\"gone\"} 1\n",
    };
    for (size_t i = 0; i < ML_COUNT(lines); i++)
        assert_non_null(strstr(ml_buf_cstr(&text), lines[i]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_informer_repeated_and_late_events_change_nothing),
        TEST(test_informer_late_event_of_a_deleted_one_does_not_hide_its_successor),
        TEST(test_informer_object_that_comes_back_into_the_selection_is_told),
        TEST(test_informer_forgets_departed_objects_of_long_ago),
        TEST(test_informer_of_a_kind_that_went_away_is_emptied),
        TEST(test_informer_keeps_its_objects_when_only_the_collection_is_missing),
        TEST(test_informer_of_a_kind_that_went_away_holds_nobody_up),
        TEST(test_informer_may_end_while_its_kind_is_looked_up),
        TEST(test_informer_of_a_part_lets_the_server_select),
        TEST(test_informers_of_different_parts_are_not_shared),
        TEST(test_informer_of_metadata_keeps_no_more),
        TEST(test_informer_of_metadata_refused_asks_for_whole_objects_for_good),
        TEST(test_informer_counts_lists_and_watch_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
