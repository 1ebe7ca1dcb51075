/* The series of scripts' metrics: what is exported, how many there are, and when they go. */
#include "unit.h"

#include "state/custom_metrics.h"

#include <stdio.h>

struct stage {
    struct ml_services services;
    struct ml_keys keys;
    struct ml_custom_metrics *a;
};

static struct ml_custom_metric metric_of(enum ml_custom_type type, const char *name)
{
    struct ml_custom_metric metric = {
        .name = (char *)name, .help = (char *)"what it is", .type = type};
    metric.labels[metric.label_count++] = (char *)"l";
    if (type == ML_CUSTOM_HISTOGRAM) {
        metric.buckets[metric.bucket_count++] = 1;
        metric.buckets[metric.bucket_count++] = 2.5;
    }
    return metric;
}

static void stage_open(struct stage *stage)
{
    *stage = (struct stage){.a = NULL};
    stage->services.metrics = ml_metrics_new();
    stage->a = ml_custom_metrics_new(&stage->services, &stage->keys, "a");
}

static void stage_close(struct stage *stage)
{
    ml_custom_metrics_free(stage->a);
    ml_keys_fini(&stage->keys);
    assert_int_equal(stage->services.script_memory.used, 0);
    ml_metrics_free(stage->services.metrics);
}

/* A run of the object records one value. */
static void record(struct ml_custom_metrics *self, const char *key,
                   const struct ml_custom_metric *metric, const char *label, double value)
{
    struct ml_custom_notes *notes = ml_custom_notes_new();
    struct ml_str values[] = {ml_str_of(label)}, name = ml_str_of(key);
    (void)ml_str_cut(&name, '/');
    ml_custom_notes_add(notes, metric, values, name, value);
    ml_custom_metrics_record(self, ml_str_of(key), notes);
    ml_custom_notes_free(notes);
}

static void expect_page(const struct stage *stage, const char *text, bool shown)
{
    struct ml_buf page = ML_BUF_INIT;
    ml_metrics_write(stage->services.metrics, &page);
    if ((strstr(ml_buf_cstr(&page), text) != NULL) != shown)
        fail_msg("%s: %s in\n%s", text, shown ? "not" : "wrongly", ml_buf_cstr(&page));
    ml_buf_fini(&page);
}

static void test_custom_metrics_are_exported(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric metrics[] = {metric_of(ML_CUSTOM_COUNTER, "c_total"),
                                               metric_of(ML_CUSTOM_GAUGE, "g"),
                                               metric_of(ML_CUSTOM_HISTOGRAM, "h")};
    ml_custom_metrics_declare(stage.a, metrics, 3);
    record(stage.a, "n/x", &metrics[0], "p", 2);
    record(stage.a, "n/x", &metrics[0], "p", 0.5);
    record(stage.a, "n/x", &metrics[1], "quote\" slash\\ line\n", -3);
    record(stage.a, "n/y", &metrics[2], "", 2);
    record(stage.a, "n/y", &metrics[2], "", 9);
    expect_page(&stage, "# HELP moonloop_custom_c_total what it is\n", true);
    expect_page(&stage, "# TYPE moonloop_custom_c_total counter\n", true);
    expect_page(&stage, "moonloop_custom_c_total{controller=\"a\",l=\"p\"} 2.5\n", true);
    expect_page(&stage,
                "moonloop_custom_g{controller=\"a\",l=\"quote\\\" slash\\\\ line\\n\"} -3\n", true);
    expect_page(&stage, "moonloop_custom_h_bucket{controller=\"a\",l=\"\",le=\"1\"} 0\n", true);
    expect_page(&stage, "moonloop_custom_h_bucket{controller=\"a\",l=\"\",le=\"2.5\"} 1\n", true);
    expect_page(&stage, "moonloop_custom_h_bucket{controller=\"a\",l=\"\",le=\"+Inf\"} 2\n", true);
    expect_page(&stage, "moonloop_custom_h_sum{controller=\"a\",l=\"\"} 11\n", true);
    expect_page(&stage, "moonloop_custom_h_count{controller=\"a\",l=\"\"} 2\n", true);
    stage_close(&stage);
}

