/* What base tells the outside: log lines and metrics. */
#include "unit.h"

#include "base/log.h"

#include "base/metrics.h"
#include <fcntl.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const char *logged(enum ml_log_format format, char *into, size_t size)
{
    int ends[2];
    struct ml_clock_fake clock;
    struct ml_log log;
    assert_int_equal(pipe(ends), 0);
    ml_clock_fake_init(&clock, INT64_C(1700000000123456789));
    ml_log_init(&log, &clock.clock, ends[1], format, ML_LOG_INFO);
    ml_debug(&log, "test", "not shown");
    ml_info(&log, "test", "pod created", ML_S("name", "a \"b\""), ML_I("count", 3),
            ML_F("seconds", 0.25), ML_RAW("labels", ML_STR("{\"a\":1}")));
    ssize_t got = read(ends[0], into, size - 1);
    into[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    close(ends[1]);
    return into;
}

static void test_log_json_is_one_object_a_line(void **state)
{
    (void)state;
    char line[512];
    assert_string_equal(logged(ML_LOG_JSON, line, sizeof line),
                        "{\"level\":\"info\",\"ts\":\"2023-11-14T22:13:20.123Z\",\"logger\":"
                        "\"test\",\"msg\":\"pod created\",\"name\":\"a \\\"b\\\"\",\"count\":3,"
                        "\"seconds\":0.25,\"labels\":{\"a\":1}}\n");
}

static void test_log_text_is_for_people(void **state)
{
    (void)state;
    char line[512];
    assert_string_equal(logged(ML_LOG_TEXT, line, sizeof line),
                        "2023-11-14T22:13:20.123Z info  test: pod created name=\"a \\\"b\\\"\" "
                        "count=3 seconds=0.25 labels={\"a\":1}\n");
}

static void test_log_drops_what_the_descriptor_does_not_take(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    struct ml_log log;
    ml_clock_fake_init(&clock, 0);
    int full = open("/dev/full", O_WRONLY);
    ml_log_init(&log, &clock.clock, full, ML_LOG_JSON, ML_LOG_INFO);
    ml_info(&log, "test", "lost");
    assert_int_equal(log.dropped, 1);
    close(full);
}

/* A pipe that nobody reads: no line waits for it, none is torn in the reader's eyes, and what was
 * lost is said. */
static void test_log_never_waits_for_its_reader(void **state)
{
    (void)state;
    struct ml_clock_fake clock;
    struct ml_log log;
    int ends[2];
    char text[8192], got[300000] = "";
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ml_clock_fake_init(&clock, INT64_C(1700000000123) * ML_NS_PER_MS);
    assert_int_equal(pipe(ends), 0);
    ml_log_init(&log, &clock.clock, ends[1], ML_LOG_TEXT, ML_LOG_INFO);
    for (int i = 0; i < 100; i++)
        ml_info(&log, "test", "long", ML_S("text", text)); /* would block after 64 KiB */
    assert_in_range(log.dropped, 85, 95);
    ssize_t len = read(ends[0], got, sizeof got / 2);
    ml_info(&log, "test", "short");
    len += read(ends[0], got + len, sizeof got - 1 - (size_t)len);
    got[len] = '\0';
    ML_AUTO_FREE char *want = ml_asprintf("\n2023-11-14T22:13:20.123Z warn  log: lines were lost: "
                                          "they could not be written lines=%d\n"
                                          "2023-11-14T22:13:20.123Z info  test: short\n",
                                          (int)log.dropped);
    assert_non_null(strstr(got, want));
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* others may share it */
    close(ends[0]);
    close(ends[1]);
}

static void test_metrics_are_written_in_prometheus_text(void **state)
{
    (void)state;
    static const double bounds[] = {0.1, 1};
    struct ml_metrics *metrics = ml_metrics_new();
    struct ml_buf out = ML_BUF_INIT;
    struct ml_metric_family *requests = ml_metrics_counter(metrics, "requests_total", "Requests.",
                                                           ml_metric_labels("code"));
    ml_metric_add(ml_metric_with(requests, ml_metric_labels("2\"0\n")), 2);
    struct ml_metric *time = ml_metric_only(
        ml_metrics_histogram(metrics, "time_seconds", "Time.", NULL, bounds, ML_COUNT(bounds)));
    ml_metric_observe(time, 0.1);
    ml_metric_observe(time, 0.5);
    ml_metric_observe(time, 9);
    ml_metrics_write(metrics, &out);
    assert_string_equal(ml_buf_cstr(&out), "# HELP requests_total Requests.\n"
                                           "# TYPE requests_total counter\n"
                                           "requests_total{code=\"2\\\"0\\n\"} 2\n"
                                           "# HELP time_seconds Time.\n"
                                           "# TYPE time_seconds histogram\n"
                                           "time_seconds_bucket{le=\"0.1\"} 1\n"
                                           "time_seconds_bucket{le=\"1\"} 2\n"
                                           "time_seconds_bucket{le=\"+Inf\"} 3\n"
                                           "time_seconds_sum 9.5999999999999996\n"
                                           "time_seconds_count 3\n");
    ml_buf_fini(&out);
    ml_metrics_free(metrics);
}

static void test_metrics_beyond_the_limit_share_one_series(void **state)
{
    (void)state;
    struct ml_metrics *metrics = ml_metrics_new();
    struct ml_metric_family *family = ml_metrics_counter(metrics, "many_total", "Many.",
                                                         ml_metric_labels("n"));
    char value[16];
    for (int i = 0; i < ML_METRICS_SERIES_MAX + 100; i++) {
        snprintf(value, sizeof value, "%d", i);
        ml_metric_add(ml_metric_with(family, ml_metric_labels(value)), 1);
    }
    assert_true(ml_metric_value(ml_metric_with(family, ml_metric_labels("other"))) == 100);
    ml_metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log_json_is_one_object_a_line),
        cmocka_unit_test(test_log_text_is_for_people),
        cmocka_unit_test(test_log_drops_what_the_descriptor_does_not_take),
        cmocka_unit_test(test_log_never_waits_for_its_reader),
        cmocka_unit_test(test_metrics_are_written_in_prometheus_text),
        cmocka_unit_test(test_metrics_beyond_the_limit_share_one_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
