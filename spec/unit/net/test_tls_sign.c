#include "unit.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/tls.h"

#define WALL_S INT64_C(1790000000)
#define DAY_S  (24 * 3600)

struct fixture {
    struct ml_clock_fake clock;
    struct ml_tls_authority *authority;
    EVP_PKEY *key;
};

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    struct ml_err err = ML_ERR_INIT;
    ml_clock_fake_init(&f->clock, WALL_S * ML_NS_PER_S);
    assert_int_equal(ml_tls_authority_new(&f->clock.clock, &f->authority, &err), 0);
    f->key = EVP_EC_gen("P-256");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_tls_authority_free(f->authority);
    EVP_PKEY_free(f->key);
    free(f);
    return 0;
}

/* A request of O=developers, CN=jane that wishes for extensions, "NID=VALUE" each. */
static struct ml_str make_request(struct fixture *f, const int *nids, const char *const *values,
                                  size_t count)
{
    X509_REQ *request = X509_REQ_new();
    X509_NAME *subject = X509_NAME_new();
    STACK_OF(X509_EXTENSION) *extensions = sk_X509_EXTENSION_new_null();
    X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const unsigned char *)"developers", -1,
                               -1, 0);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)"jane", -1, -1,
                               0);
    X509_REQ_set_subject_name(request, subject);
    for (size_t i = 0; i < count; i++)
        sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(NULL, NULL, nids[i], values[i]));
    X509_REQ_add_extensions(request, extensions);
    X509_REQ_set_pubkey(request, f->key);
    X509_REQ_sign(request, f->key, EVP_sha256());
    unsigned char *der = NULL;
    int len = i2d_X509_REQ(request, &der);
    assert_true(len > 0);
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
    X509_NAME_free(subject);
    X509_REQ_free(request);
    return (struct ml_str){(const char *)der, (size_t)len};
}

static void free_request(struct ml_str der)
{
    OPENSSL_free((void *)(uintptr_t)der.ptr);
}

static struct ml_tls_order order_of(struct ml_str request, const struct ml_str *usages,
                                    size_t count)
{
    return (struct ml_tls_order){.request = request,
                                 .not_before_s = WALL_S - 300,
                                 .not_after_s = WALL_S + DAY_S,
                                 .usages = usages,
                                 .usage_count = count};
}

static X509 *read_certificate(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(cert);
    return cert;
}

static X509 *sign(struct fixture *f, const struct ml_tls_order *order)
{
    struct ml_buf pem = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (ml_tls_authority_sign(f->authority, order, &pem, &err) < 0)
        fail_msg("%s", err.message);
    X509 *cert = read_certificate(ml_buf_cstr(&pem));
    ml_buf_fini(&pem);
    return cert;
}

static void test_tls_sign_takes_subject_names_and_key_and_no_other_wish(void **state)
{
    static const int nids[] = {NID_basic_constraints, NID_key_usage, NID_ext_key_usage,
                               NID_subject_alt_name};
    static const char *const values[] = {"critical,CA:TRUE", "keyCertSign", "serverAuth",
                                         "DNS:a.example,IP:10.0.0.9,RID:1.2.3"};
    const struct ml_str usages[] = {ML_STR("client auth"), ML_STR("digital signature"),
                                    ML_STR("signing")};
    struct fixture *f = *state;
    struct ml_str request = make_request(f, nids, values, ML_COUNT(nids));
    struct ml_tls_order order = order_of(request, usages, ML_COUNT(usages));
    X509 *cert = sign(f, &order), *ca = read_certificate(ml_tls_authority_pem(f->authority));
    char *subject = X509_NAME_oneline(X509_get_subject_name(cert), NULL, 0);
    assert_string_equal(subject, "/O=developers/CN=jane");
    assert_int_equal(X509_check_ca(cert), 0);
    assert_int_equal(X509_get_key_usage(cert), KU_DIGITAL_SIGNATURE);
    assert_int_equal(X509_get_extended_key_usage(cert), XKU_SSL_CLIENT);
    assert_int_equal(X509_check_host(cert, "a.example", 0, 0, NULL), 1);
    assert_int_equal(X509_check_ip_asc(cert, "10.0.0.9", 0), 1);
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    assert_int_equal(sk_GENERAL_NAME_num(names), 2);
    assert_int_equal(EVP_PKEY_eq(X509_get0_pubkey(cert), f->key), 1);
    assert_int_equal(X509_verify(cert, X509_get0_pubkey(ca)), 1);
    GENERAL_NAMES_free(names);
    OPENSSL_free(subject);
    X509_free(ca);
    X509_free(cert);
    free_request(request);
}

