/* Objects and controllers that somebody has paused, on a scripted API server and a fake clock. */
#include "run_scripts.h"

#define PAUSED  ",\"annotations\":{\"moonloop.dev/paused\":\"true\"}"
#define CARRIES ",\"finalizers\":[\"moonloop.dev/one\"]"
#define GOING   ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""
#define COUNTS  "return { status = { phase = thing.spec.want } }"

/* The writes so far but Events, which are answered. */
static size_t count_writes(struct world *world)
{
    size_t at = 0;
    while (at < world->write_count) {
        if (!strstr(world->writes[at]->path, "/events")) {
            at++;
            continue;
        }
        fake_reply(world->writes[at], 201, "{}");
        world->write_count--;
        memmove(&world->writes[at], &world->writes[at + 1],
                (world->write_count - at) * sizeof(world->writes[0]));
        ml_loop_poll(world->loop);
    }
    return world->write_count;
}

/* The only write but Events. */
static struct fake_call *take_write(struct world *world, const char *body)
{
    assert_int_equal(count_writes(world), 1);
    struct fake_call *call = only_write(world);
    if (!strstr(call->body, body))
        fail_msg("%s %s: %s, not %s", call->method, call->path, call->body, body);
    return call;
}

/* The object, in the answer to the write, and in the watch. `more` as of change(). */
static void settle(struct world *world, struct fake_call *write, int version, const char *want,
                   const char *status, const char *more)
{
    ML_AUTO_FREE char *object = ml_asprintf(
        "{\"apiVersion\":\"test.dev/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"%d\"%s},"
        "\"spec\":{\"want\":\"%s\"},\"status\":%s}",
        version, more, want, status);
    ML_AUTO_FREE char *event = ml_asprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", object);
    if (write)
        fake_reply(write, 200, object);
    assert_true(fake_piece(world->watch, event));
    ml_loop_poll(world->loop);
}

#define SAYS_PAUSED                                                                                \
    "{\"conditions\":[{\"type\":\"Reconciled\",\"status\":\"False\",\"reason\":\"Paused\","        \
    "\"message\":\"one: the annotation moonloop.dev/paused is \\\"true\\\": it is neither "        \
    "reconciled nor finalized, and nothing is written for it\",\"observedGeneration\":0,"          \
    "\"lastTransitionTime\":\"2023-11-14T22:13:20Z\"}]}"

static double gauge(struct world *world, const char *name)
{
    ML_AUTO(ml_buf_fini) struct ml_buf page = ML_BUF_INIT;
    ML_AUTO_FREE char *line = ml_asprintf("\n%s{controller=\"one\"} ", name);
    ml_metrics_write(world->metrics, &page);
    const char *at = strstr(ml_buf_cstr(&page), line);
    assert_non_null(at);
    return strtod(at + strlen(line), NULL);
}

/* ---- an object ---- */

static void test_paused_object_says_so_and_is_left_alone(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", COUNTS);
    tell(world, one, NULL);
    accept_all(world);
    change(world, 20, "X", PAUSED);
    struct fake_call *said = take_write(world, "\"reason\":\"Paused\"");
    assert_null(strstr(said->body, "phase"));
    assert_int_equal(gauge(world, "moonloop_objects_paused"), 1);
    settle(world, said, 21, "X", SAYS_PAUSED, PAUSED);
    settle(world, NULL, 22, "Y", SAYS_PAUSED, PAUSED);
    advance(world, 60 * ML_NS_PER_S);
    assert_int_equal(count_writes(world), 0);
    settle(world, NULL, 23, "Y", SAYS_PAUSED, "");
    struct fake_call *again = take_write(world, "\"phase\":\"Y\"");
    assert_non_null(strstr(again->body, "\"type\":\"Reconciled\",\"status\":\"True\""));
    settle(
        world, again, 24, "Y",
        "{\"phase\":\"Y\",\"conditions\":[{\"type\":\"Reconciled\",\"status\":\"True\",\"reason\":"
        "\"Reconciled\",\"message\":\"\",\"lastTransitionTime\":\"2023-11-14T22:13:20Z\"}]}",
        "");
    assert_int_equal(count_writes(world), 0);
    assert_int_equal(gauge(world, "moonloop_objects_paused"), 0);
    assert_int_equal(unit_count(world->log.fd, "after a failure"), 0);
}

