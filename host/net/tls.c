/* Called by the embedded API server, which needs an authority, and where the operator reads
 * certificates from files and helper programs. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "base/wipe.h"

#define SERIAL_BITS    159 /* positive in the 20 octets that RFC 5280 4.1.2.2 allows */
#define EARLY_S        INT64_C(300)
#define NAME_LEN_MAX   253 /* RFC 1035 */
#define DNS_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._*"

/* Frees what a variable points at when it leaves scope. */
#define FREE_ON_EXIT(type, release)                                                                \
    static void type##_release(type **pp)                                                          \
    {                                                                                              \
        release(*pp);                                                                              \
    }
FREE_ON_EXIT(X509, X509_free)
FREE_ON_EXIT(EVP_PKEY, EVP_PKEY_free)
FREE_ON_EXIT(BIO, BIO_free_all)
FREE_ON_EXIT(BIGNUM, BN_free)
FREE_ON_EXIT(SSL_CTX, SSL_CTX_free)

/* "WHAT: OpenSSL's reason". Returns `kind`. */
static int set_tls_error(struct ml_err *err, int kind, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return ml_err_set(err, kind, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
}

/* Nobody is there to type a password; without this, OpenSSL would ask the terminal. */
static int no_password(char *out, int size, int writing, void *context)
{
    (void)out, (void)size, (void)writing, (void)context;
    return -1;
}

static BIO *open_pem(struct ml_str text)
{
    BIO *bio = BIO_new_mem_buf(text.ptr ? text.ptr : "", (int)text.len);
    ml_assert(bio != NULL);
    return bio;
}

/* ---- certificates ---- */

static bool certificate_set_serial(X509 *cert)
{
    ML_AUTO(BIGNUM_release) BIGNUM *serial = BN_new();
    return serial && BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
           BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert));
}

static bool certificate_set_validity(X509 *cert, const struct ml_tls_authority_opts *opts)
{
    time_t now = (time_t)(ml_clock_wall(opts->clock) / ML_NS_PER_S);
    return ASN1_TIME_set(X509_getm_notBefore(cert), now - EARLY_S) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), now + (time_t)opts->valid_s);
}

/* `value` as openssl's configuration files write it. */
static bool certificate_add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool added = extension && X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

/* A certificate with all but extensions and signature. */
static X509 *certificate_new(const struct ml_tls_authority_opts *opts, const char *name,
                             EVP_PKEY *key)
{
    X509 *cert = X509_new();
    if (cert && X509_set_version(cert, X509_VERSION_3) && certificate_set_serial(cert) &&
        certificate_set_validity(cert, opts) &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
                                   (const unsigned char *)name, -1, -1, 0) &&
        X509_set_pubkey(cert, key))
        return cert;
    X509_free(cert);
    return NULL;
}

static X509 *make_ca_certificate(const struct ml_tls_authority_opts *opts, EVP_PKEY *key)
{
    X509 *ca = certificate_new(opts, "moonloop-ca", key);
    if (ca && X509_set_issuer_name(ca, X509_get_subject_name(ca)) &&
        certificate_add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        certificate_add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        certificate_add_extension(ca, ca, NID_subject_key_identifier, "hash") &&
        X509_sign(ca, key, EVP_sha256()))
        return ca;
    X509_free(ca);
    return NULL;
}

static bool is_dns_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= NAME_LEN_MAX && strspn(name, DNS_NAME_CHARS) == len;
}

/* Appends it as openssl's configuration files list names. */
static int append_alt_name(const char *name, struct ml_buf *out, struct ml_err *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool is_address = inet_pton(AF_INET, name, address) == 1 ||
                      inet_pton(AF_INET6, name, address) == 1;
    if (!is_address && !is_dns_name(name))
        return ml_err_set(err, ML_EINVALID, "\"%s\": neither a host name nor an address", name);
    ml_buf_printf(out, ",%s:%s", is_address ? "IP" : "DNS", name);
    return 0;
}

