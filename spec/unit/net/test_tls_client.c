#include "unit.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls.h"

#define WALL_S INT64_C(1790000000)

/* The certificate that a client shows. */
struct shown {
    const char *const *subject; /* pairs, ended by NULL */
    const char *usage;          /* NULL: no such extension */
    int64_t from_s, till_s;     /* from WALL_S */
    bool by_itself;             /* not signed by the authority */
};

struct fixture {
    struct ml_clock_fake clock;
    struct ml_tls_identity identity;
    struct ml_tls_clients *clients;
    X509 *ca;
    EVP_PKEY *ca_key;
    SSL_CTX *server;
    SSL *ssl, *peer;
};

/* The unit signs by itself, so that it can sign what the authority would not. */
static void make_ca(struct fixture *f, struct ml_buf *pem)
{
    f->ca_key = EVP_EC_gen("P-256");
    f->ca = X509_new();
    X509_set_version(f->ca, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(f->ca), 1);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(f->ca), "CN", MBSTRING_UTF8,
                               (const unsigned char *)"ca", -1, -1, 0);
    X509_set_issuer_name(f->ca, X509_get_subject_name(f->ca));
    ASN1_TIME_set(X509_getm_notBefore(f->ca), (time_t)WALL_S - 10000);
    ASN1_TIME_set(X509_getm_notAfter(f->ca), (time_t)WALL_S + 1000000);
    X509_set_pubkey(f->ca, f->ca_key);
    X509_EXTENSION *is_ca = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "CA:TRUE");
    X509_add_ext(f->ca, is_ca, -1);
    X509_EXTENSION_free(is_ca);
    X509_sign(f->ca, f->ca_key, EVP_sha256());
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, f->ca);
    char *text = NULL;
    long len = BIO_get_mem_data(bio, &text);
    ml_buf_append(pem, text, (size_t)len);
    BIO_free(bio);
}

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    struct ml_err err = ML_ERR_INIT;
    struct ml_buf ca = ML_BUF_INIT;
    ml_clock_fake_init(&f->clock, WALL_S * ML_NS_PER_S);
    make_ca(f, &ca);
    const struct ml_tls_authority_opts opts = {.clock = &f->clock.clock, .valid_s = 3600};
    assert_int_equal(ml_tls_authority_make(&opts, &f->identity, &err), 0);
    assert_int_equal(ml_tls_server_context(ml_str_of(f->identity.cert_pem),
                                           ml_str_of(f->identity.key_pem), &f->server, &err),
                     0);
    assert_int_equal(ml_tls_ask_clients(f->server, ml_buf_str(&ca), &err), 0);
    assert_int_equal(ml_tls_clients_new(ml_buf_str(&ca), &f->clock.clock, &f->clients, &err), 0);
    ml_buf_fini(&ca);
    *state = f;
    return 0;
}

static void hang_up(struct fixture *f)
{
    SSL_free(f->ssl);
    SSL_free(f->peer);
    f->ssl = f->peer = NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    hang_up(f);
    ml_tls_clients_free(f->clients);
    ml_tls_identity_fini(&f->identity);
    SSL_CTX_free(f->server);
    X509_free(f->ca);
    EVP_PKEY_free(f->ca_key);
    free(f);
    return 0;
}

static void give_certificate(struct fixture *f, SSL_CTX *ctx, const struct shown *shown)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 2);
    for (const char *const *part = shown->subject; *part; part += 2)
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), part[0], MBSTRING_UTF8,
                                   (const unsigned char *)part[1], -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(shown->by_itself ? cert : f->ca));
    ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(WALL_S + shown->from_s));
    ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(WALL_S + shown->till_s));
    X509_set_pubkey(cert, key);
    if (shown->usage) {
        X509_EXTENSION *usage = X509V3_EXT_conf_nid(NULL, NULL, NID_ext_key_usage, shown->usage);
        X509_add_ext(cert, usage, -1);
        X509_EXTENSION_free(usage);
    }
    X509_sign(cert, shown->by_itself ? key : f->ca_key, EVP_sha256());
    assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* A handshake in memory. */
