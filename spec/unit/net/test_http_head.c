#include "unit.h"

#include "net/http_client.h"

/* Feeds lines until the head is complete; says which one completed it, or -1. */
static int feed(struct ml_http_head_parser *parser, const char *const *lines)
{
    for (int i = 0; lines[i]; i++)
        if (ml_http_head_line(parser, ml_str_of(lines[i])))
            return i;
    return -1;
}

static void test_http_head_ends_at_the_blank_line(void **state)
{
    (void)state;
    struct ml_http_head_parser parser;
    ml_http_head_init(&parser);
    static const char *const lines[] = {"HTTP/1.1 201 Created\r\n",
                                        "content-type:  application/json \r\n", "\r\n", NULL};
    assert_int_equal(feed(&parser, lines), 2);
    assert_int_equal(parser.head.status, 201);
    assert_str_eq(parser.head.content_type, "application/json");
    assert_int_equal(parser.head.retry_after_ms, -1);
    assert_int_equal(parser.head.warning.len, 0);
    ml_http_head_fini(&parser);
}

static void test_http_head_skips_interim_answers_and_trailers(void **state)
{
    (void)state;
    struct ml_http_head_parser parser;
    ml_http_head_init(&parser);
    static const char *const lines[] = {
        "HTTP/2 103\r\n", "retry-after: 7\r\n", "\r\n", "HTTP/2 200 \r\n", "\r\n", NULL};
    static const char *const trailers[] = {"retry-after: 9\r\n", "\r\n", NULL};
    assert_int_equal(feed(&parser, lines), 4);
    assert_int_equal(feed(&parser, trailers), -1);
    assert_int_equal(parser.head.status, 200);
    assert_int_equal(parser.head.retry_after_ms, -1);
    ml_http_head_fini(&parser);
}

static void test_http_head_reads_the_servers_date(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t want_s;
    } cases[] = {
        {"Date: Thu, 26 Nov 2026 13:00:00 GMT", 1795698000},
        {"date: Thursday, 26-Nov-26 13:00:00 GMT", 1795698000},
        {"DATE:Thu Nov 26 13:00:00 2026", 1795698000},
        {"Date: soon", 0},
        {"Date:", 0},
        {"X-Date: Thu, 26 Nov 2026 13:00:00 GMT", 0},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_http_head_parser parser;
        ml_http_head_init(&parser);
        const char *const lines[] = {"HTTP/2 200", cases[i].line, "", NULL};
        assert_int_equal(feed(&parser, lines), 2);
        assert_int_equal(parser.head.date_s, cases[i].want_s);
        ml_http_head_fini(&parser);
    }
}

static void test_http_head_reads_retry_after_as_client_go(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t want_ms;
    } cases[] = {
        {"Retry-After: 1", 1000},
        {"RETRY-AFTER:0", 0},
        {"Retry-After: 120 ", 120000},
        {"Retry-After: 1.5", -1},
        {"Retry-After: -1", -1},
        {"Retry-After:", -1},
        {"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", -1},
        {"Retry-After: 18446744073709551615", INT64_MAX / 1000 * 1000},
        {"X-Retry-After: 5", -1},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_http_head_parser parser;
        ml_http_head_init(&parser);
        const char *const lines[] = {"HTTP/1.1 429 Too Many Requests", cases[i].line, "", NULL};
        assert_int_equal(feed(&parser, lines), 2);
        assert_int_equal(parser.head.retry_after_ms, cases[i].want_ms);
        ml_http_head_fini(&parser);
    }
}

static void test_http_head_reads_the_first_warning_299(void **state)
{
    (void)state;
    static const struct {
        const char *lines[3];
        const char *want;
    } cases[] = {
        {{"Warning: 299 - \"v1beta1 is deprecated\""}, "v1beta1 is deprecated"},
        {{"Warning: 299 - \"say \\\"no\\\"\" \"Wed, 21 Oct 2015 07:28:00 GMT\""}, "say \"no\""},
        {{"Warning: 199 - \"other\"", "Warning: 299 a \"mine\""}, "mine"},
        {{"Warning: 299 - \"one\"", "Warning: 299 - \"two\""}, "one"},
        {{"Warning: 299 - \"cut off"}, "cut off"},
        {{"Warning: 299 - \"cut off\\"}, "cut off\\"},
        {{"Warning: 299 - bare"}, ""},
        {{"Warning: 299"}, ""},
        {{"Warning:"}, ""},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_http_head_parser parser;
        ml_http_head_init(&parser);
        assert_false(ml_http_head_line(&parser, ML_STR("HTTP/1.1 200 OK")));
        feed(&parser, cases[i].lines);
        assert_true(ml_http_head_line(&parser, ML_STR("")));
        assert_str_eq(parser.head.warning, cases[i].want);
        ml_http_head_fini(&parser);
    }
}

static void test_http_head_that_is_no_answer_is_bad(void **state)
{
    (void)state;
    static const struct {
        const char *lines[5];
        const char *bad;
    } cases[] = {
        {{"HTTP/1.1", ""}, "no HTTP status"},
        {{"HTTP/1.1 abc", ""}, "no HTTP status"},
        {{"HTTP/1.1 99999 No", ""}, "no HTTP status"},
        {{"HTTP/1.1 -200 No", ""}, "no HTTP status"},
        {{"HTTP/1.1 101 Switching Protocols", "Upgrade: x", ""}, "status 101"},
        {{"HTTP/1.1 200 OK", "Content-Length: 1", "content-LENGTH: 2", ""}, "two different"},
        {{"HTTP/1.1 200 OK", "Content-Length: 1, 2", ""}, "two different"},
        {{"HTTP/1.1 200 OK", "Content-Length: 1,", ""}, "not a number"},
        {{"HTTP/1.1 200 OK", "Content-Length:", ""}, "not a number"},
        {{"HTTP/1.1 200 OK", "Content-Length: 1 ,1", "Content-Length: 1", ""}, NULL},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_http_head_parser parser;
        ml_http_head_init(&parser);
        assert_int_not_equal(feed(&parser, cases[i].lines), -1);
        assert_true(cases[i].bad ? strstr(parser.bad, cases[i].bad) != NULL : !parser.bad);
        ml_http_head_fini(&parser);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_head_ends_at_the_blank_line),
        cmocka_unit_test(test_http_head_skips_interim_answers_and_trailers),
        cmocka_unit_test(test_http_head_reads_the_servers_date),
        cmocka_unit_test(test_http_head_reads_retry_after_as_client_go),
        cmocka_unit_test(test_http_head_reads_the_first_warning_299),
        cmocka_unit_test(test_http_head_that_is_no_answer_is_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
