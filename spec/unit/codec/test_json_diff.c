#include "unit.h"

#include "codec/json.h"
#include "codec/json_diff.h"

#define PAD_BYTES 8000

/* The value inside a text that is long enough for its spans to be read: between things that have
 * brackets in them. The caller frees it. */
static char *inside(const char *value)
{
    static char pad[PAD_BYTES + 1];
    memset(pad, 'x', PAD_BYTES);
    return ml_asprintf("{\"pad\":[\"%s\",\"]}{[\\\"[\",{\"a\":[]}], \"in\" : %s ,"
                       "\"tail\":{\"b\":[[1],[2]]}}",
                       pad, value);
}

static void test_equal_compares_values_not_texts(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"{}", " { } ", true},
        {"{\"a\":1,\"b\":2}", "{ \"b\":2, \"a\":1 }", true},
        {"{\"a\":1,\"b\":2}", "{\"a\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1,\"a\":2}", "{\"a\":2}", true},
        {"{\"a\":1,\"a\":2}", "{\"a\":1}", false},
        {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"\\u0061\":1}", "{\"a\":1}", true},
        {"{\"x\":{\"a\":[{\"b\":1,\"c\":2}]}}", "{\"x\":{\"a\":[{\"c\":2,\"b\":1}]}}", true},
        {"[1,2]", "[1, 2]", true},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1]", false},
        {"[1]", "[1,2]", false},
        {"[]", "[ ]", true},
        {"[]", "{}", false},
        {"[]", "[null]", false},
        {"[[]]", "[{}]", false},
        {"null", "null ", true},
        {"null", "false", false},
        {"true", "true", true},
        {"1", "1", true},
        {"1", "1.0", false},
        {"1", "\"1\"", false},
        {"1.0", "1.00", true},
        {"100.0", "1e2", true},
        {"0.1", "0.2", false},
        {"9007199254740993", "9007199254740992", false},
        {"18446744073709551616", "18446744073709551616", true},
        {"18446744073709551616", "18446744073709551617", false},
        {"\"\\u00e9\"", "\"\u00e9\"", true},
        {"\"a\"", "\"b\"", false},
        {"\"a\"", "\"a\\u0000\"", false},
        {"{", "{", false},
        {"", "", false},
        {"{\"a\":tru}", "{\"a\":tru}", false},
        {"1", "1 1", false},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_str a = ml_str_of(cases[i].a), b = ml_str_of(cases[i].b);
        if (ml_json_equal(a, b) != cases[i].equal || ml_json_equal(b, a) != cases[i].equal)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
        ML_AUTO_FREE char *long_a = inside(cases[i].a), *long_b = inside(cases[i].b);
        if (ml_json_equal(ml_str_of(long_a), ml_str_of(long_b)) != cases[i].equal)
            fail_msg("%s and %s, in a long text", cases[i].a, cases[i].b);
    }
}

