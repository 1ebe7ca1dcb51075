#include "state_world.h"

#include "operator/stale_keys.h"

struct live_read_world {
    struct world world;
    struct ml_dict *dict;
    struct ml_object *object; /* default/a, of uid ua */
    int done;
    int kind;
};

static void on_done(void *context, const struct ml_err *err)
{
    struct live_read_world *self = context;
    self->done++;
    self->kind = err ? err->kind : 0;
}

static int setup(void **state)
{
    struct live_read_world *self = ml_new(struct live_read_world);
    struct ml_err err = ML_ERR_INIT;
    world_init(&self->world);
    self->dict = ml_dict_new();
    assert_int_equal(
        ml_object_new(self->dict, "v1", "Pod", ml_str_of(pod("a", "ua", 5)), &self->object, &err),
        0);
    *state = self;
    return 0;
}

static int teardown(void **state)
{
    struct live_read_world *self = *state;
    ml_object_unref(self->object);
    ml_dict_unref(self->dict);
    world_fini(&self->world);
    free(self);
    return 0;
}

static struct ml_live_read *start(struct live_read_world *self)
{
    self->done = 0;
    struct ml_live_read *read = ml_live_read_start(self->world.client, &pods, self->object, on_done,
                                                   self);
    assert_int_equal(self->done, 0); /* never inside the call */
    return read;
}

static struct fake_call *expect_get(struct live_read_world *self)
{
    return fake_expect(self->world.server, "GET", "/api/v1/namespaces/default/pods/a");
}

static void test_live_read_finds_the_very_object_at_any_version(void **state)
{
    struct live_read_world *self = *state;
    start(self);
    fake_reply(expect_get(self), 200, pod("a", "ua", 77));
    assert_int_equal(self->done, 1);
    assert_int_equal(self->kind, 0);
}

static void test_live_read_finds_another_one_or_one_that_goes_or_none(void **state)
{
    struct live_read_world *self = *state;
    static const char going[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                                "\"a\",\"namespace\":\"default\",\"uid\":\"ua\","
                                "\"resourceVersion\":\"6\","
                                "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}";
    const char *const found[] = {pod("a", "ub", 77), going, "{}"};
    for (size_t i = 0; i < ML_COUNT(found); i++) {
        start(self);
        fake_reply(expect_get(self), 200, found[i]);
        assert_int_equal(self->kind, ML_ECONFLICT);
    }
    start(self);
    fake_refuse(expect_get(self), 404, "NotFound", "pods \"a\" not found");
    assert_int_equal(self->kind, ML_ECONFLICT);
    start(self);
    fake_refuse(expect_get(self), 403, "Forbidden", "no");
    assert_int_equal(self->kind, ML_EFORBIDDEN);
}

static void test_live_read_canceled_is_silent(void **state)
{
    struct live_read_world *self = *state;
    struct ml_live_read *live_read = start(self);
    expect_get(self);
    ml_live_read_cancel(live_read);
    ml_live_read_cancel(NULL);
    assert_int_equal(self->done, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_live_read_finds_the_very_object_at_any_version),
        TEST(test_live_read_finds_another_one_or_one_that_goes_or_none),
        TEST(test_live_read_canceled_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
