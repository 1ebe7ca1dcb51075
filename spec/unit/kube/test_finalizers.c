/* The list of finalizers in an object's metadata. */
#include "unit.h"

#include "kube/object.h"

#define OURS "moonloop.dev/one"

static struct ml_object *make(const char *finalizers)
{
    struct ml_dict *dict = ml_dict_new();
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *json = ml_asprintf("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
                                          "\"resourceVersion\":\"7\"%s%s}}",
                                          *finalizers ? ",\"finalizers\":" : "", finalizers);
    assert_int_equal(ml_object_new(dict, "v1", "Thing", ml_str_of(json), &object, &err), 0);
    ml_dict_unref(dict);
    return object;
}

static void test_finalizers_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        bool any, ours;
    } cases[] = {
        {"", false, false},
        {"[]", false, false},
        {"null", false, false},
        {"\"" OURS "\"", false, false},
        {"{\"a\":1}", false, false},
        {"[\"" OURS "\"]", true, true},
        {"[\"a/b\",\"" OURS "\"]", true, true},
        {"[ \"moonloop\\u002edev/one\" ]", true, true},
        {"[\"a/b\"]", true, false},
        {"[\"" OURS "2\",\"x" OURS "\"]", true, false},
        {"[1,\"" OURS "\"]", true, false}, /* no list of names */
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_object *object = make(cases[i].list);
        assert_int_equal(ml_object_has_finalizers(object), cases[i].any);
        assert_int_equal(ml_finalizers_have(object, ML_STR(OURS)), cases[i].ours);
        ml_object_unref(object);
    }
}

static void assert_patch(const char *list, bool add, const char *want)
{
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    struct ml_object *object = make(list);
    ML_AUTO_FREE char *whole = ml_asprintf(
        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"9\",\"finalizers\":%s}}", want);
    ml_finalizers_patch(object, ML_STR("9"), ML_STR(OURS), NULL, add, &patch);
    assert_string_equal(ml_buf_cstr(&patch), whole);
    ml_object_unref(object);
}

static void test_finalizers_patch_leaves_those_of_others_in_their_order(void **state)
{
    (void)state;
    assert_patch("", true, "[\"" OURS "\"]");
    assert_patch("[\"b/b\",\"a/a\"]", true, "[\"b/b\",\"a/a\",\"" OURS "\"]");
    assert_patch("[\"b/b\",\"" OURS "\",\"a/a\"]", true, "[\"b/b\",\"a/a\",\"" OURS "\"]");
    assert_patch("[\"b/b\",\"" OURS "\",\"a/a\"]", false, "[\"b/b\",\"a/a\"]");
    assert_patch("[\"" OURS "\"]", false, "[]");
    assert_patch("[\"" OURS "\",\"" OURS "\"]", false, "[]");
    assert_patch("[\"a\\\"/a\"]", true, "[\"a\\\"/a\",\"" OURS "\"]");
}

static void test_finalizers_of_former_names_go_with_the_patch(void **state)
{
    (void)state;
    static const char *const former[] = {"moonloop.dev/zero", "moonloop.dev/nil", NULL};
    struct ml_object *object = make("[\"moonloop.dev/nil\",\"a/a\",\"moonloop.dev/zero\"]");
    ML_AUTO(ml_buf_fini) struct ml_buf patch = ML_BUF_INIT;
    assert_true(ml_finalizers_have_any(object, former));
    assert_false(ml_finalizers_have_any(object, former + 2));
    ml_finalizers_patch(object, ML_STR("9"), ML_STR(OURS), former, true, &patch);
    assert_string_equal(ml_buf_cstr(&patch),
                        "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"9\","
                        "\"finalizers\":[\"a/a\",\"" OURS "\"]}}");
    ml_object_unref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finalizers_of_former_names_go_with_the_patch),
        cmocka_unit_test(test_finalizers_are_found),
        cmocka_unit_test(test_finalizers_patch_leaves_those_of_others_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
