#include "unit.h"

#include "codec/json.h"

#include <float.h>

static void test_writer_puts_commas_and_colons_itself(void **state)
{
    (void)state;
    struct ml_buf out = ML_BUF_INIT;
    struct ml_json_writer w;
    ml_json_writer_init(&w, &out);
    ml_json_begin_object(&w);
    ml_json_put_string(&w, "s", ML_STR("x"));
    ml_json_put_int(&w, "i", -7);
    ml_json_put_bool(&w, "b", true);
    ml_json_put_raw(&w, "raw", ML_STR("[1,2]"));
    ml_json_key(&w, ML_STR("list"));
    ml_json_begin_array(&w);
    ml_json_begin_object(&w);
    ml_json_end_object(&w);
    ml_json_begin_array(&w);
    ml_json_end_array(&w);
    ml_json_null(&w);
    ml_json_bool(&w, false);
    ml_json_real(&w, 0.5);
    ml_json_end_array(&w);
    ml_json_key(&w, ML_STR("last"));
    ml_json_null(&w);
    ml_json_end_object(&w);
    assert_string_equal(ml_buf_cstr(&out), "{\"s\":\"x\",\"i\":-7,\"b\":true,\"raw\":[1,2],"
                                           "\"list\":[{},[],null,false,0.5],\"last\":null}");
    struct ml_err err;
    assert_int_equal(ml_json_check(ml_buf_str(&out), 0, &err), 0);
    ml_buf_fini(&out);
}

static void test_writer_integers_are_exact(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-1, "-1"},
        {10, "10"},
        {INT64_C(9007199254740993), "9007199254740993"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf out = ML_BUF_INIT;
        struct ml_json_writer w;
        ml_json_writer_init(&w, &out);
        ml_json_int(&w, cases[i].value);
        assert_string_equal(ml_buf_cstr(&out), cases[i].text);
        ml_buf_fini(&out);
    }
}

static void test_writer_reals_are_shortest_and_read_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-3.0, "-3.0"},
        {0.1, "0.1"},
        {0.5, "0.5"},
        {1.0 / 3.0, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100000.0, "100000.0"},
        {1e15, "1e+15"},
        {123456789012345.0, "123456789012345.0"},
        {9007199254740993.0, "9007199254740992.0"},
        {1e22, "1e+22"},
        {1e-7, "1e-07"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {5e-324, "4.94065645841247e-324"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf out = ML_BUF_INIT;
        struct ml_json_writer w;
        ml_json_writer_init(&w, &out);
        ml_json_real(&w, cases[i].value);
        assert_string_equal(ml_buf_cstr(&out), cases[i].text);
        struct ml_json_reader reader;
        ml_json_reader_init(&reader, ml_buf_str(&out), 0);
        assert_int_equal(ml_json_next(&reader), ML_JSON_REAL);
        assert_memory_equal(&reader.real, &cases[i].value, sizeof(double));
        ml_json_reader_fini(&reader);
        ml_buf_fini(&out);
    }
}

static void test_writer_strings_are_escaped_and_read_back(void **state)
{
    (void)state;
    static const struct {
        struct ml_str text;
        const char *json;
    } cases[] = {
        {{"", 0}, "\"\""},
        {{NULL, 0}, "\"\""},
        {{"plain", 5}, "\"plain\""},
        {{"a/b", 3}, "\"a/b\""},
        {{"q\"b\\", 4}, "\"q\\\"b\\\\\""},
        {{"\n\r\t\b", 4}, "\"\\n\\r\\t\\u0008\""},
        {{"a\0b", 3}, "\"a\\u0000b\""},
        {{"\x7f", 1}, "\"\\u007f\""},
        {{"twenty plain bytes..\x7f", 21}, "\"twenty plain bytes..\\u007f\""},
        {{"\u00e9\u20ac", 5}, "\"\u00e9\u20ac\""},
        {{"\u2028", 3}, "\"\\u2028\""},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf out = ML_BUF_INIT, back = ML_BUF_INIT;
        struct ml_json_writer w;
        ml_json_writer_init(&w, &out);
        ml_json_string(&w, cases[i].text);
        assert_string_equal(ml_buf_cstr(&out), cases[i].json);
        assert_true(ml_json_to_string(ml_buf_str(&out), &back));
        assert_true(ml_str_eq(ml_buf_str(&back), cases[i].text));
        ml_buf_fini(&out);
        ml_buf_fini(&back);
    }
}

static void test_writer_a_full_buffer_is_marked_failed(void **state)
{
    (void)state;
    struct ml_buf out;
    struct ml_json_writer w;
    ml_buf_init(&out, 10);
    ml_json_writer_init(&w, &out);
    ml_json_begin_array(&w);
    ml_json_string(&w, ML_STR("0123456789"));
    ml_json_end_array(&w);
    assert_true(out.failed);
    assert_true(out.len <= 10);
    ml_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_puts_commas_and_colons_itself),
        cmocka_unit_test(test_writer_integers_are_exact),
        cmocka_unit_test(test_writer_reals_are_shortest_and_read_back),
        cmocka_unit_test(test_writer_strings_are_escaped_and_read_back),
        cmocka_unit_test(test_writer_a_full_buffer_is_marked_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
