#include "unit.h"

#include "codec/json_diff.h"

static void test_patch_has_the_operations_that_differ(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *patch;
    } cases[] = {
        {"{}", "{}", "[]"},
        {"{\"a\":1,\"b\":[1]}", "{\"b\":[1],\"a\":1}", "[]"},
        {"{\"a\":1}", "{\"a\":2}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]"},
        {"{\"a\":1}", "{\"a\":1.0}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1.0}]"},
        {"{\"a\":1}", "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]"},
        {"{}", "{\"a\":null}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]"},
        {"{\"a\":{\"b\":1,\"c\":{}}}", "{\"a\":{\"b\":2,\"c\":{}}}",
         "[{\"op\":\"replace\",\"path\":\"/a/b\",\"value\":2}]"},
        {"{\"a\":[1,2]}", "{\"a\":[1]}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":[1]}]"},
        {"{\"a\":{}}", "{\"a\":[]}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":[]}]"},
        {"{\"m\":{}}", "{\"m\":{\"x/y~z\":\"\\\"\"}}",
         "[{\"op\":\"add\",\"path\":\"/m/x~1y~0z\",\"value\":\"\\\"\"}]"},
        {"{\"m\":{\"a/b\":{\"c\":1}}}", "{\"m\":{\"a/b\":{\"c\":2}}}",
         "[{\"op\":\"replace\",\"path\":\"/m/a~1b/c\",\"value\":2}]"},
        {"{\"x\":1,\"y\":2}", "{\"z\":3}",
         "[{\"op\":\"remove\",\"path\":\"/x\"},{\"op\":\"remove\",\"path\":\"/y\"},"
         "{\"op\":\"add\",\"path\":\"/z\",\"value\":3}]"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf out = ML_BUF_INIT;
        struct ml_err err;
        assert_int_equal(
            ml_json_patch_diff(ml_str_of(cases[i].from), ml_str_of(cases[i].to), &out, &err), 0);
        assert_string_equal(ml_buf_cstr(&out), cases[i].patch);
        ml_buf_fini(&out);
    }
}

/* Below the depth limit an object is replaced as a whole. */
static void test_patch_of_deep_objects_replaces_them(void **state)
{
    (void)state;
    struct ml_buf from = ML_BUF_INIT, to = ML_BUF_INIT, out = ML_BUF_INIT;
    struct ml_err err;
    for (int i = 0; i < ML_JSON_PATCH_DEPTH_MAX + 2; i++) {
        ml_buf_puts(&from, "{\"a\":");
        ml_buf_puts(&to, "{\"a\":");
    }
    ml_buf_puts(&from, "1");
    ml_buf_puts(&to, "2");
    for (int i = 0; i < ML_JSON_PATCH_DEPTH_MAX + 2; i++) {
        ml_buf_puts(&from, "}");
        ml_buf_puts(&to, "}");
    }
    assert_int_equal(ml_json_patch_diff(ml_buf_str(&from), ml_buf_str(&to), &out, &err), 0);
    assert_string_equal(ml_buf_cstr(&out), "[{\"op\":\"replace\",\"path\":\"/a/a/a/a/a/a/a/a/a\","
                                           "\"value\":{\"a\":2}}]");
    ml_buf_fini(&from);
    ml_buf_fini(&to);
    ml_buf_fini(&out);
}

static void test_patch_that_is_too_large_is_refused_whole(void **state)
{
    (void)state;
    struct ml_buf out = ML_BUF_INIT;
    struct ml_err err;
    ml_buf_init(&out, 20);
    ml_buf_puts(&out, "before");
    assert_int_equal(ml_json_patch_diff(ML_STR("{}"), ML_STR("{\"a\":\"0123456789\"}"), &out, &err),
                     ML_ELIMIT);
    assert_int_equal(out.len, strlen("before"));
    ml_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patch_has_the_operations_that_differ),
        cmocka_unit_test(test_patch_of_deep_objects_replaces_them),
        cmocka_unit_test(test_patch_that_is_too_large_is_refused_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
