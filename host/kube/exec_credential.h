/* L3 kube. What an exec plugin is started with and what it answers: the API group
 * client.authentication.k8s.io, v1 and v1beta1. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define ML_EXEC_V1      "client.authentication.k8s.io/v1"
#define ML_EXEC_V1BETA1 "client.authentication.k8s.io/v1beta1"

/* The cluster, for plugins that ask for it. Borrowed texts; NULL: none. */
struct ml_exec_cluster {
    const char *server;
    const char *server_name;
    const char *ca_pem;
    const char *proxy_url;
    const char *config; /* JSON of the cluster's extension client.authentication.k8s.io/exec */
    bool insecure;
};

/* Appends the ExecCredential that goes into KUBERNETES_EXEC_INFO. `cluster` may be NULL. */
void ml_exec_info_write(const char *api_version, const struct ml_exec_cluster *cluster,
                        struct ml_buf *out);

/* What a plugin gave: a token, a certificate with its key, or both. Secrets. */
struct ml_exec_credential {
    char *token;    /* or NULL */
    char *cert_pem; /* both or none */
    char *key_pem;
    int64_t expires_ns;    /* wall time; INT64_MAX: not said */
    int64_t not_before_ns; /* of the certificate, wall time */
    int64_t not_after_ns;
};

/* Reads what a plugin wrote. ML_EINVALID: not an ExecCredential of that apiVersion, without token
 * and certificate, or with a certificate and key that do not belong together. */
ML_NODISCARD int ml_exec_credential_parse(struct ml_str output, const char *api_version,
                                          struct ml_exec_credential *out, struct ml_err *err);
void ml_exec_credential_fini(struct ml_exec_credential *credential); /* wipes it */