static int certificate_add_alt_names(X509 *cert, const struct ml_tls_authority_opts *opts,
                                     struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    ml_buf_puts(&names, "DNS:localhost,IP:127.0.0.1,IP:::1");
    for (size_t i = 0; i < opts->name_count; i++)
        if (append_alt_name(opts->names[i], &names, err) < 0)
            return err->kind;
    if (!certificate_add_extension(cert, cert, NID_subject_alt_name, ml_buf_cstr(&names)))
        return set_tls_error(err, ML_ETLS, "add names to a certificate");
    return 0;
}

static int make_server_certificate(const struct ml_tls_authority_opts *opts, X509 *ca,
                                   EVP_PKEY *ca_key, EVP_PKEY *key, X509 **out, struct ml_err *err)
{
    ML_AUTO(X509_release) X509 *cert = certificate_new(opts, "moonloop", key);
    if (!cert || !X509_set_issuer_name(cert, X509_get_subject_name(ca)) ||
        !certificate_add_extension(cert, ca, NID_basic_constraints, "critical,CA:FALSE") ||
        !certificate_add_extension(cert, ca, NID_key_usage, "critical,digitalSignature") ||
        !certificate_add_extension(cert, ca, NID_ext_key_usage, "serverAuth") ||
        !certificate_add_extension(cert, ca, NID_authority_key_identifier, "keyid:always"))
        return set_tls_error(err, ML_ETLS, "make a certificate");
    int r = certificate_add_alt_names(cert, opts, err);
    if (r < 0)
        return r;
    if (!X509_sign(cert, ca_key, EVP_sha256()))
        return set_tls_error(err, ML_ETLS, "sign a certificate");
    *out = ml_take(&cert);
    return 0;
}

/* ---- PEM ---- */

static char *bio_text(BIO *bio)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    return ml_strndup(bytes, (size_t)len);
}

static char *certificate_pem(X509 *cert)
{
    ML_AUTO(BIO_release) BIO *bio = BIO_new(BIO_s_mem());
    return bio && PEM_write_bio_X509(bio, cert) ? bio_text(bio) : NULL;
}

static char *key_pem(EVP_PKEY *key)
{
    ML_AUTO(BIO_release) BIO *bio = BIO_new(BIO_s_secmem());
    bool written = bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    return written ? bio_text(bio) : NULL;
}

int ml_tls_authority_make(const struct ml_tls_authority_opts *opts, struct ml_tls_identity *out,
                          struct ml_err *err)
{
    ML_AUTO(EVP_PKEY_release) EVP_PKEY *ca_key = EVP_EC_gen("P-256");
    ML_AUTO(EVP_PKEY_release) EVP_PKEY *key = EVP_EC_gen("P-256");
    if (!ca_key || !key)
        return set_tls_error(err, ML_ETLS, "make a key");
    ML_AUTO(X509_release) X509 *ca = make_ca_certificate(opts, ca_key);
    if (!ca)
        return set_tls_error(err, ML_ETLS, "make an authority");
    ML_AUTO(X509_release) X509 *cert = NULL;
    int r = make_server_certificate(opts, ca, ca_key, key, &cert, err);
    if (r < 0)
        return r;
    struct ml_tls_identity identity = {certificate_pem(ca), certificate_pem(cert), key_pem(key)};
    if (!identity.ca_pem || !identity.cert_pem || !identity.key_pem) {
        ml_tls_identity_fini(&identity);
        return set_tls_error(err, ML_ETLS, "write a certificate");
    }
    *out = identity;
    return 0;
}

void ml_tls_identity_fini(struct ml_tls_identity *identity)
{
    free(identity->ca_pem);
    free(identity->cert_pem);
    ml_wipe_free(identity->key_pem);
    *identity = (struct ml_tls_identity){0};
}

/* ---- a certificate and its key ---- */

