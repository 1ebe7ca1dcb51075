/* Certificates: their TLS in our own servers, their checks, the users of client certificates, and
 * the authority that makes them. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/wipe.h"

/* ---- endings for ML_AUTO, errors, PEM ---- */

/* Frees what a variable points at when it leaves scope. */
#define RELEASE(type, release)                                                                     \
    static inline void type##_release(type **pp)                                                   \
    {                                                                                              \
        release(*pp);                                                                              \
    }
RELEASE(X509, X509_free)
RELEASE(X509_REQ, X509_REQ_free)
RELEASE(X509_STORE, X509_STORE_free)
RELEASE(X509_STORE_CTX, X509_STORE_CTX_free)
RELEASE(BIO, BIO_free_all)
RELEASE(BIGNUM, BN_free)
RELEASE(SSL_CTX, SSL_CTX_free)

/* "WHAT: OpenSSL's reason". Returns `kind`. */
static int tls_error(struct ml_err *err, int kind, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return ml_err_set(err, kind, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
}

/* For OpenSSL's readers of PEM, which would ask the terminal. */
static int no_password(char *out, int size, int writing, void *context)
{
    (void)out, (void)size, (void)writing, (void)context;
    return -1;
}

/* A reader of `text`, which is borrowed. */
static BIO *open_pem(struct ml_str text)
{
    BIO *bio = BIO_new_mem_buf(text.ptr ? text.ptr : "", (int)text.len);
    ml_assert(bio != NULL);
    return bio;
}

/* The first certificate in the text; NULL: there is none. */
static X509 *read_certificate(struct ml_str pem)
{
    ML_AUTO(BIO_release) BIO *text = open_pem(pem);
    return PEM_read_bio_X509(text, NULL, no_password, NULL);
}

/* ns since 1970; 0 for what is no time. */
static int64_t wall_ns_of(const ASN1_TIME *time)
{
    struct tm parts = {0};
    if (!time || ASN1_TIME_to_tm(time, &parts) != 1)
        return 0;
    int64_t seconds = timegm(&parts);
    /* "No well-defined expiration" is the year 9999, beyond what nanoseconds count to. */
    return ML_MIN(seconds, INT64_MAX / ML_NS_PER_S) * ML_NS_PER_S;
}

/* A certificate and its key. */
struct pair {
    X509 *cert;
    EVP_PKEY *key;
};

static void pair_fini(struct pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
}

/* `out` is to be ended in either case. ML_EINVALID: unreadable, or of two pairs. */
static int pair_read(struct ml_str cert_pem, struct ml_str key_pem, struct pair *out,
                     struct ml_err *err)
{
    ML_AUTO(BIO_release) BIO *key_text = open_pem(key_pem);
    out->cert = read_certificate(cert_pem);
    if (!out->cert)
        return tls_error(err, ML_EINVALID, "the certificate cannot be read");
    out->key = PEM_read_bio_PrivateKey(key_text, NULL, no_password, NULL);
    if (!out->key)
        return tls_error(err, ML_EINVALID, "the key cannot be read");
    if (X509_check_private_key(out->cert, out->key) != 1)
        return tls_error(err, ML_EINVALID, "certificate and key do not belong together");
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

static int make_server_context(const struct pair *pair, struct ssl_ctx_st **out, struct ml_err *err)
{
    ML_AUTO(SSL_CTX_release) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
        SSL_CTX_use_certificate(ctx, pair->cert) != 1 ||
        SSL_CTX_use_PrivateKey(ctx, pair->key) != 1)
        return tls_error(err, ML_ETLS, "TLS");
    /* Sessions are not resumed: connections live long, and tickets cost each new one two. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* 34 KB less for an idle connection */
    SSL_CTX_set_alpn_select_cb(ctx, select_http_1_1, NULL);
    *out = ml_take(&ctx);
    return 0;
}

int ml_tls_server_context(struct ml_str cert_pem, struct ml_str key_pem, struct ssl_ctx_st **out,
                          struct ml_err *err)
{
    ML_AUTO(pair_fini) struct pair pair = {0};
    int r = pair_read(cert_pem, key_pem, &pair, err);
    return r < 0 ? r : make_server_context(&pair, out, err);
}

/* Takes any certificate: each request decides whose it is, if anybody's. */
static int accept_any_client(X509_STORE_CTX *shown, void *context)
{
    (void)shown, (void)context;
    return 1;
}

int ml_tls_ask_clients(struct ssl_ctx_st *ctx, struct ml_str ca_pem, struct ml_err *err)
{
    ML_AUTO(X509_release) X509 *ca = read_certificate(ca_pem);
    if (!ca || SSL_CTX_add_client_CA(ctx, ca) != 1)
        return tls_error(err, ML_EINVALID, "the CA certificate cannot be read");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, accept_any_client, NULL);
    return 0;
}

