#include "unit.h"

#include "codec/json.h"

#include <float.h>
#include <math.h>

/* One letter a token; strings and numbers with their text. */
static void describe(struct ml_json_reader *reader, struct ml_buf *out)
{
    static const char *const names[] = {
        [ML_JSON_END] = "$",   [ML_JSON_ERROR] = "!",      [ML_JSON_OBJECT] = "{",
        [ML_JSON_ARRAY] = "[", [ML_JSON_OBJECT_END] = "}", [ML_JSON_ARRAY_END] = "]",
        [ML_JSON_KEY] = "k",   [ML_JSON_STRING] = "s",     [ML_JSON_INT] = "i",
        [ML_JSON_REAL] = "r",  [ML_JSON_NUMBER] = "n",     [ML_JSON_TRUE] = "t",
        [ML_JSON_FALSE] = "f", [ML_JSON_NULL] = "0",
    };
    enum ml_json_token token;
    do {
        token = ml_json_next(reader);
        ml_buf_puts(out, names[token]);
        if (token >= ML_JSON_KEY && token <= ML_JSON_NUMBER) {
            ml_buf_putc(out, '(');
            ml_buf_append_str(out, reader->text);
            ml_buf_putc(out, ')');
        }
    } while (token > ML_JSON_ERROR);
}

static char *tokens_of(struct ml_str json)
{
    struct ml_json_reader reader;
    struct ml_buf out = ML_BUF_INIT;
    ml_json_reader_init(&reader, json, 0);
    describe(&reader, &out);
    ml_json_reader_fini(&reader);
    return ml_buf_take(&out);
}

/* A copy without a byte behind it, so that the sanitizer sees every read too far. */
static char *exact_copy(struct ml_str s)
{
    char *copy = ml_alloc(s.len ? s.len : 1);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return copy;
}

static void test_reader_good_texts_give_their_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *json, *tokens;
    } cases[] = {
        {"{}", "{}$"},
        {" [ ] ", "[]$"},
        {"[[],{}]", "[[]{}]$"},
        {"\t\r\n true", "t$"},
        {"false", "f$"},
        {"null", "0$"},
        {"\"\"", "s()$"},
        {"{\"a\":1,\"b\":[2,3]}", "{k(a)i(1)k(b)[i(2)i(3)]}$"},
        {"{ \"a\" : { \"b\" : null } , \"c\" : \"d\" }", "{k(a){k(b)0}k(c)s(d)}$"},
        {"{\"\":\"\"}", "{k()s()}$"},
        {"[true,false,null]", "[tf0]$"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "s(\"\\/\b\f\n\r\t)$"},
        {"\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "s(A\u00e9\u20ac\U0001F600)$"},
        {"\"\\uD83D\\uDE00 x\"", "s(\U0001F600 x)$"},
        {"\"\u00e9\u20ac\U0001F600\x7f\"", "s(\u00e9\u20ac\U0001F600\x7f)$"},
        {"{\"\\u0061b\":0}", "{k(ab)i(0)}$"},
        {"\"a long string, much more than sixteen bytes, with an \\n escape in it\"",
         "s(a long string, much more than sixteen bytes, with an \n escape in it)$"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_str json = ml_str_of(cases[i].json);
        ML_AUTO_FREE char *copy = exact_copy(json);
        ML_AUTO_FREE char *tokens = tokens_of((struct ml_str){copy, json.len});
        assert_string_equal(tokens, cases[i].tokens);
    }
}

static const char *const broken[] = {
    "",
    " ",
    "{",
    "[",
    "}",
    "]",
    "{]",
    "[}",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1,,2]",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{,}",
    "{\"a\",\"b\"}",
    "{\"a\" 1}",
    "{\"a\"::1}",
    "{1:2}",
    "{a:1}",
    "{'a':1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1}}",
    "{} {}",
    "1 2",
    "1,",
    ",",
    ":",
    "nul",
    "nulL",
    "tru",
    "True",
    "fals",
    "NaN",
    "Infinity",
    "-Infinity",
    "undefined",
    "-",
    "+1",
    "01",
    "-01",
    "00",
    ".5",
    "5.",
    "5.e3",
    "1e",
    "1e+",
    "1E-",
    "0x10",
    "1_000",
    "--1",
    "-a",
    "\"",
    "\"abc",
    "\"abc\\",
    "\"abc\\\"",
    "\"\\x41\"",
    "\"\\a\"",
    "\"\\'\"",
    "\"\\u\"",
    "\"\\u12\"",
    "\"\\u123\"",
    "\"\\u123g\"",
    "\"\\u 123\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"\\ud800\\ud800\"",
    "\"\\ud800\\u0041\"",
    "\"\\ud800x\"",
    "\"\\ud83d\\ude0\"",
    "\"tab\tinside\"",
    "\"line\ninside\"",
    "\"\x01\"",
    "\"\x80\"",
    "\"\xC0\x80\"",
    "\"\xC1\xBF\"",
    "\"\xC3\"",
    "\"\xC3(\"",
    "\"\xE0\x80\x80\"",
    "\"\xE0\x9F\xBF\"",
    "\"\xE2\x82\"",
    "\"\xE2(\xA1\"",
    "\"\xE2\x82(\"",
    "\"\xED\xA0\x80\"",
    "\"\xF0\x80\x80\x80\"",
    "\"\xF0\x9F\x98\"",
    "\"\xF0\x28\x8C\xBC\"",
    "\"\xF0\x90\x28\xBC\"",
    "\"\xF0\x90\x8C\x28\"",
    "\"\xF4\x90\x80\x80\"",
    "\"\xF5\x80\x80\x80\"",
    "\"\xFE\"",
    "\"\xFF\"",
    "\"sixteen bytes ok \xFF\"",
    "\xEF\xBB\xBF{}",
    "// comment\n1",
    "/* comment */1",
    "[1]\f",
    "\v1",
};

