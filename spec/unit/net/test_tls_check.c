#include "unit.h"

#include "net/tls.h"

#include <stdio.h>

#define HOUR_S INT64_C(3600)

struct world {
    struct ml_clock_fake clock;
    struct ml_tls_identity one, two;
    struct ml_err err;
};

static int setup(void **state)
{
    struct world *world = ml_new(struct world);
    ml_clock_fake_init(&world->clock, 1000000000 * ML_NS_PER_S);
    const struct ml_tls_authority_opts opts = {.clock = &world->clock.clock, .valid_s = HOUR_S};
    assert_int_equal(ml_tls_authority_make(&opts, &world->one, &world->err), 0);
    assert_int_equal(ml_tls_authority_make(&opts, &world->two, &world->err), 0);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    ml_tls_identity_fini(&world->one);
    ml_tls_identity_fini(&world->two);
    free(world);
    return 0;
}

static int pair(struct world *world, const char *cert, const char *key,
                struct ml_tls_validity *validity)
{
    world->err = ML_ERR_INIT;
    return ml_tls_check_pair(ml_str_of(cert), ml_str_of(key), validity, &world->err);
}

static void test_tls_check_takes_a_pair_that_fits(void **state)
{
    struct world *world = *state;
    struct ml_tls_validity validity = {0};
    assert_int_equal(pair(world, world->one.cert_pem, world->one.key_pem, &validity), 0);
    assert_int_equal(validity.not_before_ns, (1000000000 - 300) * ML_NS_PER_S);
    assert_int_equal(validity.not_after_ns, (1000000000 + HOUR_S) * ML_NS_PER_S);
}

static void test_tls_check_refuses_a_pair_that_does_not(void **state)
{
    struct world *world = *state;
    struct ml_tls_validity validity;
    static const char encrypted[] =
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
        "DEK-Info: AES-128-CBC,00000000000000000000000000000000\n\nAAAA\n"
        "-----END EC PRIVATE KEY-----\n";
    assert_int_equal(pair(world, world->one.cert_pem, world->two.key_pem, &validity), ML_EINVALID);
    assert_non_null(strstr(world->err.message, "do not belong together"));
    assert_int_equal(pair(world, "", world->one.key_pem, &validity), ML_EINVALID);
    assert_int_equal(pair(world, world->one.cert_pem, "", &validity), ML_EINVALID);
    assert_int_equal(pair(world, world->one.cert_pem, encrypted, &validity), ML_EINVALID);
    assert_non_null(strstr(world->err.message, "the key cannot be read"));
}

static void test_tls_check_ca_wants_all_of_it(void **state)
{
    struct world *world = *state;
    ML_AUTO_FREE char *both = ml_asprintf("%s# a comment\n%s", world->one.ca_pem,
                                          world->two.ca_pem);
    size_t first_len = strlen(world->one.ca_pem), taken = 0;
    assert_int_equal(ml_tls_check_ca(ml_str_of(both), &world->err), 0);
    for (size_t len = 0; len < strlen(both); len++)
        taken += ml_tls_check_ca((struct ml_str){both, len}, &world->err) == 0;
    /* Cut between the two, or where the last line end is missing. */
    size_t harmless = strlen("# a comment\n-----BEGIN CERTIFICATE-----") + 3;
    assert_in_range(taken, 1, harmless);
    assert_int_equal(ml_tls_check_ca((struct ml_str){both, first_len / 2}, &world->err),
                     ML_EINVALID);
    assert_non_null(strstr(world->err.message, "the CA certificates cannot be read"));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_tls_check_takes_a_pair_that_fits),
        WITH(test_tls_check_refuses_a_pair_that_does_not),
        WITH(test_tls_check_ca_wants_all_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