static void test_custom_gauge_is_there_while_an_object_sets_it(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric gauge = metric_of(ML_CUSTOM_GAUGE, "g");
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    record(stage.a, "n/x", &gauge, "gold", 1);
    record(stage.a, "n/y", &gauge, "gold", 2);
    record(stage.a, "n/x", &gauge, "tin", 3); /* x sets gold no more; y still does */
    expect_page(&stage, "l=\"gold\"} 2\n", true);
    expect_page(&stage, "l=\"tin\"} 3\n", true);
    ml_custom_metrics_gone(stage.a, ML_STR("n/y"));
    expect_page(&stage, "gold", false);
    ml_custom_metrics_record(stage.a, ML_STR("n/x"), NULL); /* a run that sets nothing */
    expect_page(&stage, "tin", false);
    stage_close(&stage);
}

static void test_custom_counter_goes_with_the_object_it_names(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric counter = metric_of(ML_CUSTOM_COUNTER, "c");
    ml_custom_metrics_declare(stage.a, &counter, 1);
    record(stage.a, "n/x", &counter, "x", 1);
    record(stage.a, "m/x", &counter, "x", 1); /* another object of that name */
    record(stage.a, "n/x", &counter, "gold", 1);
    ml_custom_metrics_record(stage.a, ML_STR("n/x"), NULL);
    expect_page(&stage, "l=\"x\"} 2\n", true);
    ml_custom_metrics_gone(stage.a, ML_STR("n/x"));
    expect_page(&stage, "l=\"x\"} 2\n", true);
    ml_custom_metrics_gone(stage.a, ML_STR("m/x"));
    expect_page(&stage, "l=\"x\"", false);
    expect_page(&stage, "l=\"gold\"} 1\n", true);
    stage_close(&stage);
}

static void test_custom_series_of_one_object_leave_those_of_others(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric gauge = metric_of(ML_CUSTOM_GAUGE, "g");
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    record(stage.a, "n/x", &gauge, "x", 1);
    record(stage.a, "n/y", &gauge, "y", 1);
    ml_custom_metrics_gone(stage.a, ML_STR("n/x"));
    expect_page(&stage, "l=\"x\"", false);
    expect_page(&stage, "l=\"y\"", true);
    stage_close(&stage);
}

static struct ml_custom_metric sum_of(const char *name)
{
    struct ml_custom_metric gauge = metric_of(ML_CUSTOM_GAUGE, name);
    gauge.sums = true;
    return gauge;
}

static void test_custom_sum_adds_up_over_the_objects(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric sum = sum_of("g");
    ml_custom_metrics_declare(stage.a, &sum, 1);
    record(stage.a, "n/x", &sum, "down", 1);
    record(stage.a, "n/y", &sum, "down", 2);
    record(stage.a, "n/x", &sum, "down", 1); /* the same again */
    expect_page(&stage, "l=\"down\"} 3\n", true);
    record(stage.a, "n/y", &sum, "up", 5); /* its part moves */
    expect_page(&stage, "l=\"down\"} 1\n", true);
    expect_page(&stage, "l=\"up\"} 5\n", true);
    ml_custom_metrics_record(stage.a, ML_STR("n/x"), NULL); /* a run that sets nothing */
    expect_page(&stage, "l=\"down\"} 1\n", true);
    ml_custom_metrics_gone(stage.a, ML_STR("n/x"));
    expect_page(&stage, "down", false);
    expect_page(&stage, "l=\"up\"} 5\n", true);
    stage_close(&stage);
}

