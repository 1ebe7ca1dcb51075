/* L3 kube. Asks an exec plugin of a kubeconfig for credentials: one run at a time, bounded in time
 * and output, with a backoff between runs. Rules as client-go's plugin/pkg/client/auth/exec; input
 * and output are of the API group client.authentication.k8s.io, v1 and v1beta1. credentials.c keeps
 * the waiting requests. */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/kubeconfig.h"
#include "net/child.h"

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

/* Parses the output of a plugin. ML_EINVALID: no ExecCredential of that apiVersion, one with
 * neither token nor certificate, or with a certificate and key that do not belong together. */
ML_NODISCARD int ml_exec_credential_parse(struct ml_str output, const char *api_version,
                                          struct ml_exec_credential *out, struct ml_err *err);
void ml_exec_credential_fini(struct ml_exec_credential *credential); /* wipes it */

/* How programs are run: ml_child_start and ml_child_free, or a test's stand-ins. */
struct ml_exec_runner {
    int (*start)(struct ml_loop *loop, const struct ml_child_opts *opts, struct ml_child **out,
                 struct ml_err *err);
    void (*free)(struct ml_child *child);
};

struct ml_exec_plugin;

/* The options of credentials and of their plugin. */
struct ml_credentials_opts {
    struct ml_loop *loop;
    struct ml_kubeconfig *config; /* borrowed, and kept fresh */
    struct ml_log *log;           /* output of the plugin, and reasons of failures */
    struct ml_metrics *metrics;   /* rest_client_exec_plugin_*, or NULL */
    struct ml_random *random;
    const struct ml_exec_runner *runner; /* of plugins; NULL: real programs */
};

/* A run ended; called from the loop. `credential` is the answer of the plugin, whose strings the
 * callee may keep by taking them out, or NULL with the reason in `err` (ML_EUNAUTHORIZED). */
typedef void ml_exec_plugin_done(void *context, struct ml_exec_credential *credential,
                                 const struct ml_err *err);

/* For a kubeconfig that has a plugin. */
struct ml_exec_plugin *ml_exec_plugin_new(const struct ml_credentials_opts *opts,
                                          ml_exec_plugin_done *done, void *context);
void ml_exec_plugin_free(struct ml_exec_plugin *plugin); /* kills a run under way; NULL is fine */

/* Starts a run, unless one is under way or the backoff is not over. Returns whether one is under
 * way now: done() will come, never inside this call. */
bool ml_exec_plugin_run(struct ml_exec_plugin *plugin);
/* The server accepted what it gave: the next run may start at once. Without this call, the next run
 * waits 1 s after the first, twice as long after each further one, at most 60 s. */
void ml_exec_plugin_reset_backoff(struct ml_exec_plugin *plugin);
