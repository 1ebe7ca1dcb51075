/* L2 net. Certificates: TLS of our own servers, checks before they are used, the users of client
 * certificates, and the authority that makes them. */
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

/* ---- a certificate authority ----
 *
 * Made in memory, or kept in a folder. It certifies the cluster's own server, and signs certificate
 * requests. Its key leaves it only for the folder, or for who keeps it. Keys are ECDSA on P-256,
 * from OpenSSL's random generator. */

struct ml_tls_authority;

/* In memory. ML_ETLS: OpenSSL failed, with its reason. */
ML_NODISCARD int ml_tls_authority_new(struct ml_clock *clock, struct ml_tls_authority **out,
                                      struct ml_err *err);
/* FOLDER/ca.crt and FOLDER/ca.key, which nobody else may read; made where they are not there, or
 * where the certificate has expired. ML_EINVALID: unreadable, or not a pair; ML_EIO: cannot be read
 * or written. */
ML_NODISCARD int ml_tls_authority_open(const char *folder, struct ml_clock *clock,
                                       struct ml_tls_authority **out, struct ml_err *err);
/* In memory, good for `valid_s` seconds from now. ML_ETLS. */
ML_NODISCARD int ml_tls_authority_begin(struct ml_clock *clock, int64_t valid_s,
                                        struct ml_tls_authority **out, struct ml_err *err);
/* Of texts that somebody keeps: of `cert_pem` the first certificate. It may have expired.
 * ML_EINVALID: unreadable, or not a pair. */
ML_NODISCARD int ml_tls_authority_read(struct ml_str cert_pem, struct ml_str key_pem,
                                       struct ml_tls_authority **out, struct ml_err *err);
/* Its key for those who keep it, PEM; to free with ml_wipe_free. NULL: OpenSSL failed. */
char *ml_tls_authority_key(const struct ml_tls_authority *authority);
void ml_tls_authority_free(struct ml_tls_authority *authority); /* NULL is fine */

/* The certificate, PEM; lives as long as the authority. */
const char *ml_tls_authority_pem(const struct ml_tls_authority *authority);

struct ml_tls_authority_opts {
    struct ml_clock *clock;
    int64_t valid_s;          /* from now; certificates are also good for the five minutes before,
                               * for clients whose clock is behind */
    const char *const *names; /* host names and addresses beside localhost, 127.0.0.1 and ::1 */
    size_t name_count;
};

struct ml_tls_identity {
    char *ca_pem;   /* clients trust it */
    char *cert_pem; /* the server's */
    char *key_pem;  /* the server's, PKCS #8, not encrypted: a secret */
};

/* A server's. The caller ends `out`. ML_EINVALID: a name that cannot stand in a certificate;
 * ML_ETLS. */
ML_NODISCARD int ml_tls_authority_identify(const struct ml_tls_authority *authority,
                                           const struct ml_tls_authority_opts *opts,
                                           struct ml_tls_identity *out, struct ml_err *err);
/* The same as a TLS context, as ml_tls_server_context makes it. */
ML_NODISCARD int ml_tls_authority_serve(const struct ml_tls_authority *authority,
                                        const struct ml_tls_authority_opts *opts,
                                        struct ssl_ctx_st **out, struct ml_err *err);
/* An identity of an authority that is made for one server and is good for as long; its key is
 * discarded. */
ML_NODISCARD int ml_tls_authority_make(const struct ml_tls_authority_opts *opts,
                                       struct ml_tls_identity *out, struct ml_err *err);
void ml_tls_identity_fini(struct ml_tls_identity *identity); /* the key is wiped */

/* Of a certificate request. */
struct ml_tls_order {
    struct ml_str request;       /* DER of a PKCS #10 request */
    int64_t not_before_s;        /* since 1970 */
    int64_t not_after_s;         /* cut at the end of the authority's own certificate */
    const struct ml_str *usages; /* in Kubernetes' words: "client auth", "digital signature" */
    size_t usage_count;
};

/* Signs a request: its subject, alternative names and key, with the order's usages, and nothing
 * else that the request may ask for. Appends PEM to `out`. As kube-controller-manager's
 * pkg/controller/certificates/authority. ML_EINVALID: no request, one that its key has not signed,
 * or an unknown usage; ML_ETLS. */
ML_NODISCARD int ml_tls_authority_sign(const struct ml_tls_authority *authority,
                                       const struct ml_tls_order *order, struct ml_buf *out,
                                       struct ml_err *err);
