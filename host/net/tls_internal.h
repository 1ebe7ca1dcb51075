/* L2 net, private to tls*.c. Helpers for OpenSSL's certificates: endings for ML_AUTO, errors, PEM.
 */
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/clock.h"
#include "base/err.h"

/* Frees what a variable points at when it leaves scope. */
#define ML_TLS_RELEASE(type, release)                                                              \
    static inline void type##_release(type **pp)                                                   \
    {                                                                                              \
        release(*pp);                                                                              \
    }
ML_TLS_RELEASE(X509, X509_free)
ML_TLS_RELEASE(X509_REQ, X509_REQ_free)
ML_TLS_RELEASE(X509_STORE, X509_STORE_free)
ML_TLS_RELEASE(X509_STORE_CTX, X509_STORE_CTX_free)
ML_TLS_RELEASE(EVP_PKEY, EVP_PKEY_free)
ML_TLS_RELEASE(BIO, BIO_free_all)
ML_TLS_RELEASE(BIGNUM, BN_free)
ML_TLS_RELEASE(SSL_CTX, SSL_CTX_free)

/* "WHAT: OpenSSL's reason". Returns `kind`. */
int ml_tls_error(struct ml_err *err, int kind, const char *what);

/* For OpenSSL's readers of PEM: nobody is there to type a password. */
int ml_tls_no_password(char *out, int size, int writing, void *context);
/* A reader of `text`, which is borrowed. */
BIO *ml_tls_open_pem(struct ml_str text);
/* ns since 1970; 0 for what is no time. */
int64_t ml_tls_wall_ns(const ASN1_TIME *time);

/* A certificate and its key. */
struct ml_tls_pair {
    X509 *cert;
    EVP_PKEY *key;
};

/* `out` is to be ended in either case. ML_EINVALID: unreadable, or of two pairs. */
ML_NODISCARD int ml_tls_pair_read(struct ml_str cert_pem, struct ml_str key_pem,
                                  struct ml_tls_pair *out, struct ml_err *err);
void ml_tls_pair_fini(struct ml_tls_pair *pair);
