/* L2 net. TLS of our own servers, checks of certificates before they are used, and the users of
 * client certificates. tls_authority.h makes the certificates. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

struct ssl_ctx_st; /* OpenSSL's SSL_CTX */
struct ssl_st;     /* OpenSSL's SSL */

/* The TLS context of a server with this identity: TLS 1.2 and 1.3, HTTP/1.1. The caller
 * releases it with SSL_CTX_free. ML_EINVALID: not PEM, or certificate and key do not match. */
ML_NODISCARD int ml_tls_server_context(struct ml_str cert_pem, struct ml_str key_pem,
                                       struct ssl_ctx_st **out, struct ml_err *err);

/* From now on clients are asked for a certificate of the CA, which they may have or not. Any
 * certificate is taken here; ml_tls_client_of says whose it is. ML_EINVALID. */
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

/* 0 when it has at least one certificate, and all can be read. Else ML_EINVALID. */
ML_NODISCARD int ml_tls_check_ca(struct ml_str pem, struct ml_err *err);

/* ---- clients ----
 *
 * The user of a client certificate (ml_tls_ask_clients): its common name; organizations are groups.
 * As kube-apiserver with --client-ca-file (apiserver/pkg/authentication/request/x509), the
 * certificate is verified for each request, so that it ends when it expires, and not with the
 * connection. */

/* The authorities whose certificates count. */
struct ml_tls_clients;

/* `clock` is borrowed. ML_EINVALID: no CA certificate. */
ML_NODISCARD int ml_tls_clients_new(struct ml_str ca_pem, struct ml_clock *clock,
                                    struct ml_tls_clients **out, struct ml_err *err);
void ml_tls_clients_free(struct ml_tls_clients *clients); /* NULL is fine */

struct ml_tls_client {
    const char *problem;   /* why nobody is believed to be behind it, in Go's words; NULL: good */
    struct ml_buf name;    /* the last common name, UTF-8; empty: there is none */
    struct ml_buf *groups; /* organizations, in their order */
    size_t group_count;
    char sha256[65]; /* of the certificate, in hexadecimal */
};

/* False when the client shows none, or there is no TLS (NULL); else the caller ends `out`. */
bool ml_tls_client_of(const struct ml_tls_clients *clients, struct ssl_st *ssl,
                      struct ml_tls_client *out);
void ml_tls_client_fini(struct ml_tls_client *client);
