/* That freed memory is overwritten cannot be seen from within: spec/host/secrets_spec.lua looks
 * from outside. */
#include "unit.h"

#include "base/wipe.h"

static void test_wiped_buffers_are_empty_and_usable(void **state)
{
    (void)state;
    struct ml_buf buf = ML_BUF_INIT;
    ml_wipe_buf(&buf);
    assert_true(ml_buf_puts(&buf, "secret"));
    ml_wipe_buf(&buf);
    assert_int_equal(buf.len, 0);
    assert_null(buf.ptr);
    assert_true(ml_buf_puts(&buf, "next"));
    assert_str_eq(ml_buf_str(&buf), "next");
    ml_buf_fini(&buf);
}

static void test_a_full_buffer_keeps_its_maximum(void **state)
{
    (void)state;
    struct ml_buf buf = {.len_max = 4};
    assert_false(ml_buf_puts(&buf, "secret"));
    ml_wipe_buf(&buf);
    assert_false(buf.failed);
    assert_int_equal(buf.len_max, 4);
}

static void test_texts_are_joined(void **state)
{
    (void)state;
    ML_AUTO_WIPE char *both = ml_join(ML_STR("Bearer "), ML_STR("token"));
    ML_AUTO_WIPE char *first = ml_join(ML_STR("a"), (struct ml_str){NULL, 0});
    ML_AUTO_WIPE char *none = ml_join((struct ml_str){NULL, 0}, (struct ml_str){NULL, 0});
    assert_string_equal(both, "Bearer token");
    assert_string_equal(first, "a");
    assert_string_equal(none, "");
}

static void test_nothing_is_wiped_as_nothing_is_freed(void **state)
{
    (void)state;
    ml_wipe_free(NULL);
    ml_wiping_free(NULL);
}

static void test_wiping_realloc_keeps_what_fits(void **state)
{
    (void)state;
    char *text = ml_wiping_realloc(NULL, 6);
    memcpy(text, "secret", 6);
    text = ml_wiping_realloc(text, 100000);
    assert_memory_equal(text, "secret", 6);
    text = ml_wiping_realloc(text, 3);
    assert_memory_equal(text, "sec", 3);
    ml_wiping_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wiped_buffers_are_empty_and_usable),
        cmocka_unit_test(test_a_full_buffer_keeps_its_maximum),
        cmocka_unit_test(test_texts_are_joined),
        cmocka_unit_test(test_nothing_is_wiped_as_nothing_is_freed),
        cmocka_unit_test(test_wiping_realloc_keeps_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
