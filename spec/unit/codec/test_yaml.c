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

/* Compares how texts are cut into documents with kubectl. The meaning of a text is in yaml.txt
 * (test_yaml_table.c). */
static void test_yaml_the_documents_of_a_file_are_those_of_kubectl(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        {"", ""},
        {"# only a comment\n", ""},
        {"---\n---\n# nothing\n---\n", ""},
        {"~\n---\nnull\n---\na: ~\n", "{\"a\":null}\n"},
        {"a: 1\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
        {"a: 1\n--- # the next\nb: 2\n---\t\nc: 3\n---", "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n"},
        {"---\na: 1\n...\n---\n\n---\nb: 2\n", "{\"a\":1}\n{\"b\":2}\n"},
        {"a: |\n  x\n  ---\n  y\n", "{\"a\":\"x\\n---\\ny\\n\"}\n"},
        {"a: 1\r\n---\r\nb: |\r\n  x\r\n", "{\"a\":1}\n{\"b\":\"x\\n\"}\n"},
        {"\xEF\xBB\xBF"
         "a: 1\n---\n\xEF\xBB\xBF"
         "b: 2\n",
         "{\"a\":1}\n{\"b\":2}\n"},
        {"a: &x 1\n---\nb: &x 2\nc: *x\n", "{\"a\":1}\n{\"b\":2,\"c\":2}\n"},
        {"b: 1\na: 2\n", "{\"a\":2,\"b\":1}\n"},
        /* JSON, one after the other. */
        {"{\"a\":1}{\"b\":2}\n {\"c\":\n3}", "{\"a\":1}\n{\"b\":2}\n{\"c\": 3}\n"},
        {"{\n\t\"a\": \"\\ud83d\\ude00\\/\"\n}\n", "{ \t\"a\": \"\\ud83d\\ude00\\/\" }\n"},
        {"{\"a\":1}\n---\nb: 0644\n---\n{c: on}\n", "{\"a\":1}\n{\"b\":420}\n{\"c\":true}\n"},
        {"  {a: 1}\n", "{\"a\":1}\n"},
        {"[1, 2]\n", "[1,2]\n"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        check(cases[i].yaml, cases[i].json);
}

static void test_yaml_what_is_wrong_is_told_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *message;
    } cases[] = {
        {"a:\n- 1\n- -.INF\n", "line 3: json: unsupported value: -Inf"},
        {"a: 1\n---\nb:\n- .nan\n", "line 4: json: unsupported value: NaN"},
        {"a: 1\n[a]: 1\n", "line 2: invalid map key: []interface {}{\"a\"}"},
        {"a:\n  name: {{ x }}\n",
         "line 2: invalid map key: map[interface {}]interface {}{\"x\":interface {}(nil)}"},
        {"a: 1\n~: 2\n", "line 2: unsupported map key of type: %!s(<nil>), key: <nil>, value: 2"},
        {"a: *nowhere\n", "line 1: unknown anchor 'nowhere' referenced"},
        {"a: &x 1\n---\nb: *x\n", "line 3: unknown anchor 'x' referenced"},
        {"a: &x [*x]\n", "line 1: anchor 'x' value contains itself"},
        {"x: &x\n  <<: *x\n", "line 2: anchor 'x' value contains itself"},
        {"b: 1\na: !!int x\n", "line 2: cannot decode !!str `x` as a !!int"},
        {"b: 1\n<<: [1]\n", "line 2: map merge requires map or sequence of maps as the value"},
        {"a: 1\n--- {b: 2}\n", "line 2: invalid Yaml document separator: {b: 2}"},
        {"%YAML 1.2\n---\na: 1\n", "line 2: did not find expected <document start>"},
        {"a: 1\n...\nb: 2\n", "line 3: kubectl does not read what follows a document without a "
                              "line \"---\"; add one"},
        {"{a: 1} x\n", "line 1: kubectl does not read what follows a document without a line "
                       "\"---\"; add one"},
        {"a: [1\n", NULL},
        {"a: 1\n b: 2\n", NULL},
        {"a:\n\tb: 1\n", NULL},
        {"a: \xff\n", NULL},
        {"a: \x01\n", NULL},
        {"a: \xc0\x80\n", NULL},
        {"a: \xed\xa0\x80\n", NULL},
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

static void test_yaml_a_bad_document_does_not_hide_the_others(void **state)
{
    (void)state;
    static const struct {
        int result;
        size_t line;
        const char *json;
    } rows[] = {
        {1, 2, "{\"a\":1}"},
        {ML_EINVALID, 4, "line 5: did not find expected ',' or ']'"},
        {1, 8, "{\"c\":true}"},
        {ML_EINVALID, 10, "line 10: kubectl does not read"},
        {1, 12, "{\"e\":5}"},
        {ML_EINVALID, 13, "line 13: invalid Yaml document separator: x"},
        {1, 16, "{\"f\":6}"},
        {0, 16, ""},
        {0, 16, ""},
    };
    struct ml_yaml_stream stream;
    ml_yaml_stream_init(&stream, ML_STR("# first\na: 1\n---\nb: [1\nx: y\n\n---\nc: on\n...\nd: 4\n"
                                        "---\ne: 5\n--- x\ny: z\n---\nf: 6\n"));
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct ml_buf out = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(ml_yaml_stream_next(&stream, JSON_MAX, &out, &err), rows[i].result);
        if (rows[i].result < 0)
            assert_true(strncmp(err.message, rows[i].json, strlen(rows[i].json)) == 0);
        else
            assert_string_equal(ml_buf_cstr(&out), rows[i].json);
        ml_buf_fini(&out);
    }
}

static void test_yaml_may_be_utf_16(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf out = ML_BUF_INIT;
    struct ml_str text = {"\xff\xfe"
                          "a\0:\0 \0\xac\x20",
                          10};
    assert_int_equal(ml_yaml_document(text, JSON_MAX, &out, NULL, &err), 0);
    assert_string_equal(ml_buf_cstr(&out), "{\"a\":\"\u20ac\"}");
    ml_buf_fini(&out);
}

static void test_yaml_tells_a_thousand_duplicates_at_most(void **state)
{
    (void)state;
    struct ml_err err;
    struct ml_buf yaml = ML_BUF_INIT, out = ML_BUF_INIT, duplicates = ML_BUF_INIT;
    size_t lines = 0;
    for (int i = 0; i < 3000; i++)
        ml_buf_puts(&yaml, "a: 1\n");
    assert_int_equal(ml_yaml_document(ml_buf_str(&yaml), JSON_MAX, &out, &duplicates, &err), 0);
    assert_string_equal(ml_buf_cstr(&out), "{\"a\":1}");
    for (struct ml_str rest = ml_buf_str(&duplicates); rest.len; ml_str_cut(&rest, '\n'))
        lines++;
    assert_int_equal(lines, 1000);
    ml_buf_fini(&yaml);
    ml_buf_fini(&out);
    ml_buf_fini(&duplicates);
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
    assert_non_null(strstr(err.message, "document contains excessive aliasing"));
    assert_int_equal(out.len, 0);
    assert_true(out.capacity <= 4 << 20); /* whatever the caller would have taken */
    ml_buf_fini(&yaml);
    ml_buf_fini(&out);
}

/* Merge keys write nothing, and must not multiply. */
static void test_yaml_merge_keys_are_aliases_too(void **state)
{
    (void)state;
    struct ml_buf yaml = ML_BUF_INIT, out = ML_BUF_INIT;
    ml_buf_puts(&yaml, "a0: &a0 {}\n");
    for (int i = 1; i < 60; i++)
        ml_buf_printf(&yaml, "a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i - 1, i - 1);
    struct ml_err err;
    assert_int_equal(ml_yaml_to_json(ml_buf_str(&yaml), 1 << 30, &out, &err), ML_ELIMIT);
    assert_non_null(strstr(err.message, "document contains excessive aliasing"));
    ml_buf_clear(&yaml);
    ml_buf_puts(&yaml, "a0: &a0 {}\n");
    for (int i = 1; i < 300; i++)
        ml_buf_printf(&yaml, "a%d: &a%d {<<: *a%d}\n", i, i, i - 1);
    assert_int_equal(ml_yaml_to_json(ml_buf_str(&yaml), 1 << 30, &out, &err), ML_EINVALID);
    assert_non_null(strstr(err.message, "nested too deep"));
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

/* libyaml compares each directive with all before it. */
static void test_yaml_refuses_directives_without_end(void **state)
{
    (void)state;
    static const char *const breaks[] = {"\n", "\r\n", "\r", "\xc2\x85", "\xe2\x80\xa8"};
    for (size_t kind = 0; kind < ML_COUNT(breaks); kind++) {
        for (int count = 100; count <= 101; count++) {
            struct ml_err err;
            struct ml_buf yaml = ML_BUF_INIT, out = ML_BUF_INIT;
            for (int i = 0; i < count; i++)
                ml_buf_printf(&yaml, "%%TAG !t%d! x%s", i, breaks[kind]);
            ml_buf_puts(&yaml, "--- a");
            assert_int_equal(ml_yaml_document(ml_buf_str(&yaml), JSON_MAX, &out, NULL, &err),
                             count == 100 ? 0 : ML_ELIMIT);
            ml_buf_fini(&yaml);
            ml_buf_fini(&out);
        }
    }
}

struct patience {
    size_t asked, most, held;
};

static bool goes_on(void *context, size_t held)
{
    struct patience *patience = context;
    patience->held = ML_MAX(patience->held, held);
    return patience->asked++ < patience->most;
}

/* Wherever who watches has had enough, the reading ends there, with nothing said. */
static void test_yaml_ends_when_who_watches_says_so(void **state)
{
    (void)state;
    static const char text[] = "a: &a {b: 1, c: [d, e]}\nf:\n  <<: *a\n  g: 2\n1: 3\n";
    struct patience all = {.most = SIZE_MAX};
    for (size_t most = 0; most <= all.asked; most++) {
        struct patience patience = {.most = most};
        const struct ml_yaml_watch watch = {goes_on, most ? &patience : &all};
        struct ml_yaml_stream stream;
        struct ml_err err = ML_ERR_INIT;
        struct ml_buf out = ML_BUF_INIT;
        ml_yaml_stream_init(&stream, ml_str_of(text));
        stream.watch = &watch;
        int r = ml_yaml_stream_next(&stream, JSON_MAX, &out, &err);
        assert_int_equal(r, most == 0 || most == all.asked ? 1 : ML_ELIMIT);
        if (r < 0)
            assert_int_equal(out.len, 0);
        ml_buf_fini(&out);
    }
    assert_in_range(all.asked, 20, 100);
    assert_in_range(all.held, 16 * 32, 8192);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_the_documents_of_a_file_are_those_of_kubectl),
        cmocka_unit_test(test_yaml_what_is_wrong_is_told_with_its_line),
        cmocka_unit_test(test_yaml_a_bad_document_does_not_hide_the_others),
        cmocka_unit_test(test_yaml_may_be_utf_16),
        cmocka_unit_test(test_yaml_tells_a_thousand_duplicates_at_most),
        cmocka_unit_test(test_yaml_nul_bytes_do_not_end_the_text),
        cmocka_unit_test(test_yaml_a_billion_laughs_stop_at_once),
        cmocka_unit_test(test_yaml_merge_keys_are_aliases_too),
        cmocka_unit_test(test_yaml_aliases_add_a_megabyte_and_as_much_as_the_text_has),
        cmocka_unit_test(test_yaml_refuses_anchors_without_end),
        cmocka_unit_test(test_yaml_refuses_directives_without_end),
        cmocka_unit_test(test_yaml_ends_when_who_watches_says_so),
        cmocka_unit_test(test_yaml_the_maximum_is_exact_and_behind_what_was_there),
        cmocka_unit_test(test_yaml_depth_is_that_of_json_through_aliases_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
