#include "unit.h"

#include "base/buf.h"
#include "kube/object.h"
#include "state/watch_event.h"

#define META "\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"resourceVersion\":\"7\"}"

static void test_watch_event_is_read_with_its_keys_in_any_order(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum watch_event_type type;
        const char *object;
    } rows[] = {
        {"{\"type\":\"ADDED\",\"object\":{}}", WATCH_ADDED, "{}"},
        {"{\"object\":{\"a\":[1,{}]},\"type\":\"MODIFIED\"}", WATCH_MODIFIED, "{\"a\":[1,{}]}"},
        {" { \"x\" : [ \"]\\\"\" ] , \"type\" : \"DELETED\" , \"object\" : {} } \r", WATCH_DELETED,
         "{}"},
        {"{\"type\":\"BOOKMARK\",\"object\":{\"a\":\"}\"}}", WATCH_BOOKMARK, "{\"a\":\"}\"}"},
        {"{\"type\":\"ERROR\",\"object\":{\"a\":\"\\\\\"}}", WATCH_ERROR, "{\"a\":\"\\\\\"}"},
        {"{\"type\":\"MOVED\",\"object\":{}}", WATCH_UNKNOWN, "{}"},
        {"{\"type\":\"added\",\"object\":{}}", WATCH_UNKNOWN, "{}"},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        struct watch_event event;
        struct ml_err err;
        assert_int_equal(watch_event_parse(ml_str_of(rows[i].line), &event, &err), 0);
        assert_int_equal(event.type, rows[i].type);
        assert_str_eq(event.object, rows[i].object);
    }
}

static void test_watch_event_line_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "<html>",
        "null",
        "[]",
        "{}",
        "{\"type\":\"ADDED\"}",
        "{\"object\":{}}",
        "{\"type\":1,\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":null}",
        "{\"type\":\"ADDED\",\"object\":[]}",
        "{\"type\":\"ADDED\",\"object\":}",
        "{\"type\":\"ADDED\",\"object\":{}",
        "{\"type\":\"ADDED\",\"object\":{\"a\":\"}",
        "{\"type\":\"ADDED\",\"object\":{\"a\":\"\\",
        "{\"type\":\"ADDED\",\"object\":{}}}",
        "{\"type\":\"ADDED\",\"object\":{}} {}",
        "{\"type\":\"ADDED\" \"object\":{}}",
        "{\"type\"",
        "{\"type\":",
        "{\"type",
        "{",
    };
    for (size_t i = 0; i < ML_COUNT(lines); i++) {
        struct watch_event event = {.type = WATCH_ERROR};
        struct ml_err err;
        assert_int_equal(watch_event_parse(ml_str_of(lines[i]), &event, &err), ML_EINVALID);
        assert_int_equal(event.type, WATCH_ERROR);
        assert_true(*err.message);
    }
}

static void test_watch_event_key_and_version_are_found_around_poison(void **state)
{
    (void)state;
    static const struct {
        const char *object, *key, *version;
    } rows[] = {
        {"{" META "}", "d/a", "7"},
        {"{" META ",\"x\":\"caf\xe9\"}", "d/a", "7"},
        {"{\"x\":\"\\ud83d\"," META "}", "d/a", "7"},
        {"{\"x\":nonsense," META "}", "d/a", "7"},
        {"{\"metadata\":{\"annotations\":{\"x\":\"\xff\"},\"name\":\"a\"}}", "a", NULL},
        {"{\"metadata\":{\"name\":\"a\",\"namespace\":\"\"}}", "a", NULL},
        {"{\"metadata\":{\"name\":\"\xff\",\"resourceVersion\":\"8\"}}", "", "8"},
        {"{\"metadata\":{\"name\":7,\"resourceVersion\":8}}", "", NULL},
        {"{\"metadata\":\"name\"}", "", NULL},
        {"{\"spec\":{" META "}}", "", NULL},
        {"{}", "", NULL},
        {"", "", NULL},
    };
    for (size_t i = 0; i < ML_COUNT(rows); i++) {
        ML_AUTO_FREE char *key = watch_event_key(ml_str_of(rows[i].object));
        ML_AUTO_FREE char *version = watch_event_version(ml_str_of(rows[i].object));
        assert_string_equal(key, rows[i].key);
        assert_string_equal(version ? version : "none", rows[i].version ? rows[i].version : "none");
    }
}

/* The scan without parsing reads the same as ml_object_new: of duplicate keys the last one with a
 * text, and a key may be written with escapes. */
static void test_watch_event_key_and_version_are_those_of_the_object(void **state)
{
    (void)state;
    static const char *const metadata[] = {
        "\"name\":\"b\",\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"7\"",
        "\"name\":\"a\",\"name\":3,\"namespace\":\"n\",\"resourceVersion\":\"7\"",
        "\"n\\u0061me\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"\\u0037\"",
        "\"name\":\"a\",\"namespace\":\"n\",\"resourceVersion\":\"7\",\"resourceVersion\":[]",
    };
    for (size_t i = 0; i < ML_COUNT(metadata); i++) {
        ML_AUTO_FREE char *object = ml_asprintf("{\"spec\":{\"metadata\":{\"name\":\"x\"}},"
                                                "\"metadata\":{\"uid\":\"u\",%s}}",
                                                metadata[i]);
        ML_AUTO_FREE char *key = watch_event_key(ml_str_of(object));
        ML_AUTO_FREE char *version = watch_event_version(ml_str_of(object));
        struct ml_dict *dict = ml_dict_new();
        struct ml_object *made = NULL;
        struct ml_err err;
        assert_int_equal(ml_object_new(dict, "v1", "Pod", ml_str_of(object), &made, &err), 0);
        assert_str_eq(ml_object_key(made), key);
        assert_str_eq(ml_object_rv(made), version);
        assert_string_equal(key, "n/a");
        ml_object_unref(made);
        ml_dict_unref(dict);
    }
}

static void test_watch_event_nested_without_end_is_framed(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    ml_buf_puts(&line, "{\"type\":\"ADDED\",\"object\":{\"x\":");
    for (int i = 0; i < DEPTH; i++)
        ml_buf_puts(&line, "{\"a\":[");
    for (int i = 0; i < DEPTH; i++)
        ml_buf_puts(&line, "]}");
    ml_buf_puts(&line, "," META "}}");
    struct watch_event event;
    struct ml_err err;
    assert_int_equal(watch_event_parse(ml_buf_str(&line), &event, &err), 0);
    ML_AUTO_FREE char *key = watch_event_key(event.object);
    assert_string_equal(key, "d/a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watch_event_is_read_with_its_keys_in_any_order),
        cmocka_unit_test(test_watch_event_line_that_is_none_is_refused),
        cmocka_unit_test(test_watch_event_key_and_version_are_found_around_poison),
        cmocka_unit_test(test_watch_event_key_and_version_are_those_of_the_object),
        cmocka_unit_test(test_watch_event_nested_without_end_is_framed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
