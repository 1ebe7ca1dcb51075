/* Scripts that take too much of the CPU, beside one that does not. Their CPU time is real; the
 * clock that it is measured against is the test's, and stands still unless it is moved. */
#include "run_scripts.h"

#ifndef MOONLOOP_CPU_STRETCH
#define MOONLOOP_CPU_STRETCH 1
#endif

/* Takes 50 ms and more, as the machine is. */
#define BURN "local x = 0 for i = 1, 16000000 do x = x ~ i end\n"

/* The value of a metric as it is shown, "name{labels}". */
static double shown(struct world *world, const char *metric)
{
    struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(world->metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), metric);
    double value = at ? strtod(at + strlen(metric), NULL) : 0;
    ml_buf_fini(&page);
    return value;
}

#define RUNS_OF_B   "controller_runtime_reconcile_total{controller=\"b\",result=\"requeue_after\"}"
#define RUNS_OF_A   "controller_runtime_reconcile_total{controller=\"a\",result=\"success\"}"
#define OPEN_OF_A   "moonloop_controller_circuit_open{controller=\"a\"}"
#define LIVE_A      "moonloop_script_loaded_total{controller=\"a\"}"
#define CPU_OF_A    "moonloop_script_cpu_seconds_total{controller=\"a\"}"
#define ERRORS_OF_A "controller_runtime_reconcile_errors_total{controller=\"a\"}"

static void test_metering_controller_over_its_share_is_spaced_out_and_no_other(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = script("a", BURN "return");
    ML_AUTO_FREE char *b = script("b", "return { requeue_after = 0.05 }");
    ML_AUTO_FREE char *things = many_things();
    world->things = things;
    tell(world, a, b);
    for (int ms = 0; ms < 1000; ms += 10) /* each slice waits for as long as the one before took */
        advance(world, 10 * ML_NS_PER_MS);
    double first = shown(world, CPU_OF_A) / MOONLOOP_CPU_STRETCH;
    assert_true(first >= 0.5 && first <= 0.9); /* what may be used at once, and its share */
    assert_true(shown(world, RUNS_OF_B) >= 100);
    for (int ms = 0; ms < 2000; ms += 10)
        advance(world, 10 * ML_NS_PER_MS);
    double then = shown(world, CPU_OF_A) / MOONLOOP_CPU_STRETCH - first;
    assert_true(then >= 0.3 && then <= 0.65); /* a quarter of two seconds */
    assert_true(shown(world, RUNS_OF_B) >= 100 * 40);
}

static void test_metering_function_when_is_not_asked_over_the_share_and_all_counts(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = ml_asprintf(
        "local m = require 'moonloop'\n"
        "return m.controller {\n"
        "  name = 'a', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  when = function(old, new) while true do end end,\n"
        "  reconcile = function(thing, ctx)\n"
        "    if thing.spec.want == 'LAST' then return { status = { phase = 'LAST' } } end\n"
        "  end,\n"
        "}\n");
    tell(world, a, NULL);
    for (int i = 0; i < 200; i++)
        change(world, 11 + i, "X", "");
    assert_in_range((int)shown(world, ERRORS_OF_A), 20, 60); /* 10 ms each, then it owes */
    world->write_count = 0;                                  /* Events */
    change(world, 999, "LAST", "");
    for (int seconds = 0; seconds < 10; seconds++)
        advance(world, ML_NS_PER_S);
    size_t found = 0;
    for (size_t i = 0; i < world->write_count; i++)
        found += strstr(world->writes[i]->body, "\"phase\":\"LAST\"") != NULL;
    assert_int_equal(found, 1);
}

static const char *const mapper =
    "local m = require 'moonloop'\n"
    "local Part = m.kind('test.dev/v1', 'Part')\n"
    "return m.controller {\n"
    "  name = 'a', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
    "  watches = { m.watch(Part, function(part) %s return { 'd/a' } end) },\n"
    "  reconcile = function(thing, ctx)\n"
    "    local part = ctx.get(Part, 'p')\n"
    "    return part and { status = { phase = part.metadata.resourceVersion } }\n"
    "  end,\n"
    "}\n";

