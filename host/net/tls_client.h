/* L2 net. The user of a client certificate (ml_tls_ask_clients): its common name; organizations are
 * groups. As kube-apiserver with --client-ca-file (apiserver/pkg/authentication/request/x509), the
 * certificate is verified for each request, so that it ends when it expires, and not with the
 * connection. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

struct ssl_st; /* OpenSSL's SSL */

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
