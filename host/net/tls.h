/* L2 net. TLS of our own servers, and checks of certificates before they are used. tls_authority.h
 * makes the certificates. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

/* The TLS context of a server with this identity: TLS 1.2 and 1.3, HTTP/1.1. The caller
 * releases it with SSL_CTX_free. ML_EINVALID: not PEM, or certificate and key do not match. */
ML_NODISCARD int ml_tls_server_context(struct ml_str cert_pem, struct ml_str key_pem,
                                       struct ssl_ctx_st **out, struct ml_err *err);

/* From now on clients are asked for a certificate of the CA, which they may have or not. Any
 * certificate is taken here; tls_client.h says whose it is. ML_EINVALID. */
ML_NODISCARD int ml_tls_ask_clients(struct ssl_ctx_st *ctx, struct ml_str ca_pem,
                                    struct ml_err *err);

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

/* Of the first certificate in a text, whoever signed it. ML_EINVALID: there is none. */
ML_NODISCARD int ml_tls_validity_of(struct ml_str cert_pem, struct ml_tls_validity *out,
                                    struct ml_err *err);
/* Did the key of the first certificate in `ca_pem` sign the first in `cert_pem`? */
bool ml_tls_is_signed_by(struct ml_str cert_pem, struct ml_str ca_pem);
/* Is the first certificate one of this host name or address? */
bool ml_tls_has_name(struct ml_str cert_pem, const char *name);

/* 0 when there is at least one certificate in it, and none that cannot be read. ML_EINVALID. */
ML_NODISCARD int ml_tls_check_ca(struct ml_str pem, struct ml_err *err);