/* Answers each status, until nobody writes for a second, and says what the last one was. */
static void let_it_write(struct world *world, char last[64])
{
    for (int seconds = 0; seconds < 6; seconds++) {
        for (size_t i = 0; i < world->write_count; i++) {
            const char *phase = strstr(world->writes[i]->body, "\"phase\":\"");
            if (phase)
                snprintf(last, 64, "%.*s", (int)strcspn(phase + 9, "\""), phase + 9);
            fake_refuse(world->writes[i], 500, "InternalError", "again");
        }
        world->write_count = 0;
        advance(world, ML_NS_PER_S);
    }
}

static void test_metering_watch_function_over_the_share_loses_no_change(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = ml_asprintf(mapper, BURN);
    char last[64] = "";
    tell(world, a, NULL);
    reply_no_parts(world);
    /* More than are kept apart. */
    for (int i = 0; i < 600; i++) {
        ML_AUTO_FREE char *event = ml_asprintf(
            "{\"type\":\"%s\",\"object\":{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Part\","
            "\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"up\","
            "\"resourceVersion\":\"%d\"}}}\n",
            i ? "MODIFIED" : "ADDED", 20 + i);
        assert_true(fake_piece(world->parts_watch, event));
        if (i % 50 == 0)
            ml_loop_poll(world->loop);
    }
    let_it_write(world, last);
    assert_string_equal(last, "619");
}

/* One object may be the cause, and the cluster's other objects fine. */
static void test_metering_script_at_its_limits_is_tried_by_one_object_at_a_time(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = script("a", "ctx.log('runs') while true do end");
    ML_AUTO_FREE char *good = script("a", "return");
    ML_AUTO_FREE char *things = many_things();
    world->things = things;
    tell(world, a, NULL);
    for (int i = 0; i < 5 && shown(world, ERRORS_OF_A) < 5; i++) {
        accept_all(world);
        if (shown(world, ERRORS_OF_A) < 5)
            advance(world, ML_NS_PER_S / 2);
    }
    assert_int_equal((int)shown(world, ERRORS_OF_A), 5);
    assert_int_equal((int)shown(world, OPEN_OF_A), 1);
    assert_non_null(strstr(world->reported, "Warning CircuitOpen: 5 times in a row a limit ended"));
    assert_non_null(strstr(world->reported, "a.lua:4: used more than"));
    advance(world, ML_NS_PER_S - 1);
    assert_int_equal((int)shown(world, ERRORS_OF_A), 5);
    advance(world, 1);
    assert_int_equal((int)shown(world, ERRORS_OF_A), 6);
    advance(world, 2 * ML_NS_PER_S - 1);
    assert_int_equal((int)shown(world, ERRORS_OF_A), 6);
    advance(world, 1);
    assert_int_equal((int)shown(world, ERRORS_OF_A), 7);
    assert_true(ready(world));
    tell(world, good, NULL);
    assert_int_equal((int)shown(world, OPEN_OF_A), 0);
    assert_int_equal((int)shown(world, RUNS_OF_A), 100);
    assert_non_null(strstr(world->reported, "Normal ScriptLoaded"));
}