static void assert_ends(struct fixture *f, struct ml_tls_order *order, int64_t not_after_s,
                        int64_t wanted_s)
{
    order->not_after_s = not_after_s;
    X509 *cert = sign(f, order);
    time_t before = (time_t)(WALL_S - 300), after = (time_t)wanted_s;
    assert_int_equal(X509_cmp_time(X509_get0_notBefore(cert), &before), -1); /* at or before */
    before--;
    assert_int_equal(X509_cmp_time(X509_get0_notBefore(cert), &before), 1);
    assert_int_equal(X509_cmp_time(X509_get0_notAfter(cert), &after), -1);
    after--;
    assert_int_equal(X509_cmp_time(X509_get0_notAfter(cert), &after), 1);
    X509_free(cert);
}

static void test_tls_sign_ends_when_told_and_never_after_the_authority(void **state)
{
    const struct ml_str usage = ML_STR("any");
    struct fixture *f = *state;
    struct ml_str request = make_request(f, NULL, NULL, 0);
    struct ml_tls_order order = order_of(request, &usage, 1);
    assert_ends(f, &order, WALL_S + 600, WALL_S + 600);
    assert_ends(f, &order, WALL_S + INT64_C(20) * 365 * DAY_S, WALL_S + INT64_C(3650) * DAY_S);
    free_request(request);
}

static void test_tls_sign_refuses_what_it_does_not_know(void **state)
{
    const struct ml_str good = ML_STR("client auth"), bad = ML_STR("world peace");
    struct fixture *f = *state;
    struct ml_str request = make_request(f, NULL, NULL, 0);
    char *broken = ml_strndup(request.ptr, request.len), *longer = ml_zalloc(request.len + 1);
    broken[request.len - 3] ^= 1;
    memcpy(longer, request.ptr, request.len);
    const struct {
        struct ml_str request;
        const struct ml_str *usage;
        const char *message;
    } cases[] = {
        {request, &bad, "unrecognized usage values: [\"world peace\"]"},
        {{broken, request.len}, &good, "unable to verify certificate request signature"},
        {{longer, request.len + 1}, &good, "unable to parse certificate request"},
        {ML_STR("x"), &good, "unable to parse certificate request"},
        {ML_STR(""), &good, "unable to parse certificate request"},
    };
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_buf pem = ML_BUF_INIT;
        struct ml_err err = ML_ERR_INIT;
        struct ml_tls_order order = order_of(cases[i].request, cases[i].usage, 1);
        assert_int_equal(ml_tls_authority_sign(f->authority, &order, &pem, &err), ML_EINVALID);
        assert_non_null(strstr(err.message, cases[i].message));
        assert_int_equal(pem.len, 0);
    }
    free(broken);
    free(longer);
    free_request(request);
}

/* ---- in a folder ---- */

static char *open_pem(struct fixture *f, const char *folder)
{
    struct ml_tls_authority *authority = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_tls_authority_open(folder, &f->clock.clock, &authority, &err) < 0)
        return ml_asprintf("error: %s", err.message);
    char *pem = ml_strdup(ml_tls_authority_pem(authority));
    ml_tls_authority_free(authority);
    return pem;
}

static void test_tls_authority_in_a_folder_is_the_same_until_it_expires(void **state)
{
    struct fixture *f = *state;
    char folder[] = "/tmp/moonloop-%n%s-XXXXXX"; /* a name is no format */
    assert_non_null(mkdtemp(folder));
    char *key = ml_asprintf("%s/ca.key", folder), *cert = ml_asprintf("%s/ca.crt", folder);
    char *first = open_pem(f, folder), *again = open_pem(f, folder);
    struct stat about;
    assert_string_equal(first, again);
    assert_int_equal(stat(key, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    ml_clock_fake_advance(&f->clock, INT64_C(3651) * DAY_S * ML_NS_PER_S);
    char *later = open_pem(f, folder);
    assert_string_not_equal(first, later);
    assert_int_equal(truncate(key, 10), 0);
    char *broken = open_pem(f, folder);
    assert_non_null(strstr(broken, "the key cannot be read"));
    assert_non_null(strstr(broken, folder));
    unlink(key);
    unlink(cert);
    rmdir(folder);
    char *none = open_pem(f, folder);
    assert_non_null(strstr(none, "cannot be written"));
    char *const texts[] = {key, cert, first, again, later, broken, none};
    for (size_t i = 0; i < ML_COUNT(texts); i++)
        free(texts[i]);
}

#define SIGN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIGN(test_tls_sign_takes_subject_names_and_key_and_no_other_wish),
        SIGN(test_tls_sign_ends_when_told_and_never_after_the_authority),
        SIGN(test_tls_sign_refuses_what_it_does_not_know),
        SIGN(test_tls_authority_in_a_folder_is_the_same_until_it_expires),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