static void test_reader_broken_texts_are_refused_in_every_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < ML_COUNT(broken); i++) {
        struct ml_str json = ml_str_of(broken[i]);
        ML_AUTO_FREE char *copy = exact_copy(json);
        json.ptr = copy;
        struct ml_err err = ML_ERR_INIT;
        if (ml_json_check(json, 0, &err) != ML_EINVALID)
            fail_msg("taken: %s", broken[i]);
        assert_true(strncmp(err.message, "at byte ", 8) == 0);
        ML_AUTO_FREE char *tokens = tokens_of(json);
        assert_int_equal(tokens[strlen(tokens) - 1], '!');
    }
}

static void test_reader_every_prefix_of_a_text_is_refused(void **state)
{
    (void)state;
    const char *json = "{\"a\":[1,-2.5e+10,true,null,\"x\\u00e9\\ud83d\\ude00\u20ac\"],\"b\":{}}";
    size_t len = strlen(json);
    struct ml_err err;
    for (size_t cut = 0; cut < len; cut++) {
        ML_AUTO_FREE char *copy = exact_copy((struct ml_str){json, cut});
        assert_int_equal(ml_json_check((struct ml_str){copy, cut}, 0, &err), ML_EINVALID);
    }
    assert_int_equal(ml_json_check(ml_str_of(json), 0, &err), 0);
}

static void test_reader_nul_bytes_are_content_not_ends(void **state)
{
    (void)state;
    struct ml_json_reader reader;
    ml_json_reader_init(&reader, ML_STR("\"a\\u0000b\""), 0);
    assert_int_equal(ml_json_next(&reader), ML_JSON_STRING);
    assert_int_equal(reader.text.len, 3);
    assert_memory_equal(reader.text.ptr, "a\0b", 3);
    ml_json_reader_fini(&reader);
    struct ml_err err;
    assert_int_equal(ml_json_check(ML_STR("\"a\0b\""), 0, &err), ML_EINVALID);
    assert_int_equal(ml_json_check(ML_STR("1\0"), 0, &err), ML_EINVALID);
}

static void test_reader_numbers_keep_their_value_and_text(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum ml_json_token token;
        int64_t integer;
        double real;
    } cases[] = {
        {"0", ML_JSON_INT, 0, 0},
        {"-0", ML_JSON_INT, 0, 0},
        {"9007199254740993", ML_JSON_INT, INT64_C(9007199254740993), 0},
        {"9223372036854775807", ML_JSON_INT, INT64_MAX, 0},
        {"-9223372036854775808", ML_JSON_INT, INT64_MIN, 0},
        {"9223372036854775808", ML_JSON_NUMBER, 0, 0},
        {"-9223372036854775809", ML_JSON_NUMBER, 0, 0},
        {"18446744073709551616", ML_JSON_NUMBER, 0, 0},
        {"100000000000000000000000000", ML_JSON_NUMBER, 0, 0},
        {"1.0", ML_JSON_REAL, 0, 1.0},
        {"-1.5", ML_JSON_REAL, 0, -1.5},
        {"0.1", ML_JSON_REAL, 0, 0.1},
        {"1e3", ML_JSON_REAL, 0, 1000},
        {"1E+3", ML_JSON_REAL, 0, 1000},
        {"25e-1", ML_JSON_REAL, 0, 2.5},
        {"1.7976931348623157e308", ML_JSON_REAL, 0, DBL_MAX},
        {"5e-324", ML_JSON_REAL, 0, 5e-324},
        {"1e-400", ML_JSON_REAL, 0, 0},
        {"1e400", ML_JSON_NUMBER, 0, 0},
        {"-1e999999999999999999999", ML_JSON_NUMBER, 0, 0},
        {"0.1000000000000000000000000000000000000000000000000000000000000000000000000000000001",
         ML_JSON_REAL, 0, 0.1},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_json_reader reader;
        ml_json_reader_init(&reader, ml_str_of(cases[i].json), 0);
        assert_int_equal(ml_json_next(&reader), cases[i].token);
        assert_str_eq(reader.text, cases[i].json);
        if (cases[i].token == ML_JSON_INT)
            assert_true(reader.integer == cases[i].integer);
        if (cases[i].token == ML_JSON_REAL)
            assert_true(reader.real == cases[i].real);
        assert_int_equal(ml_json_next(&reader), ML_JSON_END);
        ml_json_reader_fini(&reader);
    }
}