static void call_server(struct fixture *f, const struct shown *shown)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    BIO *ours = NULL, *theirs = NULL;
    hang_up(f);
    if (shown)
        give_certificate(f, ctx, shown);
    BIO_new_bio_pair(&ours, 0, &theirs, 0);
    f->ssl = SSL_new(f->server);
    f->peer = SSL_new(ctx);
    SSL_set_bio(f->ssl, ours, ours);
    SSL_set_bio(f->peer, theirs, theirs);
    for (int i = 0; i < 10 && !(SSL_is_init_finished(f->ssl) && SSL_is_init_finished(f->peer));
         i++) {
        SSL_connect(f->peer);
        SSL_accept(f->ssl);
    }
    assert_true(SSL_is_init_finished(f->ssl));
    SSL_CTX_free(ctx);
}

static const char *const jane[] = {"O",       "developers", "CN",   "x", "O",
                                   "testers", "CN",         "jane", NULL};

static void test_tls_client_is_its_subject(void **state)
{
    static const struct shown shown = {jane, "clientAuth", 0, 60, false};
    struct fixture *f = *state;
    struct ml_tls_client client;
    call_server(f, &shown);
    assert_true(ml_tls_client_of(f->clients, f->ssl, &client));
    assert_null(client.problem);
    assert_string_equal(ml_buf_cstr(&client.name), "jane");
    assert_int_equal(client.group_count, 2);
    assert_string_equal(ml_buf_cstr(&client.groups[0]), "developers");
    assert_string_equal(ml_buf_cstr(&client.groups[1]), "testers");
    assert_int_equal(strlen(client.sha256), 64);
    ml_tls_client_fini(&client);
}

static void test_tls_client_may_show_nothing(void **state)
{
    struct fixture *f = *state;
    struct ml_tls_client client;
    call_server(f, NULL);
    assert_false(ml_tls_client_of(f->clients, f->ssl, &client));
    assert_false(ml_tls_client_of(f->clients, NULL, &client));
}

static void test_tls_client_that_is_not_good_is_nobody(void **state)
{
    static const char expired[] = "x509: certificate has expired or is not yet valid";
    static const char stranger[] = "x509: certificate signed by unknown authority";
    static const char other_use[] = "x509: certificate specifies an incompatible key usage";
    static const struct {
        struct shown shown;
        const char *problem;
    } cases[] = {
        {{jane, NULL, 0, 60, false}, NULL},
        {{jane, "serverAuth,clientAuth", 0, 60, false}, NULL},
        {{jane, "anyExtendedKeyUsage", 0, 60, false}, NULL},
        {{jane, "serverAuth", 0, 60, false}, other_use},
        {{jane, "clientAuth", -60, -1, false}, expired},
        {{jane, "clientAuth", 30, 60, false}, expired},
        {{jane, "clientAuth", 0, 60, true}, stranger},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        struct ml_tls_client client;
        call_server(f, &cases[i].shown);
        assert_true(ml_tls_client_of(f->clients, f->ssl, &client));
        if (cases[i].problem)
            assert_string_equal(client.problem, cases[i].problem);
        else
            assert_null(client.problem);
        assert_int_equal(client.name.len, cases[i].problem ? 0 : 4);
        ml_tls_client_fini(&client);
    }
}

static void test_tls_client_expires_while_it_is_connected(void **state)
{
    static const struct shown shown = {jane, "clientAuth", 0, 60, false};
    struct fixture *f = *state;
    struct ml_tls_client client;
    call_server(f, &shown);
    ml_clock_fake_advance(&f->clock, 61 * ML_NS_PER_S);
    assert_true(ml_tls_client_of(f->clients, f->ssl, &client));
    assert_non_null(client.problem);
    ml_tls_client_fini(&client);
}

#define CLIENT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT(test_tls_client_is_its_subject),
        CLIENT(test_tls_client_may_show_nothing),
        CLIENT(test_tls_client_that_is_not_good_is_nobody),
        CLIENT(test_tls_client_expires_while_it_is_connected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
