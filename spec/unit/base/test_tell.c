/* The output of base: log lines and metrics. */
#include "unit.h"

#include "base/log.h"

#include "base/escape.h"
#include "base/metrics.h"

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

static void test_log_shows_a_traceback_in_lines_of_its_own_in_text_only(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "{\"level\":\"error\",\"ts\":\"2023-11-14T22:13:20.123Z\",\"logger\":\"test\",\"msg\":"
        "\"failed\","
        "\"traceback\":\"at.lua:3: in a\\n2023 \\u001b\\nend\",\"n\":1}\n",
        "2023-11-14T22:13:20.123Z error test: failed n=1\n  at.lua:3: in a\n  2023 \\x1b\n  end\n",
    };
    for (int format = ML_LOG_JSON; format <= ML_LOG_TEXT; format++) {
        char text[512];
        int ends[2];
        struct ml_clock_fake clock;
        struct ml_log log;
        assert_int_equal(pipe(ends), 0);
        ml_clock_fake_init(&clock, INT64_C(1700000000123456789));
        ml_log_init(&log, &clock.clock, ends[1], format, ML_LOG_INFO);
        ml_error(&log, "test", "failed", ML_S("", "left out"),
                 ML_LINES("traceback", "at.lua:3: in a\n2023 \x1b\nend"), ML_LINES("", "left out"),
                 ML_I("n", 1));
        ssize_t got = read(ends[0], text, sizeof text - 1);
        text[got > 0 ? got : 0] = '\0';
        close(ends[0]);
        close(ends[1]);
        assert_string_equal(text, wanted[format]);
    }
}

/* Returns a log line that has the text in each place that foreign text can have. */
static char *hostile_line(enum ml_log_format format, const char *text)
{
    char *line = ml_zalloc(64 * 1024);
    int ends[2];
    struct ml_clock_fake clock;
    struct ml_log log;
    assert_int_equal(pipe(ends), 0);
    ml_clock_fake_init(&clock, INT64_C(1700000000123456789));
    ml_log_init(&log, &clock.clock, ends[1], format, ML_LOG_INFO);
    ML_AUTO_FREE char *raw = ml_asprintf("{\n\"a\":\t1,\r\n\"b\":[]}");
    const struct ml_field fields[] = {
        {.key = text, .type = ML_FIELD_STR, .str = ml_str_of(text)},
        ML_S("value", text),
        ML_RAW("raw", ml_str_of(raw)),
        {.key = NULL},
    };
    ml_log_write(&log, ML_LOG_INFO, text, text, fields);
    ssize_t got = read(ends[0], line, 64 * 1024 - 1);
    assert_in_range(got, 1, 64 * 1024 - 1);
    close(ends[0]);
    close(ends[1]);
    return line;
}

static void test_log_line_stays_one_whatever_is_in_it(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "x\n2026-01-01T00:00:00Z error host: forged",
        "x\r\n{\"level\":\"error\",\"msg\":\"forged\"}",
        "\x1b[2J\x1b[1;1H",
        "\x9b\x32J \x85 \x80",
        "\xC2\x9B\xC2\x85",
        "\xE2\x80\xA8\xE2\x80\xAE\xE2\x81\xA6",
        "\x7f\b\b\b\f\v\a",
    };
    for (size_t i = 0; i < ML_COUNT(texts); i++) {
        for (int format = ML_LOG_JSON; format <= ML_LOG_TEXT; format++) {
            ML_AUTO_FREE char *line = hostile_line(format, texts[i]);
            size_t len = strlen(line);
            assert_int_equal(line[len - 1], '\n');
            assert_true(ml_str_is_utf8((struct ml_str){line, len}));
            for (size_t at = 0; at + 1 < len; at++) {
                assert_true((unsigned char)line[at] >= 0x20 && line[at] != 0x7f);
                assert_false((unsigned char)line[at] == 0xC2 && (unsigned char)line[at + 1] < 0xA0);
            }
            assert_null(strstr(line, "\xE2\x80\xA8"));
            assert_null(strstr(line, "\xE2\x80\xAE"));
            assert_null(strstr(line, "\xE2\x81\xA6"));
            assert_non_null(strstr(line, "\"a\": 1,")); /* the raw field, without its line ends */
        }
    }
}

static void test_log_line_has_a_bounded_length(void **state)
{
    (void)state;
    ML_AUTO_FREE char *text = ml_zalloc(20 * 1024 + 1);
    memset(text, 'x', 20 * 1024);
    ML_AUTO_FREE char *json = hostile_line(ML_LOG_JSON, text);
    assert_non_null(strstr(json, "\"msg\":\"log line too long\",\"about\":\"xxx"));
    assert_in_range(strlen(json), 1024, 2048);
    ML_AUTO_FREE char *plain = hostile_line(ML_LOG_TEXT, text);
    assert_non_null(strstr(plain, ": log line too long about=\"xxx"));
    assert_in_range(strlen(plain), 1024, 2048);
    text[5000] = '\0'; /* fits, but for the message and the names */
    ML_AUTO_FREE char *shorter = hostile_line(ML_LOG_TEXT, text);
    assert_in_range(strlen(shorter), 2 * 5000 + 1024, 2 * 5000 + 1024 + 512);
}

static void test_print_line_escapes_all_of_it(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    ml_print_line(to, "%s:%d: %s", "x\n.lua", 12, "\x1b[31mforged\nerror");
    fclose(to);
    assert_string_equal(text, "x\\n.lua:12: \\x1b[31mforged\\nerror\n");
    free(text);
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

/* A pipe that nobody reads: no line waits for it, a reader sees whole lines, and one says how many
 * were lost. */
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
        cmocka_unit_test(test_log_shows_a_traceback_in_lines_of_its_own_in_text_only),
        cmocka_unit_test(test_log_line_stays_one_whatever_is_in_it),
        cmocka_unit_test(test_log_line_has_a_bounded_length),
        cmocka_unit_test(test_print_line_escapes_all_of_it),
        cmocka_unit_test(test_log_drops_what_the_descriptor_does_not_take),
        cmocka_unit_test(test_log_never_waits_for_its_reader),
        cmocka_unit_test(test_metrics_are_written_in_prometheus_text),
        cmocka_unit_test(test_metrics_beyond_the_limit_share_one_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