/* The script has read nothing of the annotation, and wants to be called for its spec alone. */
static void test_pause_counts_whatever_the_script_reads(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = ml_asprintf(
        "local m = require 'moonloop'\n"
        "return m.controller { name = 'one',\n"
        "  reconciles = m.kind('test.dev/v1', 'Thing'), when = { 'labels' },\n"
        "  reconcile = function(thing) return { status = { phase = 'ONE' } } end }\n");
    tell(world, one, NULL);
    settle(world, only_write(world), 11, "X", "{\"phase\":\"ONE\"}", "");
    settle(world, NULL, 12, "X", "{\"phase\":\"ONE\"}", PAUSED);
    settle(world, take_write(world, "Paused"), 13, "X", SAYS_PAUSED, PAUSED);
    settle(world, NULL, 14, "X", SAYS_PAUSED, "");
    take_write(world, "\"status\":\"True\"");
}

/* A time that it asked for before the pause is not kept. */
static void test_paused_object_is_not_called_at_its_time(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script(
        "one",
        "return { status = { phase = thing.spec and thing.spec.want }, requeue_after = 60 }");
    tell(world, one, NULL);
    settle(world, NULL, 11, "X", "{\"phase\":\"X\"}", "");
    accept_all(world);
    settle(world, NULL, 12, "X", "{\"phase\":\"X\"}", PAUSED);
    settle(world, take_write(world, "Paused"), 13, "X", SAYS_PAUSED, PAUSED);
    double before = ml_metric_value(
        ml_metric_with(ml_metrics_counter(world->metrics, "controller_runtime_reconcile_total", "",
                                          ml_metric_labels("controller", "result")),
                       ml_metric_labels("one", "requeue_after")));
    advance(world, 120 * ML_NS_PER_S);
    assert_int_equal(count_writes(world), 0);
    assert_int_equal(ml_metric_value(ml_metric_with(
                         ml_metrics_counter(world->metrics, "controller_runtime_reconcile_total",
                                            "", ml_metric_labels("controller", "result")),
                         ml_metric_labels("one", "requeue_after"))),
                     before);
}

static void test_paused_object_keeps_its_finalizer(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = ml_asprintf(
        "local m = require 'moonloop'\n"
        "return m.controller { name = 'one', reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  reconcile = function() end, finalize = function() end }\n");
    tell(world, one, NULL);
    settle(world, NULL, 11, "X", "{}", CARRIES PAUSED);
    settle(world, take_write(world, "Paused"), 12, "X", SAYS_PAUSED, CARRIES PAUSED);
    settle(world, NULL, 13, "X", SAYS_PAUSED, CARRIES PAUSED GOING);
    advance(world, 60 * ML_NS_PER_S);
    assert_int_equal(count_writes(world), 0);
    settle(world, NULL, 14, "X", SAYS_PAUSED, CARRIES GOING);
    take_write(world, "\"finalizers\":[]");
}

/* A finalizer whose script has no finalize any more, and one of a former name, wait as well. */
static void test_paused_object_is_not_released(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "");
    tell(world, one, NULL);
    settle(world, NULL, 11, "X", SAYS_PAUSED, CARRIES PAUSED);
    advance(world, 60 * ML_NS_PER_S);
    assert_int_equal(count_writes(world), 0);
    settle(world, NULL, 12, "X", SAYS_PAUSED, CARRIES);
    take_write(world, "\"finalizers\":[]");
}

