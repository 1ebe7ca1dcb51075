/* Slices, buffers, escaping, errors: the text side of base. */
#include "unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/escape.h"

static void test_str_numbers_refuse_what_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-1", true, -1},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {"1 ", false, 0},
        {"0x10", false, 0},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        int64_t value = 77;
        assert_int_equal(ml_str_to_i64(ml_str_of(cases[i].text), &value), cases[i].good);
        assert_true(value == (cases[i].good ? cases[i].value : 77));
    }
}

static void test_str_cut_walks_a_list(void **state)
{
    (void)state;
    struct ml_str rest = ML_STR("a,,b");
    assert_str_eq(ml_str_cut(&rest, ','), "a");
    assert_str_eq(ml_str_cut(&rest, ','), "");
    assert_str_eq(ml_str_cut(&rest, ','), "b");
    assert_null(rest.ptr);
}

static void test_str_utf8_follows_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool good;
    } cases[] = {
        {"plain ascii, longer than a block", true},
        {"\xC2\x80", true},
        {"\xED\x9F\xBF", true},
        {"\xEF\xBF\xBF", true},
        {"\xF4\x8F\xBF\xBF", true},
        {"\xC0\x80", false},         /* overlong */
        {"\xE0\x9F\xBF", false},     /* overlong */
        {"\xED\xA0\x80", false},     /* a surrogate */
        {"\xF4\x90\x80\x80", false}, /* above U+10FFFF */
        {"\x80", false},
        {"\xC2", false},
        {"12345678\xE2\x82", false}, /* cut at the end of a block */
        {"\xF8\x88\x80\x80\x80", false},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        assert_int_equal(ml_str_is_utf8(ml_str_of(cases[i].bytes)), cases[i].good);
}

static void test_buf_over_its_maximum_fails_and_stays_failed(void **state)
{
    (void)state;
    struct ml_buf buf;
    ml_buf_init(&buf, 4);
    assert_true(ml_buf_puts(&buf, "abc"));
    assert_false(ml_buf_puts(&buf, "de"));
    assert_false(ml_buf_putc(&buf, 'd'));
    assert_string_equal(ml_buf_cstr(&buf), "abc");
    ml_buf_clear(&buf);
    assert_true(ml_buf_puts(&buf, "abcd"));
    ml_buf_fini(&buf);
}

static void test_buf_take_hands_the_text_over(void **state)
{
    (void)state;
    struct ml_buf buf = ML_BUF_INIT;
    ml_buf_printf(&buf, "%s-%d", "line", 7);
    assert_string_equal(ml_buf_cstr(&buf), "line-7");
    char *taken = ml_buf_take(&buf);
    assert_string_equal(taken, "line-7");
    assert_int_equal(buf.len, 0);
    free(taken);
    ml_buf_fini(&buf);
}

static void test_escape_is_safe_for_server_side_apply(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        const char *json;
    } cases[] = {
        {"apps/v1", "\"apps/v1\""},
        {"\"\\\n\t\r", "\"\\\"\\\\\\n\\t\\r\""},
        {"\x01\x7F", "\"\\u0001\\u007f\""},
        {"\xC2\x85", "\"\\u0085\""},
        {"\xC2\xA0", "\"\xC2\xA0\""},
        {"\xE2\x80\xA8\xE2\x80\xA9", "\"\\u2028\\u2029\""},
        {"\xEF\xBB\xBF", "\"\\ufeff\""},
        {"\xEF\xBF\xBE\xEF\xBF\xBF", "\"\\ufffe\\uffff\""},
        {"\xF0\x9F\x98\x80", "\"\xF0\x9F\x98\x80\""}, /* never a surrogate pair */
        {"a\xFFz", "\"a\xEF\xBF\xBDz\""},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf buf = ML_BUF_INIT;
        assert_true(ml_escape_json(&buf, ml_str_of(cases[i].bytes)));
        assert_string_equal(ml_buf_cstr(&buf), cases[i].json);
        ml_buf_fini(&buf);
    }
}

