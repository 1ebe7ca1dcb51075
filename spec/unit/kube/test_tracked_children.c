/* The annotation that says whose an object is that has no owner reference. */
#include <stdio.h>

#include "unit.h"

#include "kube/object.h"

static const char *const none[] = {NULL};

static struct ml_object *object_of(struct ml_dict *dict, const char *annotations)
{
    struct ml_object *object;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *json = ml_asprintf(
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\",\"namespace\":\"a\","
        "\"uid\":\"u1\",\"resourceVersion\":\"1\"%s}}",
        annotations);
    if (ml_object_new(dict, "", "", ml_str_of(json), &object, &err) < 0)
        fail_msg("%s", err.message);
    return object;
}

static void test_tracked_children_mark_leads_to_the_owner(void **state)
{
    (void)state;
    struct ml_dict *dict = ml_dict_new();
    ML_AUTO(ml_buf_fini) struct ml_buf mark = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf key = ML_BUF_INIT;
    struct ml_object *owner = object_of(dict, "");
    ml_tracked_mark("site", owner, &mark);
    assert_string_equal(ml_buf_cstr(&mark), "site a/x u1");
    ML_AUTO_FREE char *annotations = ml_asprintf(",\"annotations\":{\"moonloop.dev/owner\":\"%s\"}",
                                                 ml_buf_cstr(&mark));
    struct ml_object *child = object_of(dict, annotations);
    assert_true(ml_tracked_key(child, "site", none, &key));
    assert_string_equal(ml_buf_cstr(&key), "a/x");
    assert_false(ml_tracked_key(child, "sit", none, &key));
    assert_false(ml_tracked_key(owner, "site", none, &key));
    static const char *const formerly[] = {"page", "site", NULL};
    ml_buf_clear(&key);
    assert_true(ml_tracked_key(child, "web", formerly, &key));
    assert_string_equal(ml_buf_cstr(&key), "a/x");
    ml_object_unref(owner);
    ml_object_unref(child);
    ml_dict_unref(dict);
}

static void test_tracked_children_mark_may_be_anything(void **state)
{
    (void)state;
    static const char *const marks[] = {
        "\"\"", "\"site\"", "\"site a/x\"", "\"site  u\"", "\" a/x u\"", "\"site\\ta/x u\"",
        "7",    "null",     "{}",           "[]",
    };
    struct ml_dict *dict = ml_dict_new();
    for (size_t i = 0; i < ML_COUNT(marks); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf key = ML_BUF_INIT;
        ML_AUTO_FREE char *annotations = ml_asprintf(",\"annotations\":{\"moonloop.dev/owner\":%s}",
                                                     marks[i]);
        struct ml_object *child = object_of(dict, annotations);
        if (ml_tracked_key(child, "site", none, &key))
            fail_msg("%s leads to %s", marks[i], ml_buf_cstr(&key));
        ml_object_unref(child);
    }
    ml_dict_unref(dict);
}

/* Nobody checks an annotation: a name in it may be longer than any key, or none at all. */
static void test_tracked_children_owner_that_no_object_can_be_is_none(void **state)
{
    (void)state;
    ML_AUTO(ml_buf_fini) struct ml_buf long_name = ML_BUF_INIT;
    struct ml_dict *dict = ml_dict_new();
    for (int i = 0; i < 70000; i++)
        ml_buf_putc(&long_name, 'x');
    const char *const owners[][2] = {
        {"a/", ml_buf_cstr(&long_name)},
        {ml_buf_cstr(&long_name), "/x"},
        {"a/x/", ml_buf_cstr(&long_name)},
        {"a/", ""},
        {"/", "x"},
        {"a_b", "/x"},
        {"a/", ".."},
    };
    for (size_t i = 0; i < ML_COUNT(owners); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf key = ML_BUF_INIT;
        ML_AUTO_FREE char *annotations = ml_asprintf(
            ",\"annotations\":{\"moonloop.dev/owner\":\"site %s%s u1\"}", owners[i][0],
            owners[i][1]);
        struct ml_object *child = object_of(dict, annotations);
        if (ml_tracked_key(child, "site", none, &key))
            fail_msg("owner %zu leads to a key of %zu bytes", i, key.len);
        ml_object_unref(child);
    }
    ml_dict_unref(dict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tracked_children_mark_leads_to_the_owner),
        cmocka_unit_test(test_tracked_children_mark_may_be_anything),
        cmocka_unit_test(test_tracked_children_owner_that_no_object_can_be_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
