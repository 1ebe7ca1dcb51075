/* Server-side apply without a schema, and differences by field. */
#include "unit.h"

#include "codec/json_apply.h"
#include "codec/json_diff.h"

static void check_apply(const char *live, const char *applied, const char *before,
                        const char *expected)
{
    ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(
        ml_json_apply(ml_str_of(live), ml_str_of(applied), ml_str_of(before), &out, &err), 0);
    if (!ml_json_equal(ml_buf_str(&out), ml_str_of(expected)))
        fail_msg("%s\nis not\n%s", ml_buf_cstr(&out), expected);
}

static void test_fields_of_others_stay(void **state)
{
    (void)state;
    check_apply("{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"b\":{\"c\":4}}", "",
                "{\"a\":1,\"b\":{\"c\":4,\"d\":3}}");
    check_apply("{}", "{\"a\":{\"b\":[]}}", "", "{\"a\":{\"b\":[]}}");
}

static void test_fields_that_are_applied_no_longer_go(void **state)
{
    (void)state;
    check_apply("{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1}", "{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":3}");
    check_apply("{\"m\":{\"ours\":1,\"theirs\":2}}", "{}", "{\"m\":{\"ours\":1}}",
                "{\"m\":{\"theirs\":2}}");
    check_apply("{\"m\":{\"ours\":1},\"x\":1}", "{}", "{\"m\":{\"ours\":1}}", "{\"x\":1}");
    check_apply("{\"l\":[1,2]}", "{}", "{\"l\":[1,2]}", "{}");
}

static void test_items_are_matched_by_key(void **state)
{
    (void)state;
    check_apply("{\"c\":[{\"name\":\"a\",\"image\":\"1\",\"pull\":\"Always\"},{\"name\":\"s\"}]}",
                "{\"c\":[{\"name\":\"a\",\"image\":\"2\"},{\"name\":\"b\"}]}",
                "{\"c\":[{\"name\":\"a\",\"image\":\"1\"}]}",
                "{\"c\":[{\"name\":\"a\",\"image\":\"2\",\"pull\":\"Always\"},{\"name\":\"s\"},"
                "{\"name\":\"b\"}]}");
    check_apply("{\"c\":[{\"name\":\"a\",\"p\":1},{\"name\":\"s\"}]}", "{\"c\":[]}",
                "{\"c\":[{\"name\":\"a\"}]}", "{\"c\":[{\"name\":\"s\"}]}");
    /* "name" tells the first two apart, and "key" all three. */
    check_apply("{\"k\":[{\"name\":\"a\",\"key\":\"x\",\"v\":1},{\"name\":\"x\",\"key\":\"b\"},{"
                "\"key\":\"c\"}]}",
                "{\"k\":[{\"key\":\"x\",\"v\":2}]}", "",
                "{\"k\":[{\"name\":\"a\",\"key\":\"x\",\"v\":2},{\"name\":\"x\",\"key\":\"b\"},{"
                "\"key\":\"c\"}]}");
    check_apply("{\"p\":[{\"port\":80,\"protocol\":\"TCP\"}]}", "{\"p\":[{\"port\":80}]}", "",
                "{\"p\":[{\"port\":80,\"protocol\":\"TCP\"}]}");
}

static void test_items_without_a_key_are_matched_by_place(void **state)
{
    (void)state;
    check_apply("{\"r\":[{\"host\":\"a\",\"http\":{\"x\":1}},{\"host\":\"a\"}]}",
                "{\"r\":[{\"host\":\"b\"},{\"host\":\"a\"}]}", "",
                "{\"r\":[{\"host\":\"b\",\"http\":{\"x\":1}},{\"host\":\"a\"}]}");
}

static void test_other_lists_are_replaced(void **state)
{
    (void)state;
    check_apply("{\"args\":[\"a\",\"b\"]}", "{\"args\":[\"b\"]}", "", "{\"args\":[\"b\"]}");
    check_apply("{\"r\":[{\"x\":1},{\"x\":2}]}", "{\"r\":[{\"x\":1}]}", "", "{\"r\":[{\"x\":1}]}");
    check_apply("{\"r\":[]}", "{\"r\":[{\"x\":1}]}", "", "{\"r\":[{\"x\":1}]}");
    /* Two items with one name. */
    check_apply("{\"r\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "{\"r\":[{\"name\":\"b\"}]}", "",
                "{\"r\":[{\"name\":\"b\"}]}");
}

static void test_what_is_no_object_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "[]", "1", "{", "{\"a\":}"};
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf out = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(ml_json_apply(ml_str_of(bad[i]), ML_STR("{}"), ML_STR(""), &out, &err),
                         ML_EINVALID);
        assert_int_equal(ml_json_apply(ML_STR("{}"), ml_str_of(bad[i]), ML_STR(""), &out, &err),
                         ML_EINVALID);
    }
}

static void add_line(void *context, struct ml_str field, struct ml_str from, struct ml_str to)
{
    ml_buf_printf(context, ML_STR_FMT ": " ML_STR_FMT " -> " ML_STR_FMT "\n", ML_STR_ARG(field),
                  ML_STR_ARG(from), ML_STR_ARG(to));
}

static void check_differences(const char *from, const char *to, const char *expected)
{
    ML_AUTO(ml_buf_fini) struct ml_buf lines = ML_BUF_INIT;
    ml_json_differences(ml_str_of(from), ml_str_of(to), add_line, &lines);
    assert_string_equal(ml_buf_cstr(&lines), expected);
}

static void test_differences_name_the_field(void **state)
{
    (void)state;
    check_differences("{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":1}}", "a.c: 2 -> \n");
    check_differences("{\"a\":{}}", "{\"a\":{\"x.io/y\":{\"z\":1}}}", "a[x.io/y]:  -> {\"z\":1}\n");
    check_differences("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", "");
    check_differences("{\"c\":[{\"name\":\"w\",\"i\":1},{\"name\":\"x\"}]}",
                      "{\"c\":[{\"name\":\"y\"},{\"name\":\"w\",\"i\":2}]}",
                      "c[w].i: 1 -> 2\nc[x]: {\"name\":\"x\"} -> \nc[y]:  -> {\"name\":\"y\"}\n");
    check_differences("{\"a\":[1,2]}", "{\"a\":[1,3]}", "a[1]: 2 -> 3\n");
    check_differences("{\"a\":[1,2]}", "{\"a\":[1]}", "a: [1,2] -> [1]\n");
    check_differences("{\"a\":[]}", "{\"a\":{}}", "a: [] -> {}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_of_others_stay),
        cmocka_unit_test(test_fields_that_are_applied_no_longer_go),
        cmocka_unit_test(test_items_are_matched_by_key),
        cmocka_unit_test(test_items_without_a_key_are_matched_by_place),
        cmocka_unit_test(test_other_lists_are_replaced),
        cmocka_unit_test(test_what_is_no_object_is_refused),
        cmocka_unit_test(test_differences_name_the_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