static void test_escape_text_neither_ends_a_line_nor_steers_a_terminal(void **state)
{
    (void)state;
    static const struct {
        struct ml_str text;
        const char *want;
    } cases[] = {
        {ML_STR("plain \\ \"text\" \xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80"),
         "plain \\ \"text\" \xC3\xA9 \xE4\xB8\xAD \xF0\x9F\x98\x80"},
        {ML_STR("x\n2026-01-01T00:00:00Z error host: forged"),
         "x\\n2026-01-01T00:00:00Z error host: forged"},
        {ML_STR("a\r\n\tb"), "a\\r\\n\\tb"},
        {ML_STR("\x1b[2J\x1b]0;title\x07"), "\\x1b[2J\\x1b]0;title\\x07"},
        {ML_STR("a\0b\x01\x7f\b\f\v"), "a\\x00b\\x01\\x7f\\x08\\x0c\\x0b"},
        {ML_STR("\x9b[2J\x85 \xff\xfe"), "\\x9b[2J\\x85 \\xff\\xfe"}, /* C1 as raw bytes */
        {ML_STR("\xC2\x80\xC2\x9B\xC2\x9F\xC2\xA0"), "\\u0080\\u009b\\u009f\xC2\xA0"},
        {ML_STR("\xE2\x80\xA8\xE2\x80\xA9"), "\\u2028\\u2029"},
        {ML_STR("\xE2\x80\xAA\xE2\x80\xAE\xE2\x81\xA6\xE2\x81\xA9"),
         "\\u202a\\u202e\\u2066\\u2069"},
        {ML_STR("\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA"),
         "\xE2\x80\xAF\xE2\x81\xA5\xE2\x81\xAA"},                      /* their neighbours */
        {ML_STR("\xE2\x80"), "\\xe2\\x80"},                            /* cut */
        {ML_STR("\xC0\x8A\xED\xA0\x80"), "\\xc0\\x8a\\xed\\xa0\\x80"}, /* overlong, surrogate */
        {ML_STR(""), ""},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf buf = ML_BUF_INIT;
        assert_true(ml_escape_text(&buf, cases[i].text));
        assert_string_equal(ml_buf_cstr(&buf), cases[i].want);
        ml_buf_fini(&buf);
    }
    struct ml_buf full;
    ml_buf_init(&full, 4);
    assert_false(ml_escape_text(&full, ML_STR("abc\n\n")));
    ml_buf_fini(&full);
}

static void test_str_head_ends_with_a_whole_character(void **state)
{
    (void)state;
    assert_str_eq(ml_str_head(ML_STR("abc"), 3), "abc");
    assert_str_eq(ml_str_head(ML_STR("abc"), 2), "ab");
    assert_str_eq(ml_str_head(ML_STR("a\xC3\xA9z"), 2), "a");
    assert_str_eq(ml_str_head(ML_STR("a\xC3\xA9z"), 3), "a\xC3\xA9");
    assert_str_eq(ml_str_head(ML_STR("\x80\x80\x80"), 2), "");
}

static void test_err_wrap_puts_context_before(void **state)
{
    (void)state;
    struct ml_err err;
    assert_int_equal(ml_err_set(&err, ML_ECONFLICT, "somebody was %s", "faster"), ML_ECONFLICT);
    err.http = 409;
    assert_int_equal(ml_err_wrap(&err, "update %s", "x"), ML_ECONFLICT);
    assert_string_equal(err.message, "update x: somebody was faster");
    assert_int_equal(err.http, 409);
    assert_string_equal(ml_err_name(err.kind), "Conflict");
    assert_true(ml_err_retriable(ML_ECONFLICT));
    assert_false(ml_err_retriable(ML_EINVALID));
}

/* Two bytes each, at an even and at an odd place. */
static void test_err_is_cut_at_the_end_of_a_character(void **state)
{
    (void)state;
    struct ml_err err;
    char text[2 * ML_ERR_MESSAGE_MAX + 1];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = i % 2 ? '\xa4' : '\xc3';
    text[sizeof text - 1] = '\0';
    for (const char *before = "ab"; *before; before++) {
        ml_err_set(&err, ML_EINVALID, "%s%s", before, text);
        assert_true(strlen(err.message) >= ML_ERR_MESSAGE_MAX - 4);
        assert_true(ml_str_is_utf8(ml_str_of(err.message)));
        ml_err_wrap(&err, "x");
        assert_true(ml_str_is_utf8(ml_str_of(err.message)));
        ml_err_wrap(&err, "%s", text);
        assert_true(ml_str_is_utf8(ml_str_of(err.message)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_str_numbers_refuse_what_does_not_fit),
        cmocka_unit_test(test_str_cut_walks_a_list),
        cmocka_unit_test(test_str_utf8_follows_the_table),
        cmocka_unit_test(test_buf_over_its_maximum_fails_and_stays_failed),
        cmocka_unit_test(test_buf_take_hands_the_text_over),
        cmocka_unit_test(test_escape_is_safe_for_server_side_apply),
        cmocka_unit_test(test_escape_text_neither_ends_a_line_nor_steers_a_terminal),
        cmocka_unit_test(test_str_head_ends_with_a_whole_character),
        cmocka_unit_test(test_err_wrap_puts_context_before),
        cmocka_unit_test(test_err_is_cut_at_the_end_of_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