/* ---- checking ---- */

int ml_tls_check_pair(struct ml_str cert_pem, struct ml_str key_pem, struct ml_tls_validity *out,
                      struct ml_err *err)
{
    ML_AUTO(pair_fini) struct pair pair = {0};
    if (pair_read(cert_pem, key_pem, &pair, err) < 0)
        return err->kind;
    out->not_before_ns = wall_ns_of(X509_get0_notBefore(pair.cert));
    out->not_after_ns = wall_ns_of(X509_get0_notAfter(pair.cert));
    return 0;
}

int ml_tls_validity_of(struct ml_str cert_pem, struct ml_tls_validity *out, struct ml_err *err)
{
    ML_AUTO(X509_release) X509 *cert = read_certificate(cert_pem);
    if (!cert)
        return tls_error(err, ML_EINVALID, "the certificate cannot be read");
    out->not_before_ns = wall_ns_of(X509_get0_notBefore(cert));
    out->not_after_ns = wall_ns_of(X509_get0_notAfter(cert));
    return 0;
}

bool ml_tls_is_signed_by(struct ml_str cert_pem, struct ml_str ca_pem)
{
    ML_AUTO(X509_release) X509 *cert = read_certificate(cert_pem);
    ML_AUTO(X509_release) X509 *ca = read_certificate(ca_pem);
    bool is_signed = cert && ca && X509_verify(cert, X509_get0_pubkey(ca)) == 1;
    ERR_clear_error();
    return is_signed;
}

bool ml_tls_has_name(struct ml_str cert_pem, const char *name)
{
    ML_AUTO(X509_release) X509 *cert = read_certificate(cert_pem);
    bool has = cert && (X509_check_ip_asc(cert, name, 0) == 1 ||
                        X509_check_host(cert, name, strlen(name), 0, NULL) == 1);
    ERR_clear_error();
    return has;
}

int ml_tls_check_ca(struct ml_str pem, struct ml_err *err)
{
    ML_AUTO(BIO_release) BIO *text = open_pem(pem);
    int count = 0;
    for (X509 *cert; (cert = PEM_read_bio_X509(text, NULL, no_password, NULL)); count++)
        X509_free(cert);
    /* The list ends at the end of the text, or at something that is no certificate. */
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (count == 0 || !at_end)
        return tls_error(err, ML_EINVALID, "the CA certificates cannot be read");
    ERR_clear_error();
    return 0;
}

/* ---- the users of client certificates ---- */

struct ml_tls_clients {
    X509_STORE *store;
    struct ml_clock *clock;
};

int ml_tls_clients_new(struct ml_str ca_pem, struct ml_clock *clock, struct ml_tls_clients **out,
                       struct ml_err *err)
{
    ML_AUTO(X509_release) X509 *ca = read_certificate(ca_pem);
    ML_AUTO(X509_STORE_release) X509_STORE *store = X509_STORE_new();
    if (!ca || !store || X509_STORE_add_cert(store, ca) != 1)
        return tls_error(err, ML_EINVALID, "the CA certificate cannot be read");
    struct ml_tls_clients *clients = ml_new(struct ml_tls_clients);
    clients->store = ml_take(&store);
    clients->clock = clock;
    *out = clients;
    return 0;
}

void ml_tls_clients_free(struct ml_tls_clients *clients)
{
    if (!clients)
        return;
    X509_STORE_free(clients->store);
    free(clients);
}

static const char *problem_of(int result)
{
    switch (result) {
    case X509_V_OK:
        return NULL;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "x509: certificate has expired or is not yet valid";
    case X509_V_ERR_INVALID_PURPOSE:
        return "x509: certificate specifies an incompatible key usage";
    default:
        return "x509: certificate signed by unknown authority";
    }
}

