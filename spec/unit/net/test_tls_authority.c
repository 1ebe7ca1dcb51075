#include "unit.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls.h"

#define WALL_S INT64_C(1790000000)
#define DAY_S  (24 * 3600)

struct fixture {
    struct ml_clock_fake clock;
    struct ml_tls_identity identity;
    X509 *ca;
    X509 *cert;
};

static X509 *read_certificate(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(cert);
    return cert;
}

static int setup(void **state)
{
    static const char *const names[] = {"kubernetes.default.svc", "10.0.0.1"};
    struct fixture *f = ml_new(struct fixture);
    struct ml_err err = ML_ERR_INIT;
    ml_clock_fake_init(&f->clock, WALL_S * ML_NS_PER_S);
    assert_int_equal(
        ml_tls_authority_make(&(struct ml_tls_authority_opts){.clock = &f->clock.clock,
                                                              .valid_s = DAY_S,
                                                              .names = names,
                                                              .name_count = ML_COUNT(names)},
                              &f->identity, &err),
        0);
    f->ca = read_certificate(f->identity.ca_pem);
    f->cert = read_certificate(f->identity.cert_pem);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    X509_free(f->ca);
    X509_free(f->cert);
    ml_tls_identity_fini(&f->identity);
    free(f);
    return 0;
}

/* Returns a client's verdict on the certificate at that time: X509_V_OK, or an error. */
static int verify_at(struct fixture *f, time_t when)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    X509_STORE_add_cert(store, f->ca);
    X509_STORE_CTX_init(check, store, f->cert, NULL);
    X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(check), when);
    X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(check), X509_V_FLAG_X509_STRICT);
    X509_verify_cert(check);
    int result = X509_STORE_CTX_get_error(check);
    X509_STORE_CTX_free(check);
    X509_STORE_free(store);
    return result;
}

static void test_tls_authority_is_trusted_for_its_time(void **state)
{
    static const struct {
        int64_t at_s;
        int result;
    } cases[] = {
        {0, X509_V_OK},
        {-299, X509_V_OK},
        {-302, X509_V_ERR_CERT_NOT_YET_VALID},
        {DAY_S - 1, X509_V_OK},
        {DAY_S + 2, X509_V_ERR_CERT_HAS_EXPIRED},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++)
        assert_int_equal(verify_at(f, (time_t)(WALL_S + cases[i].at_s)), cases[i].result);
}

static void test_tls_authority_certifies_the_local_names_and_those_given(void **state)
{
    static const char *const hosts[] = {"localhost", "kubernetes.default.svc"};
    static const char *const addresses[] = {"127.0.0.1", "::1", "10.0.0.1"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(hosts); i++)
        assert_int_equal(X509_check_host(f->cert, hosts[i], 0, 0, NULL), 1);
    for (size_t i = 0; i < ML_COUNT(addresses); i++)
        assert_int_equal(X509_check_ip_asc(f->cert, addresses[i], 0), 1);
    assert_int_equal(X509_check_host(f->cert, "example.com", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(f->cert, "127.0.0.2", 0), 0);
}

static void test_tls_authority_makes_a_new_one_each_time(void **state)
{
    struct fixture *f = *state;
    struct ml_tls_identity other;
    struct ml_err err = ML_ERR_INIT;
    const struct ml_tls_authority_opts opts = {.clock = &f->clock.clock, .valid_s = DAY_S};
    assert_int_equal(ml_tls_authority_make(&opts, &other, &err), 0);
    assert_string_not_equal(other.ca_pem, f->identity.ca_pem);
    assert_string_not_equal(other.key_pem, f->identity.key_pem);
    ml_tls_identity_fini(&other);
    assert_null(other.key_pem);
}

static void test_tls_authority_refuses_names_that_are_none(void **state)
{
    static const char *const names[] = {"", "a b", "x\ny", "a,DNS:b", "1.2.3.4/8"};
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        struct ml_tls_identity none = {0};
        struct ml_err err = ML_ERR_INIT;
        const struct ml_tls_authority_opts opts = {
            .clock = &f->clock.clock, .valid_s = DAY_S, .names = &names[i], .name_count = 1};
        assert_int_equal(ml_tls_authority_make(&opts, &none, &err), ML_EINVALID);
        assert_null(none.ca_pem);
    }
}

static void test_tls_server_context_takes_a_matching_pair_only(void **state)
{
    struct fixture *f = *state;
    const struct {
        const char *cert;
        const char *key;
        int result;
    } cases[] = {
        {f->identity.cert_pem, f->identity.key_pem, 0},
        {f->identity.ca_pem, f->identity.key_pem, ML_EINVALID},
        {f->identity.cert_pem, f->identity.cert_pem, ML_EINVALID},
        {"", f->identity.key_pem, ML_EINVALID},
        {f->identity.cert_pem, "-----BEGIN PRIVATE KEY-----\n", ML_EINVALID},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        SSL_CTX *ctx = NULL;
        struct ml_err err = ML_ERR_INIT;
        assert_int_equal(
            ml_tls_server_context(ml_str_of(cases[i].cert), ml_str_of(cases[i].key), &ctx, &err),
            cases[i].result);
        assert_int_equal(ctx != NULL, cases[i].result == 0);
        SSL_CTX_free(ctx);
    }
}

#define AUTHORITY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AUTHORITY(test_tls_authority_is_trusted_for_its_time),
        AUTHORITY(test_tls_authority_certifies_the_local_names_and_those_given),
        AUTHORITY(test_tls_authority_makes_a_new_one_each_time),
        AUTHORITY(test_tls_authority_refuses_names_that_are_none),
        AUTHORITY(test_tls_server_context_takes_a_matching_pair_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