struct pair {
    X509 *cert;
    EVP_PKEY *key;
};

static void pair_fini(struct pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
}

/* `out` is to be ended in either case. */
static int pair_read(struct ml_str cert_pem, struct ml_str key_pem, struct pair *out,
                     struct ml_err *err)
{
    ML_AUTO(BIO_release) BIO *cert_text = open_pem(cert_pem);
    ML_AUTO(BIO_release) BIO *key_text = open_pem(key_pem);
    out->cert = PEM_read_bio_X509(cert_text, NULL, no_password, NULL);
    if (!out->cert)
        return set_tls_error(err, ML_EINVALID, "the certificate cannot be read");
    out->key = PEM_read_bio_PrivateKey(key_text, NULL, no_password, NULL);
    if (!out->key)
        return set_tls_error(err, ML_EINVALID, "the key cannot be read");
    if (X509_check_private_key(out->cert, out->key) != 1)
        return set_tls_error(err, ML_EINVALID, "certificate and key do not belong together");
    return 0;
}

/* ---- serving ---- */

/* The server speaks HTTP/1.1 only, and says so to clients that offer HTTP/2. */
static int select_http_1_1(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned int offered_len, void *context)
{
    static const unsigned char http_1_1[] = "\x08http/1.1";
    (void)ssl, (void)context;
    int found = SSL_select_next_proto((unsigned char **)out, out_len, http_1_1, sizeof http_1_1 - 1,
                                      offered, offered_len);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

int ml_tls_server_context(struct ml_str cert_pem, struct ml_str key_pem, struct ssl_ctx_st **out,
                          struct ml_err *err)
{
    ML_AUTO(pair_fini) struct pair pair = {0};
    if (pair_read(cert_pem, key_pem, &pair, err) < 0)
        return err->kind;
    ML_AUTO(SSL_CTX_release) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
        SSL_CTX_use_certificate(ctx, pair.cert) != 1 || SSL_CTX_use_PrivateKey(ctx, pair.key) != 1)
        return set_tls_error(err, ML_ETLS, "TLS");
    /* Sessions are not resumed: connections live long, and tickets cost each new one two. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* 34 KB less for an idle connection */
    SSL_CTX_set_alpn_select_cb(ctx, select_http_1_1, NULL);
    *out = ml_take(&ctx);
    return 0;
}

/* ---- checking ---- */

static int64_t asn1_wall_ns(const ASN1_TIME *time)
{
    struct tm parts = {0};
    if (!time || ASN1_TIME_to_tm(time, &parts) != 1)
        return 0;
    int64_t seconds = timegm(&parts);
    /* "No well-defined expiration" is the year 9999, beyond what nanoseconds count to. */
    return ML_MIN(seconds, INT64_MAX / ML_NS_PER_S) * ML_NS_PER_S;
}

int ml_tls_check_pair(struct ml_str cert_pem, struct ml_str key_pem, struct ml_tls_validity *out,
                      struct ml_err *err)
{
    ML_AUTO(pair_fini) struct pair pair = {0};
    if (pair_read(cert_pem, key_pem, &pair, err) < 0)
        return err->kind;
    out->not_before_ns = asn1_wall_ns(X509_get0_notBefore(pair.cert));
    out->not_after_ns = asn1_wall_ns(X509_get0_notAfter(pair.cert));
    return 0;
}

int ml_tls_check_ca(struct ml_str pem, struct ml_err *err)
{
    ML_AUTO(BIO_release) BIO *text = open_pem(pem);
    int count = 0;
    for (X509 *cert; (cert = PEM_read_bio_X509(text, NULL, no_password, NULL)); count++)
        X509_free(cert);
    /* What ends the list is the end of the text, or something that is no certificate. */
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (count == 0 || !at_end)
        return set_tls_error(err, ML_EINVALID, "the CA certificates cannot be read");
    ERR_clear_error();
    return 0;
}