static void test_pause_has_one_word(void **state)
{
    struct world *world = *state;
    static const char *const others[] = {
        ",\"annotations\":{\"moonloop.dev/paused\":\"false\"}",
        ",\"annotations\":{\"moonloop.dev/paused\":\"True\"}",
        ",\"annotations\":{\"moonloop.dev/paused\":\"\"}",
        ",\"annotations\":{\"x\":\"moonloop.dev/paused\",\"moonloop.dev/paused2\":\"true\"}",
        ",\"labels\":{\"moonloop.dev/paused\":\"true\"}",
    };
    ML_AUTO_FREE char *one = script("one", COUNTS);
    world->things = "{\"kind\":\"ThingList\",\"apiVersion\":\"test.dev/v1\","
                    "\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}";
    tell(world, one, NULL);
    for (size_t i = 0; i < ML_COUNT(others); i++) {
        ML_AUTO_FREE char *want = ml_asprintf("W%zu", i);
        ML_AUTO_FREE char *status = ml_asprintf("{\"phase\":\"%s\"}", want);
        settle(world, NULL, 20 + 2 * (int)i, want, "{}", others[i]);
        settle(world, take_write(world, want), 21 + 2 * (int)i, want, status, others[i]);
    }
}

/* ---- a controller ---- */

static void set_paused(struct world *world, const char *names)
{
    free(world->source.paused);
    world->source.paused = ml_strdup(names);
}

static void test_paused_controller_reconciles_nothing_until_it_goes_on(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *two = script("one", "return { status = { phase = 'TWO' } }");
    set_paused(world, "true");
    tell(world, one, NULL);
    assert_live(world, "one");
    assert_int_equal(count_writes(world), 0);
    assert_int_equal(gauge(world, "moonloop_controller_paused"), 1);
    change(world, 11, "X", "");
    tell(world, two, NULL); /* a new version comes, and runs for nothing either */
    advance(world, 60 * ML_NS_PER_S);
    assert_int_equal(count_writes(world), 0);
    set_paused(world, NULL);
    tell(world, two, NULL);
    assert_string_equal(world->reported, "Normal Resumed: controller one reconciles again");
    assert_int_equal(gauge(world, "moonloop_controller_paused"), 0);
    take_write(world, "\"phase\":\"TWO\"");
}

static void test_pause_of_a_controller_comes_before_a_version_of_the_same_edit(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *two = script("one", "return { status = { phase = 'TWO' } }");
    tell(world, one, NULL);
    accept(world, only_write(world), 11, "ONE");
    set_paused(world, "other, one");
    tell(world, two, NULL);
    assert_int_equal(count_writes(world), 0);
    assert_int_equal(unit_count(world->log.fd, "controller is paused"), 1);
}

static void test_pause_of_one_controller_is_not_anothers(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { status = { phase = 'ONE' } }");
    ML_AUTO_FREE char *two = script("two", "return { status = { phase = 'TWO' } }");
    set_paused(world, "two");
    tell(world, one, two);
    take_write(world, "ONE");
}

/* The ConfigMap may lose its files, and what runs keeps running: it can be paused all the same. */
static void test_pause_needs_no_files(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", COUNTS);
    struct ml_err err = ML_ERR_INIT;
    tell(world, one, NULL);
    accept_all(world);
    set_paused(world, "one");
    ml_err_set(&err, ML_ENOT_FOUND, "no key that ends in .lua");
    ml_source_notify_trouble(&world->source, &err);
    change(world, 11, "X", "");
    assert_int_equal(count_writes(world), 0);
}

/* ---- once more, now ---- */

#define RETRY(value) ",\"annotations\":{\"moonloop.dev/retry\":\"" value "\"}"

static double count_runs(struct world *world)
{
    double sum = 0;
    static const char *const results[] = {"success", "error", "requeue_after"};
    for (size_t i = 0; i < ML_COUNT(results); i++)
        sum += ml_metric_value(
            ml_metric_with(ml_metrics_counter(world->metrics, "controller_runtime_reconcile_total",
                                              "", ml_metric_labels("controller", "result")),
                           ml_metric_labels("one", results[i])));
    return sum;
}

