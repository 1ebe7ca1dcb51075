#include "unit.h"

#include "codec/base64.h"

static const struct {
    const char *bytes, *text;
} vectors[] = {
    /* RFC 4648, section 10. */
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xfe", "+//+"},
};

static void test_base64_follows_the_rfc_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < ML_COUNT(vectors); i++) {
        struct ml_buf out = ML_BUF_INIT;
        assert_true(ml_base64_encode(ml_str_of(vectors[i].bytes), &out));
        assert_string_equal(ml_buf_cstr(&out), vectors[i].text);
        ml_buf_clear(&out);
        assert_true(ml_base64_decode(ml_str_of(vectors[i].text), &out));
        assert_string_equal(ml_buf_cstr(&out), vectors[i].bytes);
        ml_buf_fini(&out);
    }
}

static void test_base64_line_ends_and_spaces_are_skipped(void **state)
{
    (void)state;
    struct ml_buf out = ML_BUF_INIT;
    assert_true(ml_base64_decode(ML_STR(" Zm\r\n9v\nYg= =\n"), &out));
    assert_string_equal(ml_buf_cstr(&out), "foob");
    ml_buf_fini(&out);
}

static void test_base64_anything_else_is_refused_and_leaves_the_output(void **state)
{
    (void)state;
    static const char *const bad[] = {"Z",
                                      "Zg",
                                      "Zg=",
                                      "Zm9",
                                      "Zm9v=",
                                      "=",
                                      "====",
                                      "Z===",
                                      "Zg==Zg==",
                                      "Zg=a",
                                      "Zm9-",
                                      "Zm9_",
                                      "Zm9v!",
                                      "Zm\t9v",
                                      "Zm9vYg===",
                                      "Zg==x",
                                      "\xff\xff\xff\xff"};
    struct ml_buf out = ML_BUF_INIT;
    ml_buf_puts(&out, "kept");
    for (size_t i = 0; i < ML_COUNT(bad); i++)
        assert_false(ml_base64_decode(ml_str_of(bad[i]), &out));
    assert_false(ml_base64_decode(ML_STR("Zm\0v"), &out));
    assert_string_equal(ml_buf_cstr(&out), "kept");
    ml_buf_fini(&out);
}

static void test_base64_strict_takes_only_what_is_written(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "Z",    "Zg",       "Zg=",   "Zh==",   "Zm9=", "====", "Z===",
        "Zg= ", "Zg==Zg==", " Zg==", "Zm\n9v", "Zm9-", "=Zm9", "\xff==="};
    struct ml_buf out = ML_BUF_INIT;
    struct ml_err err;
    ml_buf_puts(&out, "kept");
    for (size_t i = 0; i < ML_COUNT(bad); i++)
        assert_int_equal(ml_base64_decode_strict(ml_str_of(bad[i]), &out, &err), ML_EINVALID);
    assert_string_equal(ml_buf_cstr(&out), "kept");
    for (size_t i = 0; i < ML_COUNT(vectors); i++) {
        ml_buf_clear(&out);
        assert_int_equal(ml_base64_decode_strict(ml_str_of(vectors[i].text), &out, &err), 0);
        assert_string_equal(ml_buf_cstr(&out), vectors[i].bytes);
    }
    ml_buf_fini(&out);
    ml_buf_init(&out, 2);
    assert_int_equal(ml_base64_decode_strict(ML_STR("Zm9v"), &out, &err), ML_ELIMIT);
    ml_buf_fini(&out);
}

static void test_base64_every_byte_survives_the_round(void **state)
{
    (void)state;
    char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    for (size_t len = 0; len <= sizeof bytes; len++) {
        struct ml_buf text = ML_BUF_INIT, back = ML_BUF_INIT;
        assert_true(ml_base64_encode((struct ml_str){bytes, len}, &text));
        assert_true(ml_base64_decode(ml_buf_str(&text), &back));
        assert_true(ml_str_eq(ml_buf_str(&back), (struct ml_str){bytes, len}));
        ml_buf_fini(&text);
        ml_buf_fini(&back);
    }
}

static void test_base64_a_full_buffer_is_told(void **state)
{
    (void)state;
    struct ml_buf out;
    ml_buf_init(&out, 3);
    assert_false(ml_base64_encode(ML_STR("foo"), &out));
    ml_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_follows_the_rfc_both_ways),
        cmocka_unit_test(test_base64_line_ends_and_spaces_are_skipped),
        cmocka_unit_test(test_base64_anything_else_is_refused_and_leaves_the_output),
        cmocka_unit_test(test_base64_strict_takes_only_what_is_written),
        cmocka_unit_test(test_base64_every_byte_survives_the_round),
        cmocka_unit_test(test_base64_a_full_buffer_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
