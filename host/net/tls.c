/* TLS of our own servers, checks of certificates, users of client certificates, and helpers of the
 * files that use OpenSSL. */
#include "net/tls.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "net/tls_internal.h"

/* ---- helpers of all files that use OpenSSL ---- */

int ml_tls_error(struct ml_err *err, int kind, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return ml_err_set(err, kind, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
}

/* Without this, OpenSSL would ask the terminal. */
int ml_tls_no_password(char *out, int size, int writing, void *context)
{
    (void)out, (void)size, (void)writing, (void)context;
    return -1;
}

BIO *ml_tls_open_pem(struct ml_str text)
{
    BIO *bio = BIO_new_mem_buf(text.ptr ? text.ptr : "", (int)text.len);
    ml_assert(bio != NULL);
    return bio;
}

int64_t ml_tls_wall_ns(const ASN1_TIME *time)
{
    struct tm parts = {0};
    if (!time || ASN1_TIME_to_tm(time, &parts) != 1)
        return 0;
    int64_t seconds = timegm(&parts);
    /* "No well-defined expiration" is the year 9999, beyond what nanoseconds count to. */
    return ML_MIN(seconds, INT64_MAX / ML_NS_PER_S) * ML_NS_PER_S;
}

void ml_tls_pair_fini(struct ml_tls_pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
}

int ml_tls_pair_read(struct ml_str cert_pem, struct ml_str key_pem, struct ml_tls_pair *out,
                     struct ml_err *err)
{
    ML_AUTO(BIO_release) BIO *cert_text = ml_tls_open_pem(cert_pem);
    ML_AUTO(BIO_release) BIO *key_text = ml_tls_open_pem(key_pem);
    out->cert = PEM_read_bio_X509(cert_text, NULL, ml_tls_no_password, NULL);
    if (!out->cert)
        return ml_tls_error(err, ML_EINVALID, "the certificate cannot be read");
    out->key = PEM_read_bio_PrivateKey(key_text, NULL, ml_tls_no_password, NULL);
    if (!out->key)
        return ml_tls_error(err, ML_EINVALID, "the key cannot be read");
    if (X509_check_private_key(out->cert, out->key) != 1)
        return ml_tls_error(err, ML_EINVALID, "certificate and key do not belong together");
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
    ML_AUTO(ml_tls_pair_fini) struct ml_tls_pair pair = {0};
    if (ml_tls_pair_read(cert_pem, key_pem, &pair, err) < 0)
        return err->kind;
    ML_AUTO(SSL_CTX_release) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
        SSL_CTX_use_certificate(ctx, pair.cert) != 1 || SSL_CTX_use_PrivateKey(ctx, pair.key) != 1)
        return ml_tls_error(err, ML_ETLS, "TLS");
    /* Sessions are not resumed: connections live long, and tickets cost each new one two. */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* 34 KB less for an idle connection */
    SSL_CTX_set_alpn_select_cb(ctx, select_http_1_1, NULL);
    *out = ml_take(&ctx);
    return 0;
}

/* Takes any certificate: each request decides whose it is, if anybody's. */
static int accept_any_client(X509_STORE_CTX *shown, void *context)
{
    (void)shown, (void)context;
    return 1;
}

int ml_tls_ask_clients(struct ssl_ctx_st *ctx, struct ml_str ca_pem, struct ml_err *err)
{
    ML_AUTO(BIO_release) BIO *text = ml_tls_open_pem(ca_pem);
    ML_AUTO(X509_release) X509 *ca = PEM_read_bio_X509(text, NULL, ml_tls_no_password, NULL);
    if (!ca || SSL_CTX_add_client_CA(ctx, ca) != 1)
        return ml_tls_error(err, ML_EINVALID, "the CA certificate cannot be read");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, accept_any_client, NULL);
    return 0;
}

/* ---- checking ---- */

/* The first in the text; NULL: there is none. */
static X509 *read_certificate(struct ml_str pem)
{
    ML_AUTO(BIO_release) BIO *text = ml_tls_open_pem(pem);
    return PEM_read_bio_X509(text, NULL, ml_tls_no_password, NULL);
}

int ml_tls_check_pair(struct ml_str cert_pem, struct ml_str key_pem, struct ml_tls_validity *out,
                      struct ml_err *err)
{
    ML_AUTO(ml_tls_pair_fini) struct ml_tls_pair pair = {0};
    if (ml_tls_pair_read(cert_pem, key_pem, &pair, err) < 0)
        return err->kind;
    out->not_before_ns = ml_tls_wall_ns(X509_get0_notBefore(pair.cert));
    out->not_after_ns = ml_tls_wall_ns(X509_get0_notAfter(pair.cert));
    return 0;
}

int ml_tls_validity_of(struct ml_str cert_pem, struct ml_tls_validity *out, struct ml_err *err)
{
    ML_AUTO(X509_release) X509 *cert = read_certificate(cert_pem);
    if (!cert)
        return ml_tls_error(err, ML_EINVALID, "the certificate cannot be read");
    out->not_before_ns = ml_tls_wall_ns(X509_get0_notBefore(cert));
    out->not_after_ns = ml_tls_wall_ns(X509_get0_notAfter(cert));
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
    ML_AUTO(BIO_release) BIO *text = ml_tls_open_pem(pem);
    int count = 0;
    for (X509 *cert; (cert = PEM_read_bio_X509(text, NULL, ml_tls_no_password, NULL)); count++)
        X509_free(cert);
    /* The list ends at the end of the text, or at something that is no certificate. */
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (count == 0 || !at_end)
        return ml_tls_error(err, ML_EINVALID, "the CA certificates cannot be read");
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
    ML_AUTO(BIO_release) BIO *text = ml_tls_open_pem(ca_pem);
    ML_AUTO(X509_release) X509 *ca = PEM_read_bio_X509(text, NULL, ml_tls_no_password, NULL);
    ML_AUTO(X509_STORE_release) X509_STORE *store = X509_STORE_new();
    if (!ca || !store || X509_STORE_add_cert(store, ca) != 1)
        return ml_tls_error(err, ML_EINVALID, "the CA certificate cannot be read");
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
