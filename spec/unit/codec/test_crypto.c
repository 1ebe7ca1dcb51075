#include "unit.h"

#include "codec/crypto.h"

static void expect_hex(const unsigned char *bytes, size_t len, const char *want)
{
    struct ml_buf text = ML_BUF_INIT;
    assert_true(ml_hex_encode((struct ml_str){(const char *)bytes, len}, &text));
    assert_string_equal(ml_buf_cstr(&text), want);
    ml_buf_fini(&text);
}

static void test_crypto_digests_are_those_of_the_standards(void **state)
{
    (void)state;
    unsigned char digest[ML_SHA256_LEN];
    ml_sha256(ML_STR("abc"), digest);
    expect_hex(digest, sizeof digest,
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ml_sha256((struct ml_str){NULL, 0}, digest);
    expect_hex(digest, sizeof digest,
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ml_hmac_sha256(ML_STR("Jefe"), ML_STR("what do ya want for nothing?"), digest);
    expect_hex(digest, sizeof digest,
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    ml_hmac_sha256((struct ml_str){NULL, 0}, (struct ml_str){NULL, 0}, digest);
    expect_hex(digest, sizeof digest,
               "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void draw(struct ml_random *random, unsigned char out[21])
{
    struct ml_err err;
    assert_int_equal(ml_secret_bytes(random, out, 21, &err), 0);
}

static void test_crypto_secrets_are_repeated_by_a_seed(void **state)
{
    (void)state;
    unsigned char first[21], second[21], other[21];
    struct ml_random random;
    ml_random_init(&random, 7);
    draw(&random, first);
    draw(&random, other);
    assert_memory_not_equal(first, other, sizeof first);
    ml_random_init(&random, 7);
    draw(&random, second);
    assert_memory_equal(first, second, sizeof first);
    ml_random_init(&random, 8);
    draw(&random, other);
    assert_memory_not_equal(first, other, sizeof first);
}

/* With any state: knowing the state must not be enough to know the secret. */
static void test_crypto_secrets_of_a_real_process_are_not_those_of_its_state(void **state)
{
    (void)state;
    unsigned char first[21], second[21];
    struct ml_random random, child;
    ml_random_init_real(&random);
    random.state = 7;
    draw(&random, first);
    assert_int_equal(random.state, 7);
    draw(&random, second);
    assert_memory_not_equal(first, second, sizeof first);
    ml_random_init_child(&child, &random);
    uint64_t seed = child.state;
    draw(&child, first);
    assert_int_equal(child.state, seed);
    ml_random_init(&random, 7);
    ml_random_init_child(&child, &random);
    seed = child.state;
    draw(&child, first);
    assert_int_not_equal(child.state, seed);
}

static void test_crypto_a_full_buffer_is_told(void **state)
{
    (void)state;
    struct ml_buf text;
    ml_buf_init(&text, 5);
    assert_false(ml_hex_encode(ML_STR("abc"), &text));
    ml_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crypto_digests_are_those_of_the_standards),
        cmocka_unit_test(test_crypto_secrets_are_repeated_by_a_seed),
        cmocka_unit_test(test_crypto_secrets_of_a_real_process_are_not_those_of_its_state),
        cmocka_unit_test(test_crypto_a_full_buffer_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