static void test_custom_sum_of_whole_numbers_is_exact(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct ml_custom_metric sum = sum_of("g");
    sum.label_count = 0;
    ml_custom_metrics_declare(stage.a, &sum, 1);
    expect_page(&stage, "moonloop_custom_g{controller=\"a\"} 0\n", true);
    record(stage.a, "n/x", &sum, "", 1);
    record(stage.a, "n/y", &sum, "", 1e17);
    record(stage.a, "n/z", &sum, "", 2);
    ml_custom_metrics_gone(stage.a, ML_STR("n/y"));
    record(stage.a, "n/z", &sum, "", 0);
    expect_page(&stage, "moonloop_custom_g{controller=\"a\"} 1\n", true);
    ml_custom_metrics_gone(stage.a, ML_STR("n/x"));
    ml_custom_metrics_gone(stage.a, ML_STR("n/z"));
    expect_page(&stage, "moonloop_custom_g{controller=\"a\"} 0\n", true);
    stage_close(&stage);
}

static void test_custom_sum_survives_a_version_that_declares_it_alike(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct ml_custom_metric gauge = sum_of("g");
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    record(stage.a, "n/x", &gauge, "p", 2);
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    record(stage.a, "n/y", &gauge, "p", 3);
    expect_page(&stage, "l=\"p\"} 5\n", true);
    gauge.sums = false;
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    expect_page(&stage, "l=\"p\"", false);
    record(stage.a, "n/y", &gauge, "p", 3);
    expect_page(&stage, "l=\"p\"} 3\n", true);
    stage_close(&stage);
}

static void test_custom_sum_leaves_out_what_it_could_not_take_back(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric sum = sum_of("g");
    ml_custom_metrics_declare(stage.a, &sum, 1);
    record(stage.a, "n/x", &sum, "p", 1);
    stage.services.script_memory.max = stage.services.script_memory.used;
    record(stage.a, "n/y", &sum, "p", 10); /* no memory for its link */
    expect_page(&stage, "l=\"p\"} 1\n", true);
    expect_page(&stage, "moonloop_custom_series_dropped_total{controller=\"a\"} 1\n", true);
    ml_custom_metrics_gone(stage.a, ML_STR("n/y"));
    ml_custom_metrics_gone(stage.a, ML_STR("n/x"));
    expect_page(&stage, "l=\"p\"", false);
    stage_close(&stage);
}

static void test_custom_sum_has_the_limit_of_series(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric sum = sum_of("g");
    ml_custom_metrics_declare(stage.a, &sum, 1);
    for (int i = 0; i < ML_CUSTOM_SERIES_MAX + 5; i++) {
        char key[16], label[16];
        snprintf(key, sizeof key, "n/x%d", i);
        snprintf(label, sizeof label, "x%d", i);
        record(stage.a, key, &sum, label, 1);
    }
    expect_page(&stage, "l=\"x999\"} 1\n", true);
    expect_page(&stage, "l=\"x1000\"", false);
    record(stage.a, "n/x1000", &sum, "x0", 1);
    expect_page(&stage, "l=\"x0\"} 2\n", true);
    expect_page(&stage, "moonloop_custom_series_dropped_total{controller=\"a\"} 5\n", true);
    stage_close(&stage);
}

static void test_custom_metric_of_the_same_declaration_keeps_its_series(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct ml_custom_metric metrics[] = {metric_of(ML_CUSTOM_COUNTER, "c"),
                                         metric_of(ML_CUSTOM_GAUGE, "g")};
    ml_custom_metrics_declare(stage.a, metrics, 2);
    record(stage.a, "n/x", &metrics[0], "p", 1);
    record(stage.a, "n/y", &metrics[1], "p", 7);
    ml_custom_metrics_declare(stage.a, metrics, 2);
    expect_page(&stage, "moonloop_custom_c{controller=\"a\",l=\"p\"} 1\n", true);
    expect_page(&stage, "moonloop_custom_g{controller=\"a\",l=\"p\"} 7\n", true);
    struct ml_custom_metric old = metrics[1];
    metrics[1].labels[0] = (char *)"other";
    ml_custom_metrics_declare(stage.a, metrics, 2);
    expect_page(&stage, "moonloop_custom_c{controller=\"a\",l=\"p\"} 1\n", true);
    expect_page(&stage, "moonloop_custom_g{", false);
    record(stage.a, "n/z", &old, "p", 8); /* of a run of the version before */
    expect_page(&stage, "moonloop_custom_g{", false);
    record(stage.a, "n/y", &metrics[1], "q", 9);
    expect_page(&stage, "moonloop_custom_g{controller=\"a\",other=\"q\"} 9\n", true);
    stage_close(&stage);
}

