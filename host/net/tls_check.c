#include "net/tls_check.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <time.h>

/* Frees what a variable points at when it leaves scope. */
#define FREE_ON_EXIT(type, release)                                                                \
    static void type##_release(type **pp)                                                          \
    {                                                                                              \
        release(*pp);                                                                              \
    }
FREE_ON_EXIT(X509, X509_free)
FREE_ON_EXIT(EVP_PKEY, EVP_PKEY_free)
FREE_ON_EXIT(BIO, BIO_free_all)

/* Nobody is there to type one; without this, OpenSSL would ask the terminal. */
static int no_password(char *out, int size, int writing, void *context)
{
    (void)out, (void)size, (void)writing, (void)context;
    return -1;
}

static int fail(struct ml_err *err, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ml_err_set(err, ML_EINVALID, "%s%s%s", what, reason ? ": " : "", reason ? reason : "");
    ERR_clear_error();
    return ML_EINVALID;
}

static BIO *open_text(struct ml_str text)
{
    BIO *bio = BIO_new_mem_buf(text.ptr ? text.ptr : "", (int)text.len);
    ml_assert(bio != NULL);
    return bio;
}

static int64_t wall_ns(const ASN1_TIME *time)
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
    ML_AUTO(BIO_release) BIO *cert_text = open_text(cert_pem);
    ML_AUTO(BIO_release) BIO *key_text = open_text(key_pem);
    ML_AUTO(X509_release)
    X509 *cert = PEM_read_bio_X509(cert_text, NULL, no_password, NULL);
    if (!cert)
        return fail(err, "the certificate cannot be read");
    ML_AUTO(EVP_PKEY_release)
    EVP_PKEY *key = PEM_read_bio_PrivateKey(key_text, NULL, no_password, NULL);
    if (!key)
        return fail(err, "the key cannot be read");
    if (X509_check_private_key(cert, key) != 1)
        return fail(err, "certificate and key do not belong together");
    out->not_before_ns = wall_ns(X509_get0_notBefore(cert));
    out->not_after_ns = wall_ns(X509_get0_notAfter(cert));
    return 0;
}

int ml_tls_check_ca(struct ml_str pem, struct ml_err *err)
{
    ML_AUTO(BIO_release) BIO *text = open_text(pem);
    int count = 0;
    for (X509 *cert; (cert = PEM_read_bio_X509(text, NULL, no_password, NULL)); count++)
        X509_free(cert);
    /* What ends the list is the end of the text, or something that is no certificate. */
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    if (count == 0 || !at_end)
        return fail(err, "the CA certificates cannot be read");
    ERR_clear_error();
    return 0;
}