/* The problem with a certificate at this time, or NULL. As Go, and unlike OpenSSL's check of
 * purposes, this asks for no key usage: one of the extended ones is enough. */
static const char *verify_client(const struct ml_tls_clients *clients, X509 *cert,
                                 STACK_OF(X509) * others)
{
    ML_AUTO(X509_STORE_CTX_release) X509_STORE_CTX *check = X509_STORE_CTX_new();
    if (!check || X509_STORE_CTX_init(check, clients->store, cert, others) != 1)
        return problem_of(X509_V_ERR_UNSPECIFIED);
    time_t now = (time_t)(ml_clock_wall(clients->clock) / ML_NS_PER_S);
    X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(check), now);
    X509_verify_cert(check);
    int result = X509_STORE_CTX_get_error(check);
    ERR_clear_error();
    if (result != X509_V_OK)
        return problem_of(result);
    uint32_t uses = X509_get_extended_key_usage(cert); /* all bits without such an extension */
    return uses & (XKU_SSL_CLIENT | XKU_ANYEKU) ? NULL : problem_of(X509_V_ERR_INVALID_PURPOSE);
}

static void entry_text(const X509_NAME *subject, int at, struct ml_buf *out)
{
    unsigned char *text = NULL;
    int len = ASN1_STRING_to_UTF8(&text,
                                  X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    ml_buf_clear(out);
    if (len > 0)
        ml_buf_append(out, text, (size_t)len);
    OPENSSL_free(text);
}

static void read_subject(const X509_NAME *subject, struct ml_tls_client *out)
{
    int count = X509_NAME_entry_count(subject);
    out->groups = ml_zalloc((size_t)(count + 1) * sizeof *out->groups);
    for (int at = 0; at < count; at++) {
        int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(X509_NAME_get_entry(subject, at)));
        if (nid == NID_commonName)
            entry_text(subject, at, &out->name);
        else if (nid == NID_organizationName)
            entry_text(subject, at, &out->groups[out->group_count++]);
    }
}

static void write_sha256(const X509 *cert, char *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int len = 0;
    X509_digest(cert, EVP_sha256(), digest, &len);
    for (unsigned int i = 0; i < len && i < 32; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
}

bool ml_tls_client_of(const struct ml_tls_clients *clients, struct ssl_st *ssl,
                      struct ml_tls_client *out)
{
    X509 *cert = ssl ? SSL_get0_peer_certificate(ssl) : NULL;
    if (!cert)
        return false;
    *out = (struct ml_tls_client){
        .problem = verify_client(clients, cert, SSL_get_peer_cert_chain(ssl))};
    if (!out->problem) {
        read_subject(X509_get_subject_name(cert), out);
        write_sha256(cert, out->sha256);
    }
    ERR_clear_error();
    return true;
}

void ml_tls_client_fini(struct ml_tls_client *client)
{
    for (size_t i = 0; i < client->group_count; i++)
        ml_buf_fini(&client->groups[i]);
    free(client->groups);
    ml_buf_fini(&client->name);
}

/* ---- a certificate authority ---- */

#define SERIAL_BITS    159 /* positive in the 20 octets that RFC 5280 4.1.2.2 allows */
#define EARLY_S        INT64_C(300)
#define AUTHORITY_S    (INT64_C(3650) * 24 * 3600) /* kubeadm's */
#define NAME_LEN_MAX   253                         /* RFC 1035 */
#define DNS_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._*"
#define FILE_BYTES_MAX ((size_t)64 * 1024)

struct ml_tls_authority {
    struct pair pair;
    char *pem; /* of the certificate */
};

static void authority_release(struct ml_tls_authority **pp)
{
    ml_tls_authority_free(*pp);
}

/* ---- certificates ---- */

static bool certificate_set_serial(X509 *cert)
{
    ML_AUTO(BIGNUM_release) BIGNUM *serial = BN_new();
    return serial && BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
           BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert));
}

static bool certificate_set_validity(X509 *cert, struct ml_clock *clock, int64_t valid_s)
{
    time_t now = (time_t)(ml_clock_wall(clock) / ML_NS_PER_S);
    return ASN1_TIME_set(X509_getm_notBefore(cert), now - EARLY_S) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), now + (time_t)valid_s);
}