static void test_custom_metric_has_a_limit_of_series(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    const struct ml_custom_metric gauge = metric_of(ML_CUSTOM_GAUGE, "g");
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    for (int i = 0; i < ML_CUSTOM_SERIES_MAX + 5; i++) {
        char key[16], label[16];
        snprintf(key, sizeof key, "n/x%d", i);
        snprintf(label, sizeof label, "x%d", i);
        record(stage.a, key, &gauge, label, 1);
    }
    expect_page(&stage, "l=\"x999\"", true);
    expect_page(&stage, "l=\"x1000\"", false);
    expect_page(&stage, "moonloop_custom_series_dropped_total{controller=\"a\"} 5\n", true);
    ml_custom_metrics_gone(stage.a, ML_STR("n/x0"));
    record(stage.a, "n/x1004", &gauge, "x1004", 1);
    expect_page(&stage, "l=\"x1004\"", true);
    stage_close(&stage);
}

static void test_custom_metrics_of_two_controllers_share_a_heading(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    struct ml_keys keys = {0};
    struct ml_custom_metrics *b = ml_custom_metrics_new(&stage.services, &keys, "b");
    const struct ml_custom_metric gauge = metric_of(ML_CUSTOM_GAUGE, "g");
    const struct ml_custom_metric counter = metric_of(ML_CUSTOM_COUNTER, "g");
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    ml_custom_metrics_declare(b, &gauge, 1);
    record(stage.a, "n/x", &gauge, "p", 1);
    record(b, "n/x", &gauge, "p", 2);
    expect_page(&stage,
                "# TYPE moonloop_custom_g gauge\nmoonloop_custom_g{controller=\"a\",l=\"p\"} 1\n"
                "moonloop_custom_g{controller=\"b\",l=\"p\"} 2\n",
                true);
    ml_custom_metrics_declare(b, &counter, 1); /* another type under that name */
    record(b, "n/x", &counter, "p", 5);
    expect_page(&stage, "controller=\"b\",l", false);
    expect_page(&stage, "# TYPE moonloop_custom_g gauge", true);
    ml_custom_metrics_free(b);
    ml_keys_fini(&keys);
    stage_close(&stage);
}

static void test_custom_series_take_from_the_memory_of_scripts(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    stage.services.script_memory.max = 2000;
    const struct ml_custom_metric gauge = metric_of(ML_CUSTOM_GAUGE, "g");
    ml_custom_metrics_declare(stage.a, &gauge, 1);
    for (int i = 0; i < 50; i++) {
        char label[16];
        snprintf(label, sizeof label, "x%d", i);
        record(stage.a, "n/x", &gauge, label, 1);
        record(stage.a, label, &gauge, label, 1);
    }
    expect_page(&stage, "l=\"x0\"", true);
    expect_page(&stage, "l=\"x49\"", false);
    assert_true(stage.services.script_memory.used <= 2000);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_custom_metrics_are_exported),
        cmocka_unit_test(test_custom_gauge_is_there_while_an_object_sets_it),
        cmocka_unit_test(test_custom_counter_goes_with_the_object_it_names),
        cmocka_unit_test(test_custom_series_of_one_object_leave_those_of_others),
        cmocka_unit_test(test_custom_sum_adds_up_over_the_objects),
        cmocka_unit_test(test_custom_sum_of_whole_numbers_is_exact),
        cmocka_unit_test(test_custom_sum_survives_a_version_that_declares_it_alike),
        cmocka_unit_test(test_custom_sum_leaves_out_what_it_could_not_take_back),
        cmocka_unit_test(test_custom_sum_has_the_limit_of_series),
        cmocka_unit_test(test_custom_metric_of_the_same_declaration_keeps_its_series),
        cmocka_unit_test(test_custom_metric_has_a_limit_of_series),
        cmocka_unit_test(test_custom_metrics_of_two_controllers_share_a_heading),
        cmocka_unit_test(test_custom_series_take_from_the_memory_of_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
