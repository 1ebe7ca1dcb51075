#include "unit.h"

#include "codec/json.h"
#include "codec/yaml.h"

static void check(const char *json, enum ml_yaml_style style, const char *want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf yaml = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf back = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (ml_yaml_write(ml_str_of(json), style, NULL, &yaml, &err) < 0)
        fail_msg("%s\nrefused: %s", json, err.message);
    assert_string_equal(ml_buf_cstr(&yaml), want);
    if (ml_yaml_document(ml_buf_str(&yaml), 1 << 20, &back, NULL, &err) < 0)
        fail_msg("%s\nrefused: %s", want, err.message);
}

static void test_yaml_write_texts_that_mean_something_else_are_quoted(void **state)
{
    (void)state;
    static const struct {
        const char *json, *sentences, *words;
    } cases[] = {
        {"\"x\"", "x", "x"},
        {"\"a-b.c/d_e\"", "a-b.c/d_e", "a-b.c/d_e"},
        {"\"bin/app -v\"", "bin/app -v", "\"bin/app -v\""},
        {"\"/bin/sh\"", "/bin/sh", "\"/bin/sh\""},
        {"\"_a\"", "_a", "\"_a\""},
        {"\"nginx:1.25\"", "nginx:1.25", "\"nginx:1.25\""},
        {"\"https://x/y?z\"", "\"https://x/y?z\"", "\"https://x/y?z\""},
        {"\"\"", "\"\"", "\"\""},
        {"\"a \"", "\"a \"", "\"a \""},
        {"\"a:\"", "\"a:\"", "\"a:\""},
        {"\"a::b\"", "\"a::b\"", "\"a::b\""},
        {"\"a: b\"", "\"a: b\"", "\"a: b\""},
        {"\"No\"", "\"No\"", "\"No\""},
        {"\"0644\"", "\"0644\"", "\"0644\""},
        {"\"one\\ntwo\\n\"", "|\n  one\n  two", "\"one\\ntwo\\n\""},
        {"\"one\\n\\n two\"", "|-\n  one\n\n   two", "\"one\\n\\n two\""},
        {"\"one\\n\\n\"", "\"one\\n\\n\"", "\"one\\n\\n\""},
        {"\"one\\n  \"", "\"one\\n  \"", "\"one\\n  \""},
        {"\"one\\n\\ttwo\"", "\"one\\n\\ttwo\"", "\"one\\n\\ttwo\""},
        {"\"a\\\\b \\\"c\\\"\\nd\"", "|-\n  a\\b \"c\"\n  d", "\"a\\\\b \\\"c\\\"\\nd\""},
        {"\"a\\n\\u2028\"", "\"a\\n\\u2028\"", "\"a\\n\\u2028\""},
        {"\"\\u0085\"", "\"\\u0085\"", "\"\\u0085\""},
        {"-0.0", "0", "0"},
        {"5.0", "5", "5"},
        {"0.5", "0.5", "0.5"},
        {"-9223372036854775808", "-9223372036854775808", "-9223372036854775808"},
        {"[]", "[]", "[]"},
        {"{}", "{}", "{}"},
        {"null", "null", "null"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *sentences = ml_asprintf("%s\n", cases[i].sentences);
        ML_AUTO_FREE char *words = ml_asprintf("%s\n", cases[i].words);
        check(cases[i].json, ML_YAML_SENTENCES, sentences);
        check(cases[i].json, ML_YAML_WORDS, words);
    }
}

static void test_yaml_write_lists_stand_below_their_key(void **state)
{
    (void)state;
    static const struct {
        const char *json, *yaml;
    } cases[] = {
        {"{\"b\":[\"x\",true],\"a\":{\"c\":{\"d\":1}}}", "b:\n- x\n- true\na:\n  c:\n    d: 1\n"},
        {"[{\"a\":1,\"b\":2},{\"c\":[3]},[[4],5]]",
         "- a: 1\n  b: 2\n- c:\n  - 3\n- - - 4\n  - 5\n"},
        {"{\"a\":{},\"b\":[],\"c\":[{},[]]}", "a: {}\nb: []\nc:\n- {}\n- []\n"},
        {"{\"y\":\"n\",\"a b\":{\"\":null}}", "\"y\": \"n\"\na b:\n  \"\": null\n"},
        {"{\"a\":[\"b\\nc\",{\"d\":\"e\\nf\\n\"}]}", "a:\n- |-\n  b\n  c\n- d: |\n    e\n    f\n"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        check(cases[i].json, ML_YAML_SENTENCES, cases[i].yaml);
}

static void test_yaml_write_a_long_key_has_a_line_of_its_own(void **state)
{
    (void)state;
    char key[502];
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    ML_AUTO_FREE char *json = ml_asprintf("{\"a\":{\"%s\":[1],\"%s\":2}}", key, key + 1);
    ML_AUTO_FREE char *want = ml_asprintf("a:\n  ? %s\n  :\n  - 1\n  %s: 2\n", key, key + 1);
    check(json, ML_YAML_SENTENCES, want);
}

static void assert_refused(const char *json, enum ml_yaml_style style, size_t max, int kind,
                           const char *why)
{
    struct ml_buf yaml;
    struct ml_err err = ML_ERR_INIT;
    ml_buf_init(&yaml, max);
    assert_int_equal(ml_yaml_write(ml_str_of(json), style, NULL, &yaml, &err), kind);
    assert_non_null(strstr(err.message, why));
    ml_buf_fini(&yaml);
}

static void test_yaml_write_refuses_what_is_no_json_and_what_does_not_fit(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "[", "{", "{\"a\"", "{\"a\":", "[1,", "[1}", "1 2"};
    for (size_t i = 0; i < ML_COUNT(wrong); i++)
        assert_refused(wrong[i], ML_YAML_WORDS, 0, ML_EINVALID, "at byte ");
    assert_refused("[[1],[2,3]]", ML_YAML_WORDS, 8, ML_ELIMIT, "too large");
    assert_refused("[1e999]", ML_YAML_SENTENCES, 0, ML_EINVALID,
                   "readers of YAML do not hold the number 1e999");
    check("[18446744073709551615]", ML_YAML_WORDS, "- 18446744073709551615\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_write_texts_that_mean_something_else_are_quoted),
        cmocka_unit_test(test_yaml_write_lists_stand_below_their_key),
        cmocka_unit_test(test_yaml_write_a_long_key_has_a_line_of_its_own),
        cmocka_unit_test(test_yaml_write_refuses_what_is_no_json_and_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