/* `value` as openssl's configuration files write it. */
static bool certificate_add(X509 *cert, X509 *issuer, int nid, const char *value)
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
static X509 *certificate_new(struct ml_clock *clock, int64_t valid_s, const char *name,
                             EVP_PKEY *key)
{
    X509 *cert = X509_new();
    if (cert && X509_set_version(cert, X509_VERSION_3) && certificate_set_serial(cert) &&
        certificate_set_validity(cert, clock, valid_s) &&
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
                                   (const unsigned char *)name, -1, -1, 0) &&
        X509_set_pubkey(cert, key))
        return cert;
    X509_free(cert);
    return NULL;
}

static X509 *make_ca_certificate(struct ml_clock *clock, int64_t valid_s, EVP_PKEY *key)
{
    X509 *ca = certificate_new(clock, valid_s, "moonloop-ca", key);
    if (ca && X509_set_issuer_name(ca, X509_get_subject_name(ca)) &&
        certificate_add(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
        certificate_add(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        certificate_add(ca, ca, NID_subject_key_identifier, "hash") &&
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
    if (!certificate_add(cert, cert, NID_subject_alt_name, ml_buf_cstr(&names)))
        return tls_error(err, ML_ETLS, "add names to a certificate");
    return 0;
}

/* A server's certificate ends with its authority's at the latest. */
static int64_t server_valid_s(const struct ml_tls_authority_opts *opts, const X509 *ca)
{
    int64_t left_ns = wall_ns_of(X509_get0_notAfter(ca)) - ml_clock_wall(opts->clock);
    return ML_MIN(opts->valid_s, left_ns / ML_NS_PER_S);
}

/* A new key and its certificate; `out` is to be ended in either case. */
static int make_server_pair(const struct ml_tls_authority_opts *opts, const struct pair *ca,
                            struct pair *out, struct ml_err *err)
{
    out->key = EVP_EC_gen("P-256");
    if (!out->key)
        return tls_error(err, ML_ETLS, "make a key");
    X509 *cert = certificate_new(opts->clock, server_valid_s(opts, ca->cert), "moonloop", out->key);
    out->cert = cert;
    if (!cert || !X509_set_issuer_name(cert, X509_get_subject_name(ca->cert)) ||
        !certificate_add(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") ||
        !certificate_add(cert, ca->cert, NID_key_usage, "critical,digitalSignature") ||
        !certificate_add(cert, ca->cert, NID_ext_key_usage, "serverAuth") ||
        !certificate_add(cert, ca->cert, NID_authority_key_identifier, "keyid:always"))
        return tls_error(err, ML_ETLS, "make a certificate");
    int r = certificate_add_alt_names(cert, opts, err);
    if (r < 0)
        return r;
    return X509_sign(cert, ca->key, EVP_sha256()) ? 0
                                                  : tls_error(err, ML_ETLS, "sign a certificate");
}

/* ---- PEM ---- */

static char *bio_text(BIO *bio)
{
    char *bytes = NULL;
    long len = BIO_get_mem_data(bio, &bytes);
    return ml_strndup(bytes, (size_t)len);
}

/* NULL when OpenSSL fails. */
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

/* ---- the authority ---- */

int ml_tls_authority_begin(struct ml_clock *clock, int64_t valid_s, struct ml_tls_authority **out,
                           struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *self = ml_new(struct ml_tls_authority);
    self->pair.key = EVP_EC_gen("P-256");
    if (!self->pair.key)
        return tls_error(err, ML_ETLS, "make a key");
    self->pair.cert = make_ca_certificate(clock, valid_s, self->pair.key);
    self->pem = self->pair.cert ? certificate_pem(self->pair.cert) : NULL;
    if (!self->pem)
        return tls_error(err, ML_ETLS, "make an authority");
    *out = ml_take(&self);
    return 0;
}

int ml_tls_authority_new(struct ml_clock *clock, struct ml_tls_authority **out, struct ml_err *err)
{
    return ml_tls_authority_begin(clock, AUTHORITY_S, out, err);
}

char *ml_tls_authority_key(const struct ml_tls_authority *self)
{
    return key_pem(self->pair.key);
}

void ml_tls_authority_free(struct ml_tls_authority *self)
{
    if (!self)
        return;
    pair_fini(&self->pair);
    free(self->pem);
    free(self);
}

const char *ml_tls_authority_pem(const struct ml_tls_authority *self)
{
    return self->pem;
}

int ml_tls_authority_identify(const struct ml_tls_authority *self,
                              const struct ml_tls_authority_opts *opts, struct ml_tls_identity *out,
                              struct ml_err *err)
{
    ML_AUTO(pair_fini) struct pair pair = {0};
    int r = make_server_pair(opts, &self->pair, &pair, err);
    if (r < 0)
        return r;
    struct ml_tls_identity identity = {
        .ca_pem = ml_strdup(self->pem),
        .cert_pem = certificate_pem(pair.cert),
        .key_pem = key_pem(pair.key),
    };
    if (!identity.cert_pem || !identity.key_pem) {
        ml_tls_identity_fini(&identity);
        return tls_error(err, ML_ETLS, "write a certificate");
    }
    *out = identity;
    return 0;
}

int ml_tls_authority_serve(const struct ml_tls_authority *self,
                           const struct ml_tls_authority_opts *opts, struct ssl_ctx_st **out,
                           struct ml_err *err)
{
    ML_AUTO(pair_fini) struct pair pair = {0};
    int r = make_server_pair(opts, &self->pair, &pair, err);
    return r < 0 ? r : make_server_context(&pair, out, err);
}

int ml_tls_authority_make(const struct ml_tls_authority_opts *opts, struct ml_tls_identity *out,
                          struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *self = NULL;
    int r = ml_tls_authority_begin(opts->clock, opts->valid_s, &self, err);
    return r < 0 ? r : ml_tls_authority_identify(self, opts, out, err);
}

void ml_tls_identity_fini(struct ml_tls_identity *identity)
{
    free(identity->ca_pem);
    free(identity->cert_pem);
    ml_wipe_free(identity->key_pem);
    *identity = (struct ml_tls_identity){0};
}

/* ---- in a folder ---- */

/* The text of a file, empty when there is none. */
static int read_file(const char *path, struct ml_buf *out, struct ml_err *err)
{
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT)
        return 0;
    char *room = ml_buf_reserve(out, FILE_BYTES_MAX);
    size_t len = file && room ? fread(room, 1, FILE_BYTES_MAX, file) : 0;
    bool is_read = file && room && !ferror(file);
    out->len += len;
    if (!is_read)
        ml_err_set(err, ML_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (file)
        fclose(file);
    return is_read ? 0 : err->kind;
}

/* Writes the whole file or none of it; only its owner can read it, from the start. */
static int write_file(const char *path, const char *text, struct ml_err *err)
{
    ML_AUTO_FREE char *beside = ml_asprintf("%s.XXXXXX", path);
    int fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
    size_t len = strlen(text);
    bool written = fd >= 0 && write(fd, text, len) == (ssize_t)len && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    if (written && rename(beside, path) == 0)
        return 0;
    ml_err_set(err, ML_EIO, "%s: cannot be written: %s", path, strerror(errno));
    if (fd >= 0)
        unlink(beside);
    return err->kind;
}

static int authority_write(const struct ml_tls_authority *self, const char *cert_path,
                           const char *key_path, struct ml_err *err)
{
    ML_AUTO_WIPE char *key = key_pem(self->pair.key);
    if (!key)
        return tls_error(err, ML_ETLS, "write a key");
    /* The certificate last: without it, or with the one before, the pair is made again. */
    unlink(cert_path);
    int r = write_file(key_path, key, err);
    return r < 0 ? r : write_file(cert_path, self->pem, err);
}

int ml_tls_authority_read(struct ml_str cert_pem, struct ml_str key_pem,
                          struct ml_tls_authority **out, struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *self = ml_new(struct ml_tls_authority);
    int r = pair_read(cert_pem, key_pem, &self->pair, err);
    if (r < 0)
        return r;
    self->pem = certificate_pem(self->pair.cert);
    if (!self->pem)
        return tls_error(err, ML_ETLS, "write a certificate");
    *out = ml_take(&self);
    return 0;
}

/* Likewise; none when it has expired. */
static int authority_read_valid(struct ml_str cert_pem, struct ml_str key_pem,
                                struct ml_clock *clock, struct ml_tls_authority **out,
                                struct ml_err *err)
{
    ML_AUTO(authority_release) struct ml_tls_authority *self = NULL;
    int r = ml_tls_authority_read(cert_pem, key_pem, &self, err);
    if (r == 0 && wall_ns_of(X509_get0_notAfter(self->pair.cert)) > ml_clock_wall(clock))
        *out = ml_take(&self);
    return r;
}

int ml_tls_authority_open(const char *folder, struct ml_clock *clock, struct ml_tls_authority **out,
                          struct ml_err *err)
{
    ML_AUTO_FREE char *cert_path = ml_asprintf("%s/ca.crt", folder);
    ML_AUTO_FREE char *key_path = ml_asprintf("%s/ca.key", folder);
    ML_AUTO(ml_buf_fini) struct ml_buf cert = ML_BUF_INIT;
    ML_AUTO(ml_wipe_buf) struct ml_buf key = ML_BUF_INIT;
    ML_AUTO(authority_release) struct ml_tls_authority *self = NULL;
    int r = read_file(cert_path, &cert, err);
    if (r == 0)
        r = read_file(key_path, &key, err);
    if (r == 0 && cert.len > 0) {
        r = authority_read_valid(ml_buf_str(&cert), ml_buf_str(&key), clock, &self, err);
        if (r < 0)
            return ml_err_wrap(err, "%s", folder);
    }
    if (r == 0 && !self) {
        r = ml_tls_authority_new(clock, &self, err);
        if (r == 0)
            r = authority_write(self, cert_path, key_path, err);
    }
    if (r == 0)
        *out = ml_take(&self);
    return r;
}

/* ---- certificates for certificate requests ---- */

/* Kubernetes' word for a use, and OpenSSL's. */
struct usage {
    const char *word;
    const char *key;      /* of the key usage, or NULL */
    const char *extended; /* of the extended key usage, or NULL */
};

static const struct usage usages[] = {
    {"signing", "digitalSignature", NULL},
    {"digital signature", "digitalSignature", NULL},
    {"content commitment", "nonRepudiation", NULL},
    {"key encipherment", "keyEncipherment", NULL},
    {"key agreement", "keyAgreement", NULL},
    {"data encipherment", "dataEncipherment", NULL},
    {"cert sign", "keyCertSign", NULL},
    {"crl sign", "cRLSign", NULL},
    {"encipher only", "encipherOnly", NULL},
    {"decipher only", "decipherOnly", NULL},
    {"any", NULL, "anyExtendedKeyUsage"},
    {"server auth", NULL, "serverAuth"},
    {"client auth", NULL, "clientAuth"},
    {"code signing", NULL, "codeSigning"},
    {"email protection", NULL, "emailProtection"},
    {"s/mime", NULL, "emailProtection"},
    {"ipsec end system", NULL, "ipsecEndSystem"},
    {"ipsec tunnel", NULL, "ipsecTunnel"},
    {"ipsec user", NULL, "ipsecUser"},
    {"timestamping", NULL, "timeStamping"},
    {"ocsp signing", NULL, "OCSPSigning"},
    {"microsoft sgc", NULL, "msSGC"},
    {"netscape sgc", NULL, "nsSGC"},
};

/* Adds a word to a list with commas, once. */
static void add_word(struct ml_buf *list, const char *word)
{
    struct ml_str rest = ml_buf_str(list);
    while (rest.len)
        if (ml_str_is(ml_str_cut(&rest, ','), word))
            return;
    ml_buf_printf(list, "%s%s", list->len ? "," : "", word);
}

static int add_usages(X509 *cert, X509 *issuer, const struct ml_tls_order *order,
                      struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf key = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf extended = ML_BUF_INIT;
    for (size_t i = 0; i < order->usage_count; i++) {
        const struct usage *found = NULL;
        for (size_t j = 0; j < ML_COUNT(usages) && !found; j++)
            if (ml_str_is(order->usages[i], usages[j].word))
                found = &usages[j];
        if (!found)
            return ml_err_set(err, ML_EINVALID, "unrecognized usage values: [\"" ML_STR_FMT "\"]",
                              ML_STR_ARG(order->usages[i]));
        if (found->key && key.len == 0)
            ml_buf_puts(&key, "critical");
        add_word(found->key ? &key : &extended, found->key ? found->key : found->extended);
    }
    if ((key.len && !certificate_add(cert, issuer, NID_key_usage, ml_buf_cstr(&key))) ||
        (extended.len && !certificate_add(cert, issuer, NID_ext_key_usage, ml_buf_cstr(&extended))))
        return tls_error(err, ML_ETLS, "add usages to a certificate");
    return 0;
}

/* Leaves the kinds of names that Go's crypto/x509 knows. */
static void keep_known_names(GENERAL_NAMES *names)
{
    for (int i = sk_GENERAL_NAME_num(names) - 1; i >= 0; i--) {
        int kind = sk_GENERAL_NAME_value(names, i)->type;
        if (kind != GEN_DNS && kind != GEN_EMAIL && kind != GEN_IPADD && kind != GEN_URI)
            GENERAL_NAME_free(sk_GENERAL_NAME_delete(names, i));
    }
}

/* The alternative names are all that is taken of the extensions that a request asks for. */
static bool copy_alt_names(X509 *cert, X509_REQ *request)
{
    STACK_OF(X509_EXTENSION) *wanted = X509_REQ_get_extensions(request);
    GENERAL_NAMES *names = X509V3_get_d2i(wanted, NID_subject_alt_name, NULL, NULL);
    bool copied = true;
    if (names) {
        bool is_nameless = X509_NAME_entry_count(X509_get_subject_name(cert)) == 0;
        keep_known_names(names);
        if (sk_GENERAL_NAME_num(names) > 0)
            copied = X509_add1_ext_i2d(cert, NID_subject_alt_name, names, is_nameless,
                                       X509V3_ADD_APPEND) == 1;
    }
    GENERAL_NAMES_free(names);
    sk_X509_EXTENSION_pop_free(wanted, X509_EXTENSION_free);
    return copied;
}

static bool set_validity(X509 *cert, const X509 *issuer, const struct ml_tls_order *order)
{
    int64_t end_s = wall_ns_of(X509_get0_notAfter(issuer)) / ML_NS_PER_S;
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)order->not_before_s) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)ML_MIN(order->not_after_s, end_s));
}

