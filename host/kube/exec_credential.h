/* L3 kube. The input and the output of an exec plugin: the API group client.authentication.k8s.io,
 * v1 and v1beta1. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "kube/kubeconfig.h"

/* Appends the ExecCredential that goes into KUBERNETES_EXEC_INFO, for the plugin of `config`, which
 * is told of the cluster if it asks for it. */
void ml_exec_info_write(const struct ml_kubeconfig *config, struct ml_buf *out);

/* The output of a plugin: a token, a certificate with its key, or both. Secrets. */
struct ml_exec_credential {
    char *token;    /* or NULL */
    char *cert_pem; /* both or none */
    char *key_pem;
    int64_t expires_ns;    /* wall time; INT64_MAX: not given */
    int64_t not_before_ns; /* of the certificate, wall time */
    int64_t not_after_ns;
};

/* Parses the output of a plugin. ML_EINVALID: not an ExecCredential of that apiVersion, without
 * token and certificate, or with a certificate and key that do not belong together. */
ML_NODISCARD int ml_exec_credential_parse(struct ml_str output, const char *api_version,
                                          struct ml_exec_credential *out, struct ml_err *err);
void ml_exec_credential_fini(struct ml_exec_credential *credential); /* wipes it */
