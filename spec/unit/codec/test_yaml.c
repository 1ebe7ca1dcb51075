#include "unit.h"

#include "codec/json.h"
#include "codec/yaml.h"

#include <stdio.h>

#define JSON_MAX 65536

static void check(const char *yaml, const char *want)
{
    struct ml_err err = ML_ERR_INIT;
    struct ml_buf out = ML_BUF_INIT;
    if (ml_yaml_to_json(ml_str_of(yaml), JSON_MAX, &out, &err) != 0)
        fail_msg("%s\nrefused: %s", yaml, err.message);
    assert_string_equal(ml_buf_cstr(&out), want);
    ml_buf_fini(&out);
}

static void test_yaml_plain_scalars_follow_the_core_schema(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        {"~", "null"},
        {"null", "null"},
        {"Null", "null"},
        {"NULL", "null"},
        {"nUll", "\"nUll\""},
        {"true", "true"},
        {"True", "true"},
        {"TRUE", "true"},
        {"tRUE", "\"tRUE\""},
        {"false", "false"},
        {"FALSE", "false"},
        {"yes", "\"yes\""},
        {"no", "\"no\""},
        {"on", "\"on\""},
        {"off", "\"off\""},
        {"y", "\"y\""},
        {"N", "\"N\""},
        {"0", "0"},
        {"12", "12"},
        {"-12", "-12"},
        {"+12", "12"},
        {"012", "12"},
        {"-007", "-7"},
        {"000", "0"},
        {"0o7", "7"},
        {"0o17", "15"},
        {"0o8", "\"0o8\""},
        {"0o", "\"0o\""},
        {"-0o7", "\"-0o7\""},
        {"0x1F", "31"},
        {"0xff", "255"},
        {"0xffffffffffffffff", "18446744073709551615"},
        {"0x", "\"0x\""},
        {"0xg", "\"0xg\""},
        {"0b1", "\"0b1\""},
        {"1_000", "\"1_000\""},
        {"1:30", "\"1:30\""},
        {"9007199254740993", "9007199254740993"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"1.5", "1.5"},
        {"1.0", "1.0"},
        {"1.", "1.0"},
        {".5", "0.5"},
        {"-.5", "-0.5"},
        {"+0.50", "0.50"},
        {"00.5", "0.5"},
        {"1e3", "1e3"},
        {"1E3", "1e3"},
        {"1e+3", "1e+3"},
        {"01.e-3", "1.0e-3"},
        {"-0", "-0"},
        {"-0.0", "-0.0"},
        {".", "\".\""},
        {"+", "\"+\""},
        {"1e", "\"1e\""},
        {"1e+", "\"1e+\""},
        {"e3", "\"e3\""},
        {"1.2.3", "\"1.2.3\""},
        {"1 2", "\"1 2\""},
        {".infinity", "\".infinity\""},
        {".iNf", "\".iNf\""},
        {"+.nan", "\"+.nan\""},
        {"nan", "\"nan\""},
        {"2001-01-01", "\"2001-01-01\""},
        {"<<", "\"<<\""},
        {"a: b", "{\"a\":\"b\"}"},
        {"'12'", "\"12\""},
        {"\"true\"", "\"true\""},
        {"''", "\"\""},
        {"\"\\u00e9\\n\\x00\"", "\"\u00e9\\n\\u0000\""},
        {"!!str 12", "\"12\""},
        {"!!str", "\"\""},
        {"!!int \"12\"", "12"},
        {"!!int 0x10", "16"},
        {"!!float 12", "12.0"},
        {"!!float \"1e3\"", "1e3"},
        {"!!bool \"true\"", "true"},
        {"!!null \"\"", "null"},
        {"!<tag:yaml.org,2002:str> 1", "\"1\""},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        ML_AUTO_FREE char *yaml = ml_asprintf("- %s\n", cases[i].yaml);
        ML_AUTO_FREE char *json = ml_asprintf("[%s]\n", cases[i].json);
        check(yaml, json);
    }
}

