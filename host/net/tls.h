/* L2 net. Certificates: makes them for our own server, and checks others before they are used. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

/* ---- an authority ----
 *
 * For one server, made in memory: its certificate for clients to trust, and the server's
 * certificate and key. The authority's key is discarded after it has signed, so that nothing else
 * can be issued. Keys are ECDSA on P-256, from OpenSSL's random generator. */

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

struct ml_tls_authority_opts {
    struct ml_clock *clock;
    int64_t valid_s;          /* from now; certificates are also good for the five minutes before,
                               * for clients whose clock is behind */
    const char *const *names; /* host names and addresses beside localhost, 127.0.0.1 and ::1 */
    size_t name_count;
};

struct ml_tls_identity {
    char *ca_pem;   /* what clients trust */
    char *cert_pem; /* the server's */
    char *key_pem;  /* the server's, PKCS #8, not encrypted: a secret */
};

/* The caller ends `out`. ML_EINVALID: a name that cannot stand in a certificate; ML_ETLS:
 * OpenSSL failed, with its reason. */
ML_NODISCARD int ml_tls_authority_make(const struct ml_tls_authority_opts *opts,
                                       struct ml_tls_identity *out, struct ml_err *err);
void ml_tls_identity_fini(struct ml_tls_identity *identity); /* the key is wiped */

/* The TLS context of a server with this identity: TLS 1.2 and 1.3, HTTP/1.1. The caller
 * releases it with SSL_CTX_free. ML_EINVALID: not PEM, or certificate and key do not match. */
ML_NODISCARD int ml_tls_server_context(struct ml_str cert_pem, struct ml_str key_pem,
                                       struct ssl_ctx_st **out, struct ml_err *err);

/* ---- checks ----
 *
 * Files that are replaced while the process runs may be read half written, or one of a pair may be
 * new and the other old. */

/* Of a certificate: wall time, ns since 1970. */
struct ml_tls_validity {
    int64_t not_before_ns;
    int64_t not_after_ns;
};

/* 0 when both are PEM, can be read without a password and belong together; `out` is the first
 * certificate's. ML_EINVALID names the problem. */
ML_NODISCARD int ml_tls_check_pair(struct ml_str cert_pem, struct ml_str key_pem,
                                   struct ml_tls_validity *out, struct ml_err *err);

/* 0 when there is at least one certificate in it, and none that cannot be read. ML_EINVALID. */
ML_NODISCARD int ml_tls_check_ca(struct ml_str pem, struct ml_err *err);