static void test_reader_minus_zero_keeps_its_sign(void **state)
{
    (void)state;
    struct ml_json_reader reader;
    ml_json_reader_init(&reader, ML_STR("-0.0"), 0);
    assert_int_equal(ml_json_next(&reader), ML_JSON_REAL);
    assert_true(signbit(reader.real));
    ml_json_reader_fini(&reader);
}

static void test_reader_plain_strings_are_slices_of_the_text(void **state)
{
    (void)state;
    const char *json = "[\"plain\",\"es\\ncaped\"]";
    struct ml_json_reader reader;
    ml_json_reader_init(&reader, ml_str_of(json), 0);
    ml_json_next(&reader);
    ml_json_next(&reader);
    assert_ptr_equal(reader.text.ptr, json + 2);
    ml_json_next(&reader);
    assert_str_eq(reader.text, "es\ncaped");
    ml_json_reader_fini(&reader);
}

/* `depth` arrays and objects in turn, closed. */
static struct ml_buf nested(size_t depth)
{
    struct ml_buf json = ML_BUF_INIT;
    for (size_t i = 0; i < depth; i++)
        ml_buf_puts(&json, i % 2 ? "{\"k\":" : "[");
    ml_buf_puts(&json, "1");
    for (size_t i = depth; i-- > 0;)
        ml_buf_puts(&json, i % 2 ? "}" : "]");
    return json;
}

static void test_reader_depth_is_limited_where_it_was_asked(void **state)
{
    (void)state;
    static const struct {
        size_t depth, depth_max;
        int result;
    } cases[] = {
        {128, 0, 0},       {129, 0, ML_EINVALID},       {1, 1, 0},        {2, 1, ML_EINVALID},
        {256, 256, 0},     {257, 256, ML_EINVALID},     {257, 257, 0},    {513, 513, 0},
        {10000, 10000, 0}, {10001, 10000, ML_EINVALID}, {5000, 10000, 0}, {100000, SIZE_MAX, 0},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        struct ml_buf json = nested(cases[i].depth);
        assert_int_equal(ml_json_check(ml_buf_str(&json), cases[i].depth_max, &err),
                         cases[i].result);
        struct ml_json_reader reader;
        ml_json_reader_init(&reader, ml_buf_str(&json), cases[i].depth_max);
        while (ml_json_next(&reader) > ML_JSON_ERROR)
            assert_true(reader.depth <= cases[i].depth);
        assert_int_equal(reader.token, cases[i].result ? ML_JSON_ERROR : ML_JSON_END);
        ml_json_reader_fini(&reader);
        ml_buf_fini(&json);
    }
}

static void test_reader_deep_mismatched_brackets_are_noticed(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf json = nested(700);
    for (size_t i = 0; i < 700; i++) {
        char *bracket = &json.ptr[json.len - 1 - i], was = *bracket;
        *bracket = was == ']' ? '}' : ']';
        assert_int_equal(ml_json_check(ml_buf_str(&json), 700, &err), ML_EINVALID);
        *bracket = was;
    }
    ml_buf_fini(&json);
}

static void test_reader_stays_at_its_end_and_at_its_error(void **state)
{
    (void)state;
    struct ml_json_reader reader;
    ml_json_reader_init(&reader, ML_STR("1"), 0);
    ml_json_next(&reader);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ml_json_next(&reader), ML_JSON_END);
    assert_int_equal(ml_json_skip(&reader).len, 0);
    ml_json_reader_fini(&reader);

    ml_json_reader_init(&reader, ML_STR("[1 2]"), 0);
    ml_json_next(&reader);
    ml_json_next(&reader);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ml_json_next(&reader), ML_JSON_ERROR);
    assert_int_equal(ml_json_skip(&reader).len, 0);
    struct ml_err err;
    assert_int_equal(ml_json_error(&reader, &err), ML_EINVALID);
    assert_string_equal(err.message, "at byte 3: neither ',' nor ']'");
    ml_json_reader_fini(&reader);
}

