/* Certificates for certificate requests. Called by the embedded API server's signers. */
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "net/tls_authority_internal.h"

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
    if ((key.len && !tls_certificate_add(cert, issuer, NID_key_usage, ml_buf_cstr(&key))) ||
        (extended.len &&
         !tls_certificate_add(cert, issuer, NID_ext_key_usage, ml_buf_cstr(&extended))))
        return ml_tls_error(err, ML_ETLS, "add usages to a certificate");
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
    int64_t end_s = ml_tls_wall_ns(X509_get0_notAfter(issuer)) / ML_NS_PER_S;
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)order->not_before_s) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)ML_MIN(order->not_after_s, end_s));
}

/* All but the usages and the signature. */
static X509 *certificate_for(X509_REQ *request, X509 *issuer, const struct ml_tls_order *order)
{
    X509 *cert = X509_new();
    if (cert && X509_set_version(cert, X509_VERSION_3) && tls_certificate_set_serial(cert) &&
        set_validity(cert, issuer, order) &&
        X509_set_subject_name(cert, X509_REQ_get_subject_name(request)) &&
        X509_set_issuer_name(cert, X509_get_subject_name(issuer)) &&
        X509_set_pubkey(cert, X509_REQ_get0_pubkey(request)) &&
        tls_certificate_add(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
        tls_certificate_add(cert, issuer, NID_authority_key_identifier, "keyid:always") &&
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
        return ml_tls_error(err, ML_EINVALID, "unable to parse certificate request");
    EVP_PKEY *key = X509_REQ_get0_pubkey(request);
    if (!key || X509_REQ_verify(request, key) != 1)
        return ml_tls_error(err, ML_EINVALID, "unable to verify certificate request signature");
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
        return ml_tls_error(err, ML_ETLS, "make a certificate");
    r = add_usages(cert, issuer, order, err);
    if (r < 0)
        return r;
    if (!X509_sign(cert, self->pair.key, EVP_sha256()))
        return ml_tls_error(err, ML_ETLS, "sign a certificate");
    ML_AUTO_FREE char *pem = tls_certificate_pem(cert);
    if (!pem)
        return ml_tls_error(err, ML_ETLS, "write a certificate");
    ml_buf_puts(out, pem);
    return 0;
}