static void test_metering_memory_is_a_limit_as_well_and_a_success_closes_the_circuit(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = script(
        "a",
        "if thing.spec.want == 'GOOD' then return end\n"
        "local s = 'x' while true do s = s .. s end"); /* long before it reaches the CPU's limit */
    tell(world, a, NULL);
    accept_all(world);
    for (int i = 0; i < 40 && shown(world, ERRORS_OF_A) < 5; i++)
        advance(world, ML_NS_PER_S);
    assert_int_equal((int)shown(world, OPEN_OF_A), 1);
    assert_non_null(strstr(world->reported, "out of memory"));
    for (int i = 0; i < 8; i++)
        advance(world, (1 << i) * ML_NS_PER_S); /* the probes, until minutes lie between them */
    advance(world, ML_NS_PER_S);
    change(world, 11, "GOOD", "");
    assert_int_equal((int)shown(world, OPEN_OF_A), 0);
    assert_int_equal((int)shown(world, RUNS_OF_A), 1);
    assert_string_equal(world->reported,
                        "Normal CircuitClosed: controller a works within its limits again");
}

/* Tells a set of files: f0.lua, f1.lua, …, which loop when they are loaded, and the named one. */
static void tell_loops_and(struct world *world, size_t count, const char *good, const char *text)
{
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    for (size_t i = 0; i < count; i++) {
        ML_AUTO_FREE char *name = ml_asprintf("f%zu.lua", i);
        assert_int_equal(ml_files_add(&files, &ml_files_scripts, ml_str_of(name),
                                      ML_STR("while true do end"), &err),
                         0);
    }
    assert_int_equal(
        ml_files_add(&files, &ml_files_scripts, ml_str_of(good), ml_str_of(text), &err), 0);
    ml_source_notify_files(&world->source, &files);
    ml_files_fini(&files);
}

static void tell_loops(struct world *world, size_t count, const char *last)
{
    tell_loops_and(world, count, "z.lua", last);
}

static void test_metering_files_load_one_at_a_time_within_a_share(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *b = script("b", "return { requeue_after = 0.05 }");
    ML_AUTO_FREE char *other = script("a", "return");
    tell(world, NULL, b);
    tell_loops(world, 4, other);
    ml_loop_poll(world->loop);
    assert_int_equal((int)shown(world, LIVE_A), 0); /* no time passes: more is owed than may be */
    double ticks = shown(world, RUNS_OF_B);
    int ms = 0;
    for (; ms < 60000 && shown(world, LIVE_A) == 0; ms += 50)
        advance(world, 50 * ML_NS_PER_MS);
    assert_in_range(ms, 1000, 10000);
    assert_true(shown(world, RUNS_OF_B) - ticks >= ms / 50);
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f3.lua\"}"), 1);
}

static void test_metering_newer_set_takes_the_place_of_one_that_is_on_its_way(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = script("a", "return");
    tell_loops(world, 4, a);
    ml_loop_poll(world->loop);
    assert_false(ready(world));
    tell(world, a, NULL);
    advance(world, 4 * ML_NS_PER_S);
    assert_true(ready(world));
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f3.lua\"}"), 0);
}

static void test_metering_files_are_judged_as_soon_as_they_are_loaded(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = script("a", "return");
    tell_loops_and(world, 10, "a.lua", a);
    ml_loop_poll(world->loop); /* no time passes: the last of them wait for their share */
    assert_int_equal((int)shown(world, LIVE_A), 1);
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f0.lua\"}"), 1);
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f9.lua\"}"), 0);
    assert_false(ready(world));
}

static void test_metering_edited_file_goes_before_those_that_were_refused_as_they_are(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = script("a", "return");
    ML_AUTO_FREE char *edited = script("a", "return nil");
    tell_loops(world, 4, a);
    for (int seconds = 0; seconds < 20; seconds++)
        advance(world, ML_NS_PER_S);
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f3.lua\"}"), 1);
    tell_loops(world, 4, edited);
    assert_int_equal((int)shown(world, LIVE_A), 1);
    ml_loop_poll(world->loop);
    assert_int_equal((int)shown(world, LIVE_A), 2);
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f3.lua\"}"), 1);
}

