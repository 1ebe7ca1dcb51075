/* Verifies the certificate of a client, and reads its user and groups. */
#include "net/tls_client.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "net/tls_internal.h"

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
static const char *verify(const struct ml_tls_clients *clients, X509 *cert, STACK_OF(X509) * others)
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
    *out = (struct ml_tls_client){.problem = verify(clients, cert, SSL_get_peer_cert_chain(ssl))};
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
