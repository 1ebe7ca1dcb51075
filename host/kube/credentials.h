/* L3 kube. The credentials of requests to the API server, for all transports of a host: from
 * the kubeconfig, whose files are read again, and from its exec plugin.
 *
 *   files   read again when they were read 10 s ago (client-go: a minute), and after a refusal;
 *           the kubeconfig itself, with the tokens and certificates in it, when it has changed.
 *           A file that is half written, or does not fit the others, is not used.
 *   plugin  run when there is no credential, shortly before its credential expires, and after a
 *           refusal. One run serves all waiters. Until a credential expires, requests use it while
 *           the plugin runs, and when it fails.
 *
 * It logs new credentials and why others are not used, because no layer above sees this. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/kubeconfig.h"
#include "net/child.h"

/* How programs are run: ml_child_start and ml_child_free, or a test's stand-ins. */
struct ml_exec_runner {
    int (*start)(struct ml_loop *loop, const struct ml_child_opts *opts, struct ml_child **out,
                 struct ml_err *err);
    void (*free)(struct ml_child *child);
};

struct ml_credentials_opts {
    struct ml_loop *loop;
    struct ml_kubeconfig *config; /* borrowed, and kept fresh */
    struct ml_log *log;           /* output of the plugin, and reasons of failures */
    struct ml_metrics *metrics;   /* rest_client_exec_plugin_*, or NULL */
    struct ml_random *random;
    const struct ml_exec_runner *runner; /* of plugins; NULL: real programs */
};

struct ml_credentials;

struct ml_credentials *ml_credentials_new(const struct ml_credentials_opts *opts);
void ml_credentials_free(
    struct ml_credentials *credentials); /* there must be no waiters; NULL is fine */

const char *ml_credentials_server(const struct ml_credentials *credentials); /* "https://…" */

/* The credentials of one request. Valid until control returns to the loop. */
struct ml_identity {
    uint64_t generation;       /* for ml_credentials_rejected */
    const char *authorization; /* value of that header, or NULL */
    const struct ml_http_header *impersonation;
    size_t impersonation_count;
    const struct ml_http_tls *tls; /* the pointer never changes; its contents do */
};

/* A caller that waits for the plugin; embed it, and start it with zeros. */
struct ml_credentials_wait {
    /* From the loop: the credentials, or NULL and why there are none (ML_EUNAUTHORIZED). */
    void (*ready)(void *context, const struct ml_identity *identity, const struct ml_err *err);
    void *context;
    struct ml_list node; /* private */
};

/* True: `out` is filled. False: wait->ready comes later from the loop, never inside this call. */
bool ml_credentials_get(struct ml_credentials *credentials, struct ml_identity *out,
                        struct ml_credentials_wait *wait);
void ml_credentials_cancel_wait(struct ml_credentials_wait *wait); /* ready() comes no more */

/* The server rejected a request of that generation: with 401, or `in_handshake`, where we may also
 * have rejected the server. True: there are, or soon will be, other credentials, so send the
 * request once more. */
bool ml_credentials_rejected(struct ml_credentials *credentials, uint64_t generation,
                             bool in_handshake);
/* The server accepted the credentials: any answer but 401, 407 and 5xx. */
void ml_credentials_accepted(struct ml_credentials *credentials, uint64_t generation);

/* ---- the texts between host and plugin ---- */

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