/* Its script wants to see changes of labels alone. */
static void test_retry_of_an_object_ends_its_wait(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = ml_asprintf(
        "local m = require 'moonloop'\n"
        "return m.controller { name = 'one', when = { 'labels' },\n"
        "  reconciles = m.kind('test.dev/v1', 'Thing'),\n"
        "  reconcile = function(thing) return { requeue_after = 3600 } end }\n");
    static const struct {
        const char *metadata;
        int runs;
    } rows[] = {{RETRY("1"), 1}, {RETRY("1"), 0}, {RETRY("2"), 1}, {"", 0}, {RETRY("2"), 1}};
    tell(world, one, NULL);
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        double before = count_runs(world);
        ML_AUTO_FREE char *want = ml_asprintf("W%zu", i); /* it does not count */
        settle(world, NULL, 11 + (int)i, want, "{}", rows[i].metadata);
        if (count_runs(world) - before != rows[i].runs)
            fail_msg("row %zu", i);
    }
}

/* The script reads no annotation, and its backoff has grown. */
static void test_retry_of_an_object_ends_its_backoff_and_is_one_run(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "error(thing.spec.want)");
    tell(world, one, NULL);
    for (int i = 0; i < 24; i++) {
        advance(world, 5 * ML_NS_PER_S);
        accept_all(world);
    }
    double before = count_runs(world);
    advance(world, ML_NS_PER_S);
    assert_int_equal(count_runs(world) - before, 0);
    for (int i = 1; i <= 2; i++) {
        settle(world, NULL, 10 + i, "X", "{}", i == 1 ? RETRY("1") : RETRY("2"));
        assert_int_equal(count_runs(world) - before, i);
        accept_all(world);
        advance(world, ML_NS_PER_S);
        assert_int_equal(count_runs(world) - before, i);
    }
}

static void test_retry_of_a_source_ends_all_waits(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "error 'x'");
    ML_AUTO_FREE char *two = script("two", "return");
    static const char *const values[] = {"1", "1", "2", NULL, "2", "two: 1", "one: 1", "x: 1"};
    static const int runs[] = {1, 0, 1, 0, 1, 0, 1, 1};
    tell(world, one, two);
    for (int i = 0; i < 12; i++) /* the backoff grows */
        advance(world, 5 * ML_NS_PER_S);
    accept_all(world);
    for (size_t i = 0; i < ML_COUNT(values); i++) {
        double before = count_runs(world);
        free(world->source.retry);
        world->source.retry = ml_strdup(values[i]);
        tell(world, one, two);
        assert_int_equal(count_runs(world) - before, runs[i]);
        accept_all(world);
    }
}

/* The annotation may be old when the process starts. */
static void test_retry_that_was_there_before_is_none(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *one = script("one", "return { requeue_after = 3600 }");
    world->source.retry = ml_strdup("1");
    tell(world, one, NULL);
    double before = count_runs(world);
    tell(world, one, NULL);
    assert_int_equal(count_runs(world), before);
    assert_int_equal(unit_count(world->log.fd, "tries all objects again"), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_paused_object_says_so_and_is_left_alone),
        TEST(test_pause_counts_whatever_the_script_reads),
        TEST(test_paused_object_is_not_called_at_its_time),
        TEST(test_paused_object_keeps_its_finalizer),
        TEST(test_paused_object_is_not_released),
        TEST(test_pause_has_one_word),
        TEST(test_paused_controller_reconciles_nothing_until_it_goes_on),
        TEST(test_pause_of_a_controller_comes_before_a_version_of_the_same_edit),
        TEST(test_pause_of_one_controller_is_not_anothers),
        TEST(test_pause_needs_no_files),
        TEST(test_retry_of_an_object_ends_its_wait),
        TEST(test_retry_of_an_object_ends_its_backoff_and_is_one_run),
        TEST(test_retry_of_a_source_ends_all_waits),
        TEST(test_retry_that_was_there_before_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