static void test_yaml_texts_become_the_json_of_their_values(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        /* Documents. */
        {"", ""},
        {"# only a comment\n", ""},
        {"---\n---\n# nothing\n---\n", ""},
        {"a: 1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
        {"---\na: 1\n...\n---\n\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
        {"--- ~\n--- null\n--- ''\n", "null\nnull\n\"\"\n"},
        {"%YAML 1.2\n---\na: 1\n", "{\"a\":1}\n"},
        {"\xEF\xBB\xBF"
         "a: 1\n",
         "{\"a\":1}\n"},
        {"a: 1\r\nb: 2\r\n", "{\"a\":1,\"b\":2}\n"},
        {"{\"json\": [1, 2.5, true, null, \"x\"]}", "{\"json\":[1,2.5,true,null,\"x\"]}\n"},
        /* Collections. */
        {"a:\nb: []\nc: {}\n", "{\"a\":null,\"b\":[],\"c\":{}}\n"},
        {"- 1\n- - 2\n  - 3\n- a: 4\n  b: 5\n", "[1,[2,3],{\"a\":4,\"b\":5}]\n"},
        {"spec:\n  containers:\n  - name: a\n    args: [-c, \"x\"]\n",
         "{\"spec\":{\"containers\":[{\"name\":\"a\",\"args\":[\"-c\",\"x\"]}]}}\n"},
        /* Keys. */
        {"1: a\n0x1F: b\n1.50: c\ntrue: d\n", "{\"1\":\"a\",\"31\":\"b\",\"1.50\":\"c\","
                                              "\"true\":\"d\"}\n"},
        {"on: push\nyes: 1\n", "{\"on\":\"push\",\"yes\":1}\n"},
        {"<<: {a: 1}\nb: 2\n", "{\"<<\":{\"a\":1},\"b\":2}\n"},
        {"? a\n: 1\n", "{\"a\":1}\n"},
        {"'': 1\n", "{\"\":1}\n"},
        /* Block scalars. */
        {"a: |\n  one\n    two\n\n  three\nb: 1\n",
         "{\"a\":\"one\\n  two\\n\\nthree\\n\",\"b\":1}\n"},
        {"a: |-\n  one\n", "{\"a\":\"one\"}\n"},
        {"a: |+\n  one\n\n", "{\"a\":\"one\\n\\n\"}\n"},
        {"a: >\n  one\n  two\n\n  three\n", "{\"a\":\"one two\\nthree\\n\"}\n"},
        {"a: |\n  12\n", "{\"a\":\"12\\n\"}\n"},
        {"a: |2\n   one\n", "{\"a\":\" one\\n\"}\n"},
        {"a: one\n  two\n", "{\"a\":\"one two\"}\n"},
        {"a: \"tab\there\"\n", "{\"a\":\"tab\\there\"}\n"},
        {"a:\t1\n", "{\"a\":1}\n"},
        /* Anchors and aliases. */
        {"a: &x 1\nb: *x\n", "{\"a\":1,\"b\":1}\n"},
        {"a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\n",
         "{\"a\":{\"k\":[1,2]},\"b\":{\"k\":[1,2]},\"c\":[{\"k\":[1,2]},{\"k\":[1,2]}]}\n"},
        {"a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}\n"},
        {"&k a: 1\nb: *k\n", "{\"a\":1,\"b\":\"a\"}\n"},
        {"&k 12: 1\nb: *k\n", "{\"12\":1,\"b\":12}\n"},
        {"a: &k b\n*k : 1\n", "{\"a\":\"b\",\"b\":1}\n"},
        {"a: &k 7\n*k : 1\n", "{\"a\":7,\"7\":1}\n"},
        {"a: &x\nb: *x\n", "{\"a\":null,\"b\":null}\n"},
        {"&x [&x 1, *x]\n", "[1,1]\n"},
        {"a: &x 1\n---\nb: &x 2\nc: *x\n", "{\"a\":1}\n{\"b\":2,\"c\":2}\n"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        check(cases[i].yaml, cases[i].json);
}

static void test_yaml_what_json_cannot_say_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"a: .inf\n", "line 1: JSON has no infinity and no NaN"},
        {"a:\n- 1\n- -.INF\n", "line 3: JSON has no infinity and no NaN"},
        {"a: .nan\n", "line 1: JSON has no infinity and no NaN"},
        {"a: !!float .inf\n", "line 1: JSON has no infinity and no NaN"},
        {"a: 0x1ffffffffffffffff\n",
         "line 1: an octal or hexadecimal number has more than 64 bits"},
        {"a: 1\nb: 2\na: 3\n", "line 3: a key that the mapping has already"},
        {"1: a\n'1': b\n", "line 2: a key that the mapping has already"},
        {"a: 1\n\"\\x61\": 2\n", "line 2: a key that the mapping has already"},
        {"[a]: 1\n", "line 1: a key that is a collection"},
        {"? {a: 1}\n: 2\n", "line 1: a key that is a collection"},
        {"a: &x [1]\n*x : 2\n", "line 2: a key that is a collection"},
        {"~: 1\n", "line 1: a key that is null"},
        {"{? : 1}\n", "line 1: a key that is null"},
        {"a: *nowhere\n", "line 1: an alias to an anchor that is not defined"},
        {"a: &x 1\n---\nb: *x\n", "line 3: an alias to an anchor that is not defined"},
        {"a: &x [*x]\n", "line 1: an anchor inside what it names"},
        {"&x a: {b: &y [*x, *y]}\n", "line 1: an anchor inside what it names"},
        {"a: !mine 1\n", "line 1: a tag other than !!str, !!int, !!float, !!bool and !!null"},
        {"a: !!binary aGk=\n", "line 1: a tag other than !!str, !!int, !!float, !!bool and !!null"},
        {"a: !!set {b}\n", "line 1: a tag on a collection"},
        {"a: !!int x\n", "line 1: tagged !!int but not an integer"},
        {"a: !!int 1.0\n", "line 1: tagged !!int but not an integer"},
        {"a: !!float x\n", "line 1: tagged !!float but not a number"},
        {"a: !!bool yes\n", "line 1: tagged !!bool but neither true nor false"},
        {"a: !!null x\n", "line 1: tagged !!null but not null"},
        {"a: [1\n", NULL},
        {"a: 1\n b: 2\n", NULL},
        {"a:\n\tb: 1\n", NULL},
        {"a: \"unfinished\n", NULL},
        {"a: \"\\q\"\n", NULL},
        {"a: \"\\ud800\"\n", NULL},
        {"a: @x\n", NULL},
        {"a: b: c\n", NULL},
        {"- a\nb: c\n", NULL},
        {"a: \xff\n", NULL},
        {"a: \x01\n", NULL},
        {"%YAML 3.0\n---\na: 1\n", NULL},
        {"good: 1\n---\nbad: [\n", NULL},
    };
    struct ml_buf out = ML_BUF_INIT;
    ml_buf_puts(&out, "kept");
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err = ML_ERR_INIT;
        if (ml_yaml_to_json(ml_str_of(cases[i].yaml), JSON_MAX, &out, &err) != ML_EINVALID)
            fail_msg("taken: %s", cases[i].yaml);
        if (cases[i].message)
            assert_string_equal(err.message, cases[i].message);
        assert_true(strncmp(err.message, "line ", 5) == 0);
        assert_string_equal(ml_buf_cstr(&out), "kept");
    }
    ml_buf_fini(&out);
}