/* All but the usages and the signature. */
static X509 *certificate_for(X509_REQ *request, X509 *issuer, const struct ml_tls_order *order)
{
    X509 *cert = X509_new();
    if (cert && X509_set_version(cert, X509_VERSION_3) && certificate_set_serial(cert) &&
        set_validity(cert, issuer, order) &&
        X509_set_subject_name(cert, X509_REQ_get_subject_name(request)) &&
        X509_set_issuer_name(cert, X509_get_subject_name(issuer)) &&
        X509_set_pubkey(cert, X509_REQ_get0_pubkey(request)) &&
        certificate_add(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
        certificate_add(cert, issuer, NID_authority_key_identifier, "keyid:always") &&
        copy_alt_names(cert, request))
        return cert;
    X509_free(cert);
    return NULL;
}

static int read_request(struct ml_str der, X509_REQ **out, struct ml_err *err)
{
    const unsigned char *at = (const unsigned char *)der.ptr;
    ML_AUTO(X509_REQ_release) X509_REQ *request = d2i_X509_REQ(NULL, &at, (long)der.len);
    if (!request || at != (const unsigned char *)der.ptr + der.len)
        return tls_error(err, ML_EINVALID, "unable to parse certificate request");
    EVP_PKEY *key = X509_REQ_get0_pubkey(request);
    if (!key || X509_REQ_verify(request, key) != 1)
        return tls_error(err, ML_EINVALID, "unable to verify certificate request signature");
    *out = ml_take(&request);
    return 0;
}

int ml_tls_authority_sign(const struct ml_tls_authority *self, const struct ml_tls_order *order,
                          struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(X509_REQ_release) X509_REQ *request = NULL;
    int r = read_request(order->request, &request, err);
    if (r < 0)
        return r;
    X509 *issuer = self->pair.cert;
    ML_AUTO(X509_release) X509 *cert = certificate_for(request, issuer, order);
    if (!cert)
        return tls_error(err, ML_ETLS, "make a certificate");
    r = add_usages(cert, issuer, order, err);
    if (r < 0)
        return r;
    if (!X509_sign(cert, self->pair.key, EVP_sha256()))
        return tls_error(err, ML_ETLS, "sign a certificate");
    ML_AUTO_FREE char *pem = certificate_pem(cert);
    if (!pem)
        return tls_error(err, ML_ETLS, "write a certificate");
    ml_buf_puts(out, pem);
    return 0;
}
