/* ctx.metric through the operator: what a run records counts when it has ended well. */
#include "run_scripts.h"

#define DECLARED                                                                                   \
    "metrics = { c = { type = 'counter', help = 'x' },\n"                                          \
    "            g = { type = 'gauge', help = 'x', labels = { 'name' } } },\n"
#define RECORDED "ctx.metric('c', 1) ctx.metric('g', 5, { name = thing.metadata.name })\n"

static char *with_metrics(const char *before, const char *declared, const char *body)
{
    return ml_asprintf("local m = require 'moonloop'\n%s\n"
                       "return m.controller {\n"
                       "  name = 'a', reconciles = m.kind('test.dev/v1', 'Thing'), %s\n"
                       "  reconcile = function(thing, ctx) %s end,\n"
                       "}\n",
                       before, declared, body);
}

static void expect_page(struct world *world, const char *text, bool shown)
{
    struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &page);
    if ((strstr(ml_buf_cstr(&page), text) != NULL) != shown)
        fail_msg("%s: %s in\n%s", text, shown ? "not" : "wrongly", ml_buf_cstr(&page));
    ml_buf_fini(&page);
}

static void test_metric_counts_when_the_run_has_ended_well(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = with_metrics("local tries = 0", DECLARED,
                                        RECORDED "tries = tries + 1\n"
                                                 "if tries < 3 then error 'not yet' end");
    tell(world, a, NULL);
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 0\n", true);
    for (int i = 0; i < 10; i++) {
        accept_all(world);
        advance(world, 100 * ML_NS_PER_MS);
    }
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 1\n", true);
    expect_page(world, "moonloop_custom_g{controller=\"a\",name=\"a\"} 5\n", true);
}

/* The status is part of the run: without it, it is tried again. */
static void test_metric_counts_after_the_status_is_written(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = with_metrics("", DECLARED,
                                        RECORDED "return { status = { phase = 'x' } }");
    tell(world, a, NULL);
    fake_refuse(only_write(world), 500, "InternalError", "no");
    ml_loop_poll(world->loop);
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 0\n", true);
    advance(world, ML_NS_PER_S);
    fake_reply(only_write(world), 200, "{\"metadata\":{\"resourceVersion\":\"11\"}}");
    ml_loop_poll(world->loop);
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 1\n", true);
}

/* The last thing that a script does for an object: it is gone before its run has ended. */
static void test_metric_of_finalize_counts_though_the_object_is_gone_by_then(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = with_metrics(
        "", DECLARED "finalize = function(thing, ctx) " RECORDED " end,\n", "");
    tell(world, a, NULL);
    for (int i = 0; i < 30; i++) {
        int version = 20 + 10 * i;
        ML_AUTO_FREE char *reply = ml_asprintf("{\"metadata\":{\"resourceVersion\":\"%d\"}}",
                                               version + 1);
        ML_AUTO_FREE char *deleted = ml_asprintf(
            "{\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
            "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\","
            "\"resourceVersion\":\"%d\"}}}\n",
            version + 1);
        change(world, version, "X",
               ",\"finalizers\":[\"moonloop.dev/a\"],"
               "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
        struct fake_call *remove = only_write(world);
        assert_true(fake_piece(world->watch, deleted));
        ml_loop_poll(world->loop);
        if (i % 2 == 0)
            fake_reply(remove, 200, reply);
        else
            fake_refuse(remove, 404, "NotFound", "things \"a\" not found");
        ml_loop_poll(world->loop);
    }
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 30\n", true);
    expect_page(world, "moonloop_custom_g{", false);
}

static void test_metric_of_an_object_goes_with_it(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = with_metrics("", DECLARED, RECORDED);
    tell(world, a, NULL);
    expect_page(world, "moonloop_custom_g{", true);
    fake_piece(
        world->watch,
        "{\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\","
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
        "\"20\"}}}\n");
    ml_loop_poll(world->loop);
    expect_page(world, "moonloop_custom_g{", false);
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 1\n", true);
}

static void test_metric_keeps_its_value_in_the_next_version(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *first = with_metrics("", DECLARED, RECORDED);
    ML_AUTO_FREE char *second = with_metrics("", DECLARED, RECORDED " ctx.metric('c', 10)");
    ML_AUTO_FREE char *third = with_metrics("", "metrics = { c = { type = 'gauge', help = 'x' } },",
                                            "ctx.metric('c', 3)");
    tell(world, first, NULL);
    tell(world, second, NULL);
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 12\n", true);
    tell(world, third, NULL);
    expect_page(world, "# TYPE moonloop_custom_c gauge", true);
    expect_page(world, "moonloop_custom_c{controller=\"a\"} 3\n", true);
    expect_page(world, "moonloop_custom_g", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_metric_counts_when_the_run_has_ended_well, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_metric_counts_after_the_status_is_written, set_up,
                                        tear_down),
        SCRIPTS_TEST(test_metric_of_finalize_counts_though_the_object_is_gone_by_then),
        cmocka_unit_test_setup_teardown(test_metric_of_an_object_goes_with_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_metric_keeps_its_value_in_the_next_version, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