static void test_yaml_nul_bytes_do_not_end_the_text(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf out = ML_BUF_INIT;
    assert_int_equal(ml_yaml_to_json(ML_STR("a: 1\n\0b: 2\n"), JSON_MAX, &out, &err), ML_EINVALID);
    assert_int_equal(ml_yaml_to_json((struct ml_str){NULL, 0}, JSON_MAX, &out, &err), 0);
    assert_int_equal(out.len, 0);
    ml_buf_fini(&out);
}

static void test_yaml_a_billion_laughs_stop_at_once(void **state)
{
    (void)state;
    struct ml_buf yaml = ML_BUF_INIT, out = ML_BUF_INIT;
    ml_buf_puts(&yaml, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for (int i = 1; i < 30; i++)
        ml_buf_printf(&yaml, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1,
                      i - 1, i - 1, i - 1);
    struct ml_err err;
    assert_int_equal(ml_yaml_to_json(ml_buf_str(&yaml), 1 << 30, &out, &err), ML_ELIMIT);
    assert_string_equal(err.message, "document contains excessive aliasing");
    assert_int_equal(out.len, 0);
    assert_true(out.capacity <= 4 << 20); /* whatever the caller would have taken */
    ml_buf_fini(&yaml);
    ml_buf_fini(&out);
}

/* Few bytes of aliases, each of much: `count` times a text of `len` bytes. */
static int repeat(size_t len, int count, struct ml_err *err)
{
    struct ml_buf yaml = ML_BUF_INIT, out = ML_BUF_INIT;
    ml_buf_puts(&yaml, "- &a ");
    for (size_t i = 0; i < len; i++)
        ml_buf_putc(&yaml, 'x');
    for (int i = 0; i < count; i++)
        ml_buf_puts(&yaml, "\n- *a");
    int r = ml_yaml_to_json(ml_buf_str(&yaml), 1 << 30, &out, err);
    ml_buf_fini(&yaml);
    ml_buf_fini(&out);
    return r;
}

static void test_yaml_aliases_add_a_megabyte_and_as_much_as_the_text_has(void **state)
{
    (void)state;
    struct ml_err err;
    assert_int_equal(repeat(1022, 1024, &err), 0); /* in quotes 1 MiB */
    assert_int_equal(repeat(1 << 20, 1, &err), 0);
    assert_int_equal(repeat(1 << 20, 3, &err), ML_ELIMIT);
    assert_int_equal(repeat(1022, 1050, &err), ML_ELIMIT);
}

static void test_yaml_refuses_anchors_without_end(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf yaml = ML_BUF_INIT, out = ML_BUF_INIT;
    for (int i = 0; i < 10000; i++)
        ml_buf_printf(&yaml, "- &a%d x\n", i);
    assert_int_equal(ml_yaml_to_json(ml_buf_str(&yaml), 1 << 30, &out, &err), 0);
    ml_buf_puts(&yaml, "- &a [x]\n");
    assert_int_equal(ml_yaml_to_json(ml_buf_str(&yaml), 1 << 30, &out, &err), ML_EINVALID);
    assert_string_equal(err.message, "line 10001: more than 10000 anchors");
    ml_buf_fini(&yaml);
    ml_buf_fini(&out);
}

static void test_yaml_the_maximum_is_exact_and_behind_what_was_there(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf out = ML_BUF_INIT;
    ml_buf_puts(&out, "before ");
    assert_int_equal(ml_yaml_to_json(ML_STR("a: 1"), 7, &out, &err), ML_ELIMIT);
    assert_int_equal(ml_yaml_to_json(ML_STR("a: 1"), 8, &out, &err), 0);
    assert_string_equal(ml_buf_cstr(&out), "before {\"a\":1}\n");
    ml_buf_fini(&out);
}

/* `depth` arrays around `inner`. */
static void put_nested(struct ml_buf *out, int depth, const char *inner)
{
    for (int i = 0; i < depth; i++)
        ml_buf_putc(out, '[');
    ml_buf_puts(out, inner);
    for (int i = 0; i < depth; i++)
        ml_buf_putc(out, ']');
}

static void test_yaml_depth_is_that_of_json_through_aliases_too(void **state)
{
    (void)state;
    static const struct {
        int outer, inner;
        int result;
    } cases[] = {
        {ML_JSON_DEPTH_MAX - 2, 0, 0},
        {ML_JSON_DEPTH_MAX - 1, 0, ML_EINVALID},
        {900, 0, ML_EINVALID},
        {60, ML_JSON_DEPTH_MAX - 62, 0},
        {60, ML_JSON_DEPTH_MAX - 61, ML_EINVALID},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_err err;
        struct ml_buf yaml = ML_BUF_INIT, out = ML_BUF_INIT;
        ml_buf_puts(&yaml, "- &x ");
        put_nested(&yaml, cases[i].inner, "1");
        ml_buf_puts(&yaml, "\n- ");
        put_nested(&yaml, cases[i].outer + 1, "*x");
        ml_buf_puts(&yaml, "\n");
        assert_int_equal(ml_yaml_to_json(ml_buf_str(&yaml), JSON_MAX, &out, &err), cases[i].result);
        if (cases[i].result)
            assert_true(strstr(err.message, "nested too deep") != NULL);
        ml_buf_fini(&yaml);
        ml_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_plain_scalars_follow_the_core_schema),
        cmocka_unit_test(test_yaml_texts_become_the_json_of_their_values),
        cmocka_unit_test(test_yaml_what_json_cannot_say_is_refused_with_its_line),
        cmocka_unit_test(test_yaml_nul_bytes_do_not_end_the_text),
        cmocka_unit_test(test_yaml_a_billion_laughs_stop_at_once),
        cmocka_unit_test(test_yaml_aliases_add_a_megabyte_and_as_much_as_the_text_has),
        cmocka_unit_test(test_yaml_refuses_anchors_without_end),
        cmocka_unit_test(test_yaml_the_maximum_is_exact_and_behind_what_was_there),
        cmocka_unit_test(test_yaml_depth_is_that_of_json_through_aliases_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