/* RFC 7386, appendix A, in its order. */
static const struct {
    const char *target, *patch, *result;
} appendix[] = {
    {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
    {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
    {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
    {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
    {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
    {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
    {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
    {"{\"a\":\"foo\"}", "null", "null"},
    {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
    {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
    {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
    {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    /* The example of section 3. */
    {"{\"title\":\"Goodbye!\",\"author\":{\"givenName\":\"John\",\"familyName\":\"Doe\"},"
     "\"tags\":[\"example\",\"sample\"],\"content\":\"This will be unchanged\"}",
     "{\"title\":\"Hello!\",\"phoneNumber\":\"+01-123-456-7890\",\"author\":{\"familyName\":null},"
     "\"tags\":[\"example\"]}",
     "{\"title\":\"Hello!\",\"author\":{\"givenName\":\"John\"},\"tags\":[\"example\"],"
     "\"content\":\"This will be unchanged\",\"phoneNumber\":\"+01-123-456-7890\"}"},
    /* Ours: white space, duplicate and escaped keys, an absent target. */
    {"", "{\"a\":1}", "{\"a\":1}"},
    {" { \"a\" : [ 1 ] } ", " { \"b\" : 2 } ", "{\"a\":[ 1 ],\"b\":2}"},
    {"{\"a\":1,\"b\":2,\"a\":3}", "{}", "{\"a\":3,\"b\":2}"},
    {"{\"a\":1}", "{\"\\u0061\":null}", "{}"},
    {"{\"a\":1}", "{\"a\":2,\"a\":3}", "{\"a\":3}"},
};

static void test_merge_follows_the_rfc(void **state)
{
    (void)state;
    for (size_t i = 0; i < ML_COUNT(appendix); i++) {
        struct ml_err err;
        struct ml_buf out = ML_BUF_INIT;
        assert_int_equal(
            ml_json_merge(ml_str_of(appendix[i].target), ml_str_of(appendix[i].patch), &out, &err),
            0);
        assert_string_equal(ml_buf_cstr(&out), appendix[i].result);
        ml_buf_clear(&out);
        if (*appendix[i].target && strcmp(appendix[i].patch, "null") != 0) {
            ML_AUTO_FREE char *target = inside(appendix[i].target);
            ML_AUTO_FREE char *patch = inside(appendix[i].patch);
            ML_AUTO_FREE char *result = inside(appendix[i].result);
            assert_int_equal(ml_json_merge(ml_str_of(target), ml_str_of(patch), &out, &err), 0);
            assert_true(ml_json_equal(ml_buf_str(&out), ml_str_of(result)));
        }
        ml_buf_fini(&out);
    }
}

static void test_merge_diff_is_smallest_and_takes_one_to_the_other(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *patch;
    } cases[] = {
        {"{}", "{}", "{}"},
        {"{\"a\":1}", "{\"a\":1}", "{}"},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "{}"},
        {"{\"a\":1}", "{\"a\":2}", "{\"a\":2}"},
        {"{\"a\":1}", "{\"a\":1.0}", "{\"a\":1.0}"},
        {"{\"a\":1}", "{}", "{\"a\":null}"},
        {"{}", "{\"a\":1}", "{\"a\":1}"},
        {"{\"a\":1}", "{\"b\":1}", "{\"a\":null,\"b\":1}"},
        {"{\"m\":{\"a\":1,\"b\":2},\"z\":0}", "{\"m\":{\"a\":1,\"b\":3},\"z\":0}",
         "{\"m\":{\"b\":3}}"},
        {"{\"m\":{\"a\":1}}", "{\"m\":{}}", "{\"m\":{\"a\":null}}"},
        {"{\"m\":{\"a\":1}}", "{\"m\":{ \"a\":1 }}", "{}"},
        {"{\"a\":0,\"m\":{\"x\":{\"y\":1}},\"n\":1}", "{\"a\":0,\"m\":{\"x\":{\"y\":1}},\"n\":2}",
         "{\"n\":2}"},
        {"{\"a\":0,\"m\":{\"x\":1},\"n\":1}", "{\"a\":1,\"m\":{ \"x\":1},\"n\":2}",
         "{\"a\":1,\"n\":2}"},
        {"{\"m\":1}", "{\"m\":{}}", "{\"m\":{}}"},
        {"{\"m\":{\"a\":1}}", "{\"m\":[1]}", "{\"m\":[1]}"},
        {"{\"l\":[1,2]}", "{\"l\":[1,2,3]}", "{\"l\":[1,2,3]}"},
        {"{\"l\":[{\"a\":1,\"b\":2}]}", "{\"l\":[{\"b\":2,\"a\":1}]}", "{}"},
        {"{\"a\":null}", "{}", "{\"a\":null}"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        struct ml_buf patch = ML_BUF_INIT, back = ML_BUF_INIT;
        struct ml_str from = ml_str_of(cases[i].from), to = ml_str_of(cases[i].to);
        assert_int_equal(ml_json_merge_diff(from, to, &patch, &err), 0);
        assert_string_equal(ml_buf_cstr(&patch), cases[i].patch);
        assert_int_equal(ml_json_merge(from, ml_buf_str(&patch), &back, &err), 0);
        assert_true(ml_json_equal(ml_buf_str(&back), to));
        ml_buf_clear(&patch);
        ML_AUTO_FREE char *long_from = inside(cases[i].from), *long_to = inside(cases[i].to);
        ML_AUTO_FREE char *want = strcmp(cases[i].patch, "{}") == 0
                                      ? ml_strdup("{}")
                                      : ml_asprintf("{\"in\":%s}", cases[i].patch);
        assert_int_equal(ml_json_merge_diff(ml_str_of(long_from), ml_str_of(long_to), &patch, &err),
                         0);
        assert_string_equal(ml_buf_cstr(&patch), want);
        ml_buf_fini(&patch);
        ml_buf_fini(&back);
    }
}

static void test_merge_diff_null_in_the_target_counts_as_absent(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *patch;
    } cases[] = {
        {"{}", "{\"a\":null}", "{}"},
        {"{\"a\":1}", "{\"a\":null}", "{\"a\":null}"},
        {"{\"a\":null}", "{\"a\":null}", "{}"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        struct ml_buf patch = ML_BUF_INIT;
        assert_int_equal(
            ml_json_merge_diff(ml_str_of(cases[i].from), ml_str_of(cases[i].to), &patch, &err), 0);
        assert_string_equal(ml_buf_cstr(&patch), cases[i].patch);
        ml_buf_fini(&patch);
    }
}

static void test_diff_of_many_members_finds_the_one_that_differs(void **state)
{
    (void)state;
    struct ml_buf from = ML_BUF_INIT, to = ML_BUF_INIT, patch = ML_BUF_INIT;
    ml_buf_putc(&from, '{');
    ml_buf_putc(&to, '{');
    for (int i = 0; i < 20000; i++) {
        ml_buf_printf(&from, "%s\"k%d\":%d", i ? "," : "", i, i);
        ml_buf_printf(&to, "%s\"k%d\":%d", i ? "," : "", 19999 - i, i == 7 ? -1 : 19999 - i);
    }
    ml_buf_putc(&from, '}');
    ml_buf_putc(&to, '}');
    struct ml_err err;
    assert_int_equal(ml_json_merge_diff(ml_buf_str(&from), ml_buf_str(&to), &patch, &err), 0);
    assert_string_equal(ml_buf_cstr(&patch), "{\"k19992\":-1}");
    ml_buf_fini(&from);
    ml_buf_fini(&to);
    ml_buf_fini(&patch);
}

/* An object in an object and so on, around an array of so many numbers that ends with `last`. */
static char *deep_array(int count, int last)
{
    struct ml_buf text = ML_BUF_INIT;
    for (int i = 0; i < ML_JSON_DEPTH_MAX - 2; i++)
        ml_buf_puts(&text, "{\"a\":");
    ml_buf_putc(&text, '[');
    for (int i = 0; i < count; i++)
        ml_buf_puts(&text, "1,");
    ml_buf_printf(&text, "%d]", last);
    for (int i = 0; i < ML_JSON_DEPTH_MAX - 2; i++)
        ml_buf_putc(&text, '}');
    return ml_buf_take(&text);
}

static void test_depth_does_not_multiply_the_work(void **state)
{
    (void)state;
    ML_AUTO_FREE char *one = deep_array(400000, 1), *other = deep_array(400000, 2);
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    struct ml_err err;
    int64_t begin_ns = unit_cpu_ns();
    assert_false(ml_json_equal(ml_str_of(one), ml_str_of(other)));
    assert_int_equal(ml_json_merge(ml_str_of(one), ml_str_of(other), &out, &err), 0);
    assert_true(ml_json_equal(ml_buf_str(&out), ml_str_of(other)));
    ml_buf_clear(&out);
    assert_int_equal(ml_json_merge_diff(ml_str_of(one), ml_str_of(other), &out, &err), 0);
    /* 100 ms in the release build; it was 4 s. */
    assert_true(unit_cpu_ns() - begin_ns < 1500 * ML_NS_PER_MS);
    assert_true(ml_json_equal(ml_buf_str(&out), ml_str_of(other)));
}

static void test_merge_broken_or_deep_input_leaves_the_output(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf out = ML_BUF_INIT, deep = ML_BUF_INIT;
    ml_buf_puts(&out, "kept");
    for (int i = 0; i <= ML_JSON_DEPTH_MAX; i++)
        ml_buf_puts(&deep, "{\"a\":");
    ml_buf_puts(&deep, "1");
    for (int i = 0; i <= ML_JSON_DEPTH_MAX; i++)
        ml_buf_putc(&deep, '}');
    struct ml_str good = ML_STR("{}"), bad = ML_STR("{\"a\":"), list = ML_STR("[]");
    assert_int_equal(ml_json_merge(bad, good, &out, &err), ML_EINVALID);
    assert_string_equal(err.message, "target: at byte 5: the text ends where a value should be");
    assert_int_equal(ml_json_merge(good, bad, &out, &err), ML_EINVALID);
    assert_int_equal(ml_json_merge(good, ML_STR(""), &out, &err), ML_EINVALID);
    assert_int_equal(ml_json_merge(good, ml_buf_str(&deep), &out, &err), ML_EINVALID);
    assert_int_equal(ml_json_merge_diff(bad, good, &out, &err), ML_EINVALID);
    assert_int_equal(ml_json_merge_diff(good, bad, &out, &err), ML_EINVALID);
    assert_int_equal(ml_json_merge_diff(list, good, &out, &err), ML_EINVALID);
    assert_int_equal(ml_json_merge_diff(good, list, &out, &err), ML_EINVALID);
    assert_int_equal(ml_json_merge_diff(good, ml_buf_str(&deep), &out, &err), ML_EINVALID);
    assert_string_equal(ml_buf_cstr(&out), "kept");
    ml_buf_fini(&out);
    ml_buf_fini(&deep);
}

static void test_merge_past_the_buffer_is_a_limit(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf out;
    ml_buf_init(&out, 8);
    assert_int_equal(ml_json_merge(ML_STR("{\"a\":1}"), ML_STR("{\"b\":2}"), &out, &err),
                     ML_ELIMIT);
    assert_int_equal(out.len, 0);
    ml_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_compares_values_not_texts),
        cmocka_unit_test(test_merge_follows_the_rfc),
        cmocka_unit_test(test_merge_diff_is_smallest_and_takes_one_to_the_other),
        cmocka_unit_test(test_merge_diff_null_in_the_target_counts_as_absent),
        cmocka_unit_test(test_diff_of_many_members_finds_the_one_that_differs),
        cmocka_unit_test(test_depth_does_not_multiply_the_work),
        cmocka_unit_test(test_merge_broken_or_deep_input_leaves_the_output),
        cmocka_unit_test(test_merge_past_the_buffer_is_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
