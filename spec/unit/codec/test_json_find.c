#include "unit.h"

#include "codec/json_members.h"

static const char object_text[] =
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\\tb\",\"ownerReferences\":[{\"uid\":\"u0\"},"
    "{\"uid\":\"u1\"}],\"0\":\"zero\"},\"twice\":1,\"twice\":{\"x\":2},\"n\":null,\"\":[7]}";
static const struct ml_str object = {object_text, sizeof object_text - 1};

static void test_find_follows_keys_and_indexes(void **state)
{
    (void)state;
    struct ml_str json = object, raw = {NULL, 0};
    assert_true(ml_json_find(json, &raw, "kind", NULL));
    assert_str_eq(raw, "\"Pod\"");
    assert_true(raw.ptr > object.ptr && raw.ptr < object.ptr + object.len);
    assert_true(ml_json_find(json, &raw, "metadata", "ownerReferences", "1", "uid", NULL));
    assert_str_eq(raw, "\"u1\"");
    assert_true(ml_json_find(json, &raw, "metadata", "0", NULL));
    assert_str_eq(raw, "\"zero\"");
    assert_true(ml_json_find(json, &raw, "", "0", NULL));
    assert_str_eq(raw, "7");
    assert_true(ml_json_find(json, &raw, "n", NULL));
    assert_str_eq(raw, "null");
    assert_true(ml_json_find(ML_STR(" [1] "), &raw, NULL));
    assert_str_eq(raw, "[1]");
}

static void test_find_of_duplicate_keys_takes_the_last(void **state)
{
    (void)state;
    struct ml_str raw;
    assert_true(ml_json_find(object, &raw, "twice", "x", NULL));
    assert_str_eq(raw, "2");
}

static void test_find_absent_leaves_the_result_alone(void **state)
{
    (void)state;
    struct ml_str json = object, raw = ML_STR("before");
    assert_false(ml_json_find(json, &raw, "absent", NULL));
    assert_false(ml_json_find(json, &raw, "kind", "deeper", NULL));
    assert_false(ml_json_find(json, &raw, "metadata", "ownerReferences", "2", NULL));
    assert_false(ml_json_find(json, &raw, "metadata", "ownerReferences", "-1", NULL));
    assert_false(ml_json_find(json, &raw, "metadata", "ownerReferences", "uid", NULL));
    assert_false(ml_json_find(json, &raw, "metadata", "ownerReferences", "", NULL));
    assert_false(ml_json_find(ML_STR(""), &raw, "a", NULL));
    assert_false(ml_json_find(ML_STR("{\"a\":tru"), &raw, "a", NULL));
    assert_false(ml_json_find(ML_STR("{\"b\":,\"a\":1}"), &raw, "a", NULL));
    assert_false(ml_json_find(ML_STR("{\"a\":{\"b\":1,\"c\":tru}}"), &raw, "a", "b", NULL));
    assert_str_eq(raw, "before");
}

static void test_find_before_the_broken_place_still_finds(void **state)
{
    (void)state;
    struct ml_str raw;
    assert_true(ml_json_find(ML_STR("{\"a\":1,\"b\":tru"), &raw, "a", NULL));
    assert_str_eq(raw, "1");
}

static void test_find_members_takes_several_at_once(void **state)
{
    (void)state;
    struct ml_json_wanted found[] = {
        {.name = "twice"}, {.name = "absent"}, {.name = "kind"}, {.name = "name"}};
    ml_json_find_members(object, found, ML_COUNT(found));
    assert_str_eq(found[0].raw, "{\"x\":2}");
    assert_str_eq(found[1].raw, "");
    assert_str_eq(found[2].raw, "\"Pod\"");
    assert_str_eq(found[3].raw, ""); /* it stands one level below */
    ml_json_find_members(ML_STR("{\"kind\":1,\"twice\":tru"), found, ML_COUNT(found));
    assert_str_eq(found[0].raw, "");
    assert_str_eq(found[2].raw, "1");
    ml_json_find_members(ML_STR("[\"kind\"]"), found, ML_COUNT(found));
    assert_str_eq(found[2].raw, "");
}

static void test_members_values_are_those_of_another_object(void **state)
{
    (void)state;
    ML_AUTO(ml_json_members_fini) struct ml_json_members wanted = {0};
    struct ml_err err = ML_ERR_INIT;
    struct ml_str values[3];
    assert_true(ml_json_members_read(&wanted, ML_STR("{\"a\":0,\"\\u0062\":0,\"c\":0}"), 0, &err));
    assert_true(ml_json_members_values(
        &wanted, ML_STR("{\"x\":[1],\"b\":{\"a\":1},\"a\":2,\"\\u0061\":3}"), values));
    assert_str_eq(values[0], "3"); /* the last one of two */
    assert_str_eq(values[1], "{\"a\":1}");
    assert_int_equal(values[2].len, 0);
    assert_false(ml_json_members_values(&wanted, ML_STR("[1]"), values));
    assert_false(ml_json_members_values(&wanted, ML_STR("{\"a\":1"), values));
}