static void test_metering_what_was_refused_is_not_loaded_again_unchanged(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *a = script("a", "return");
    tell_loops(world, 1, a);
    advance(world, 4 * ML_NS_PER_S);
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f0.lua\"}"), 1);
    assert_int_equal((int)shown(world, LIVE_A), 1);
    clock_t before = clock();
    for (int i = 0; i < 20; i++) {
        tell_loops(world, 1, a);
        advance(world, 4 * ML_NS_PER_S);
    }
    assert_true(clock() - before < 5 * CLOCKS_PER_SEC);
    assert_int_equal((int)shown(world, "moonloop_script_refused_total{file=\"f0.lua\"}"), 1);
}

static void test_metering_script_that_asks_again_at_once_for_ever_is_slowed(void **state)
{
    struct world *world = *state;
    static const char *const asks[] = {"return { requeue_after = 0 }",
                                       "return { requeue_at = math.floor(ctx.now()) }"};
    for (size_t i = 0; i < ML_COUNT(asks); i++) {
        ML_AUTO_FREE char *b = script("b", asks[i]);
        double before = shown(world, RUNS_OF_B);
        tell(world, b, NULL);
        for (int ms = 0; ms < 60000; ms += 10)
            advance(world, 10 * ML_NS_PER_MS);
        assert_in_range((int)(shown(world, RUNS_OF_B) - before), 150, 180);
    }
}

/* Holds on to as much as it gets. */
#define HOARD                                                                                      \
    "local t = {}\n"                                                                               \
    "local function hoard() while true do t[#t + 1] = ('x'):rep(4000) .. #t end end\n"

static void test_metering_memory_of_all_scripts_has_a_limit_and_leaves_each_its_part(void **state)
{
    struct world *world = *state;
    world->services.script_memory.max = 4 * 1024 * 1024;
    ML_AUTO_FREE char *a = script("a", "hoard()");
    ML_AUTO_FREE char *hoarder = ml_asprintf("%s%s", HOARD, a);
    ML_AUTO_FREE char *b = script("b", "local t = {} for i = 1, 2000 do t[i] = 'x' .. i end");
    tell(world, hoarder, b);
    for (int seconds = 0; seconds < 10; seconds++) {
        accept_all(world);
        advance(world, ML_NS_PER_S);
    }
    assert_in_range(world->services.script_memory.used, 2 * 1024 * 1024, 4 * 1024 * 1024);
    assert_true(shown(world, ERRORS_OF_A) >= 1);
    assert_true(shown(world, "controller_runtime_reconcile_total{controller=\"b\",result="
                             "\"success\"}") >= 1);
    assert_true(shown(world, "controller_runtime_reconcile_errors_total{controller=\"b\"}") == 0);
    ml_scripts_free(ml_take(&world->scripts));
    assert_int_equal(world->services.script_memory.used, 0);
}

static int set_up_metered(void **state)
{
    return set_up_world(state, true);
}

#define METERED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_metered, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        METERED_TEST(test_metering_controller_over_its_share_is_spaced_out_and_no_other),
        METERED_TEST(test_metering_function_when_is_not_asked_over_the_share_and_all_counts),
        METERED_TEST(test_metering_watch_function_over_the_share_loses_no_change),
        METERED_TEST(test_metering_script_at_its_limits_is_tried_by_one_object_at_a_time),
        METERED_TEST(test_metering_memory_is_a_limit_as_well_and_a_success_closes_the_circuit),
        METERED_TEST(test_metering_files_load_one_at_a_time_within_a_share),
        METERED_TEST(test_metering_newer_set_takes_the_place_of_one_that_is_on_its_way),
        METERED_TEST(test_metering_files_are_judged_as_soon_as_they_are_loaded),
        METERED_TEST(test_metering_edited_file_goes_before_those_that_were_refused_as_they_are),
        METERED_TEST(test_metering_what_was_refused_is_not_loaded_again_unchanged),
        METERED_TEST(test_metering_script_that_asks_again_at_once_for_ever_is_slowed),
        METERED_TEST(test_metering_memory_of_all_scripts_has_a_limit_and_leaves_each_its_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
