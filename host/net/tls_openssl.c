/* Called by the files that use OpenSSL's certificates. */
#include "net/tls_openssl.h"

#include <openssl/pem.h>
#include <time.h>

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