static void test_find_string_gives_an_unescaped_copy(void **state)
{
    (void)state;
    ML_AUTO_FREE char *name = ml_json_find_string(object, "metadata", "name", NULL);
    assert_string_equal(name, "a\tb");
    assert_null(ml_json_find_string(object, "metadata", NULL));
    assert_null(ml_json_find_string(object, "absent", NULL));
    ML_AUTO_FREE char *empty = ml_json_find_string(ML_STR("{\"a\":\"\"}"), "a", NULL);
    assert_string_equal(empty, "");
}

static void test_to_string_takes_strings_only_and_appends(void **state)
{
    (void)state;
    struct ml_buf out = ML_BUF_INIT;
    ml_buf_puts(&out, "<");
    assert_true(ml_json_to_string(ML_STR("\"a\\u00e9\""), &out));
    static const char *const others[] = {"1", "null", "[\"a\"]", "", "\"a", "\"a\"x", "\"\\q\""};
    for (size_t i = 0; i < ML_COUNT(others); i++)
        assert_false(ml_json_to_string(ml_str_of(others[i]), &out));
    assert_string_equal(ml_buf_cstr(&out), "<a\u00e9");
    ml_buf_fini(&out);
}

static void test_reader_that_knows_the_spans_enters_and_leaves(void **state)
{
    (void)state;
    struct ml_str text = ML_STR(" {\"a\":{\"b\":[[1],{\"c\":2}]},\"d\":[{\"e\":{}},3] } ");
    ML_AUTO(ml_json_spans_fini) struct ml_json_spans spans = {NULL};
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    size_t span;
    ml_json_spans_read(&spans, text);
    ml_json_reader_init(&reader, text, 0);
    ml_json_reader_use(&reader, &spans, 0);
    assert_int_equal(ml_json_next(&reader), ML_JSON_OBJECT);
    assert_int_equal(ml_json_next(&reader), ML_JSON_KEY);
    assert_int_equal(ml_json_next(&reader), ML_JSON_OBJECT); /* entered, then left */
    struct ml_str raw = ml_json_opened(&reader, &span);
    assert_str_eq(raw, "{\"b\":[[1],{\"c\":2}]}");
    assert_int_equal(span, 1);
    ml_json_leave(&reader);
    assert_int_equal(reader.depth, 1);
    assert_int_equal(ml_json_next(&reader), ML_JSON_KEY);
    assert_str_eq(reader.text, "d");
    assert_int_equal(ml_json_next(&reader), ML_JSON_ARRAY);
    assert_str_eq(ml_json_skip(&reader), "{\"e\":{}}");
    assert_int_equal(ml_json_next(&reader), ML_JSON_INT);
    assert_int_equal(ml_json_next(&reader), ML_JSON_ARRAY_END);
    assert_int_equal(ml_json_next(&reader), ML_JSON_OBJECT_END);
    assert_int_equal(ml_json_next(&reader), ML_JSON_END);
    /* A part of the text alone; what is entered token by token keeps the count. */
    ml_json_reader_fini(&reader);
    ml_json_reader_init(&reader, raw, 0);
    ml_json_reader_use(&reader, &spans, 1);
    for (int i = 0; i < 4; i++)
        ml_json_next(&reader);
    assert_str_eq(ml_json_opened(&reader, &span), "[1]");
    ml_json_leave(&reader);
    assert_int_equal(ml_json_next(&reader), ML_JSON_OBJECT);
    assert_str_eq(ml_json_opened(&reader, &span), "{\"c\":2}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_follows_keys_and_indexes),
        cmocka_unit_test(test_find_of_duplicate_keys_takes_the_last),
        cmocka_unit_test(test_find_absent_leaves_the_result_alone),
        cmocka_unit_test(test_find_before_the_broken_place_still_finds),
        cmocka_unit_test(test_find_members_takes_several_at_once),
        cmocka_unit_test(test_members_values_are_those_of_another_object),
        cmocka_unit_test(test_find_string_gives_an_unescaped_copy),
        cmocka_unit_test(test_to_string_takes_strings_only_and_appends),
        cmocka_unit_test(test_reader_that_knows_the_spans_enters_and_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