static void test_skip_returns_each_raw_value_of_an_array(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        enum ml_json_token token;
    } values[] = {
        {"1", ML_JSON_NUMBER},        {"\"a\\n,]\"", ML_JSON_STRING},
        {"[[], [2]]", ML_JSON_ARRAY}, {"{\"k\": [3]}", ML_JSON_OBJECT},
        {"true", ML_JSON_TRUE},       {"null", ML_JSON_NULL},
        {"-1.5e3", ML_JSON_NUMBER},
    };
    struct ml_buf json = ML_BUF_INIT;
    ml_buf_puts(&json, " [ ");
    for (size_t i = 0; i < ML_COUNT(values); i++)
        ml_buf_printf(&json, "%s%s", i ? " , " : "", values[i].raw);
    ml_buf_puts(&json, " ] ");
    struct ml_json_reader reader;
    ml_json_reader_init(&reader, ml_buf_str(&json), 0);
    ml_json_next(&reader);
    for (size_t i = 0; i < ML_COUNT(values); i++) {
        assert_str_eq(ml_json_skip(&reader), values[i].raw);
        assert_int_equal(reader.token, values[i].token);
    }
    assert_int_equal(ml_json_skip(&reader).len, 0);
    assert_int_equal(reader.token, ML_JSON_ARRAY_END);
    assert_int_equal(ml_json_next(&reader), ML_JSON_END);
    ml_json_reader_fini(&reader);
    ml_buf_fini(&json);
}

static void test_skip_inside_an_object_goes_on_with_the_next_key(void **state)
{
    (void)state;
    struct ml_json_reader reader;
    ml_json_reader_init(&reader, ML_STR("{\"a\": {\"x\":[1,2]} ,\"b\":2}"), 0);
    ml_json_next(&reader);
    assert_int_equal(ml_json_next(&reader), ML_JSON_KEY);
    assert_str_eq(ml_json_skip(&reader), "{\"x\":[1,2]}");
    assert_int_equal(ml_json_next(&reader), ML_JSON_KEY);
    assert_str_eq(reader.text, "b");
    assert_str_eq(ml_json_skip(&reader), "2");
    assert_int_equal(ml_json_next(&reader), ML_JSON_OBJECT_END);
    assert_int_equal(ml_json_next(&reader), ML_JSON_END);
    ml_json_reader_fini(&reader);
}

static void test_skip_checks_what_it_passes(void **state)
{
    (void)state;
    static const char *const values[] = {"\"\\x\"", "[1,]", "{\"a\" 1}", "\"\xFF\"", "[01]", "nul"};
    for (size_t i = 0; i < ML_COUNT(values); i++) {
        ML_AUTO_FREE char *json = ml_asprintf("[0,%s]", values[i]);
        struct ml_json_reader reader;
        ml_json_reader_init(&reader, ml_str_of(json), 0);
        ml_json_next(&reader);
        assert_str_eq(ml_json_skip(&reader), "0");
        assert_int_equal(ml_json_skip(&reader).len, 0);
        assert_int_equal(reader.token, ML_JSON_ERROR);
        ml_json_reader_fini(&reader);
    }
}

static void test_reader_specials_are_found_at_every_offset(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool good;
    } specials[] = {{"\\n", true},   {"\u20ac", true}, {"\x7f", true},
                    {"\x1f", false}, {"\xff", false},  {"\\x", false}};
    struct ml_err err;
    for (size_t s = 0; s < ML_COUNT(specials); s++) {
        for (int before = 0; before < 40; before++) {
            ML_AUTO_FREE char *json = ml_asprintf("\"%*s%s%*s\"", before, "", specials[s].bytes,
                                                  before % 19, "");
            struct ml_str text = ml_str_of(json);
            ML_AUTO_FREE char *copy = exact_copy(text);
            text.ptr = copy;
            assert_int_equal(ml_json_check(text, 0, &err) == 0, specials[s].good);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader_good_texts_give_their_tokens),
        cmocka_unit_test(test_reader_broken_texts_are_refused_in_every_way),
        cmocka_unit_test(test_reader_every_prefix_of_a_text_is_refused),
        cmocka_unit_test(test_reader_nul_bytes_are_content_not_ends),
        cmocka_unit_test(test_reader_numbers_keep_their_value_and_text),
        cmocka_unit_test(test_reader_minus_zero_keeps_its_sign),
        cmocka_unit_test(test_reader_plain_strings_are_slices_of_the_text),
        cmocka_unit_test(test_reader_depth_is_limited_where_it_was_asked),
        cmocka_unit_test(test_reader_deep_mismatched_brackets_are_noticed),
        cmocka_unit_test(test_reader_stays_at_its_end_and_at_its_error),
        cmocka_unit_test(test_skip_returns_each_raw_value_of_an_array),
        cmocka_unit_test(test_skip_inside_an_object_goes_on_with_the_next_key),
        cmocka_unit_test(test_skip_checks_what_it_passes),
        cmocka_unit_test(test_reader_specials_are_found_at_every_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
