#include "unit.h"

#include "kube/object_diff.h"

#include <stdio.h>

#define HEAD "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":"

static struct ml_object *make(struct ml_dict *dict, const char *json)
{
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_object_new(dict, "v1", "Thing", ml_str_of(json), &object, &err) < 0)
        fail_msg("%s: %s", err.message, json);
    return object;
}

static void versions_differ(const char *old_head, const char *old_rest, const char *new_head,
                            const char *new_rest, unsigned parts, const char *fields)
{
    struct ml_dict *dict = ml_dict_new();
    ML_AUTO_FREE char *before = ml_asprintf("%s%s", old_head, old_rest);
    ML_AUTO_FREE char *after = ml_asprintf("%s%s", new_head, new_rest);
    struct ml_object *old = make(dict, before), *new = make(dict, after);
    ML_AUTO(ml_buf_fini) struct ml_buf named = ML_BUF_INIT;
    assert_int_equal(ml_object_diff(old, new, &named), parts);
    assert_string_equal(ml_buf_cstr(&named), fields);
    assert_int_equal(ml_object_diff(old, new, NULL), parts);
    ml_object_unref(old);
    ml_object_unref(new);
    ml_dict_unref(dict);
}

/* Compares two states, given as the texts behind the head: `parts` and `fields` must differ, for
 * versions of any length, numbers or not. */
static void differs(const char *old_rest, const char *new_rest, unsigned parts, const char *fields)
{
    versions_differ(HEAD "\"1\"", old_rest, HEAD "\"2\"", new_rest, parts, fields);
    versions_differ(HEAD "\"999\"", old_rest, HEAD "\"1000\"", new_rest, parts, fields);
    versions_differ(HEAD "\"v-\\\"1\"", old_rest, HEAD "\"1000\"", new_rest, parts, fields);
}

static void test_object_diff_of_a_version_alone_is_nothing(void **state)
{
    (void)state;
    differs("},\"spec\":{}}", "},\"spec\":{}}", 0, "");
}

static void test_object_diff_tells_the_parts_apart(void **state)
{
    (void)state;
    differs("},\"status\":{\"a\":1}}", "},\"status\":{\"a\":2}}", ML_PART_STATUS, "status.a");
    differs("}}", "},\"status\":{\"a\":{\"b\":1}}}", ML_PART_STATUS, "status.a.b");
    differs("}}", "},\"status\":{\"l\":[1,{\"x\":[{}]},[]],\"m\":{ },\"n\":2}}", ML_PART_STATUS,
            "status.l, status.m, status.n");
    differs("},\"data\":{\"x\":\"1\"}}", "},\"data\":{\"x\":\"2\"}}", ML_PART_SPEC, "data.x");
    differs("},\"spec\":{\"n\":1}}", "}}", ML_PART_SPEC, "spec");
    differs(",\"labels\":{\"a\":\"b\"}}}", "}}", ML_PART_LABELS, "metadata.labels");
    differs(",\"annotations\":{\"a\":\"b\"}}}", ",\"annotations\":{\"a\":\"c\",\"x.y/z\":\"d\"}}}",
            ML_PART_ANNOTATIONS, "metadata.annotations.a, metadata.annotations[x.y/z]");
    differs("}}", ",\"finalizers\":[\"a/b\"]}}", ML_PART_METADATA, "metadata.finalizers");
    differs("}}", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}", ML_PART_METADATA,
            "metadata.deletionTimestamp");
}

static void test_object_diff_adds_the_parts_up(void **state)
{
    (void)state;
    differs(",\"generation\":1},\"spec\":{\"n\":1}}",
            ",\"generation\":2},\"spec\":{\"n\":2},\"status\":{\"generation\":1}}",
            ML_PART_SPEC | ML_PART_GENERATION | ML_PART_STATUS, "spec.n, status.generation");
}

static void test_object_diff_names_three_fields(void **state)
{
    (void)state;
    differs("},\"spec\":{}}", "},\"spec\":{\"a\":1,\"b\":[2],\"c\":null,\"d\":4}}", ML_PART_SPEC,
            "spec.a, spec.b, spec.d");
    differs("},\"spec\":{}}", "},\"spec\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5}}", ML_PART_SPEC,
            "spec.a, spec.b, spec.c, …");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_diff_of_a_version_alone_is_nothing),
        cmocka_unit_test(test_object_diff_tells_the_parts_apart),
        cmocka_unit_test(test_object_diff_adds_the_parts_up),
        cmocka_unit_test(test_object_diff_names_three_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
