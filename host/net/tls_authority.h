/* L2 net. A cluster's certificate authority: made in memory, or kept in a folder. It certifies the
 * cluster's own server, and signs certificate requests. Its key leaves it only for the folder, or
 * for who keeps it. Keys are ECDSA on P-256, from OpenSSL's random generator. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

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

/* ---- servers ---- */

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
/* The same, with an authority that is made for one server and is good for as long; its key is
 * discarded. */
ML_NODISCARD int ml_tls_authority_make(const struct ml_tls_authority_opts *opts,
                                       struct ml_tls_identity *out, struct ml_err *err);
void ml_tls_identity_fini(struct ml_tls_identity *identity); /* the key is wiped */

/* ---- requests ---- */

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
