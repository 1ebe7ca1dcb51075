/* L3 kube. Finds the API server and our credentials: in kubeconfig files, or in the
 * service account of the pod that moonloop runs in. Rules as client-go's clientcmd and rest
 * packages.
 *
 * ml_credentials (credentials.h) keeps the result up to date. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"

struct ml_kubeconfig_opts {
    const char *path;    /* --kubeconfig, or NULL */
    const char *context; /* --context, or NULL: current-context */
};

#define ML_EXEC_V1      "client.authentication.k8s.io/v1"
#define ML_EXEC_V1BETA1 "client.authentication.k8s.io/v1beta1"

/* Texts that the list owns; `items` is NULL, or has a NULL behind the last. */
struct ml_kubelist {
    char **items;
    size_t count;
};

/* The user's exec plugin: which program is asked for credentials, and how. */
struct ml_exec_config {
    struct ml_kubelist argv; /* begins with a path, or a name to look up in PATH */
    struct ml_kubelist env;  /* "NAME=value" */
    char *api_version;
    char *install_hint;        /* or NULL */
    char *cluster_config;      /* JSON of the cluster's extension, or NULL */
    bool provide_cluster_info; /* to the plugin */
};

/* To read; credentials.c alone changes it once it was loaded. */
struct ml_kubeconfig {
    char *server;                         /* "https://host:port" */
    char *ns;                             /* "default" */
    char *source;                         /* where all this comes from, for messages */
    bool in_cluster;                      /* from a pod's service account */
    struct ml_http_tls tls;               /* its texts are the kubeconfig's own */
    char *authorization;                  /* header value or NULL */
    char *token_file;                     /* where it comes from, or NULL */
    char *ca_file, *cert_file, *key_file; /* the same; NULL: never read again */
    struct ml_http_header *impersonation; /* headers, strings owned */
    size_t impersonation_count;
    struct ml_kubelist read_from; /* kubeconfig files, without pipes; none in a pod */
    char *context;                /* its name; NULL in a pod */
    struct ml_exec_config *exec;  /* the plugin that gives a token or certificate, or NULL */
};

/* The exec plugin's program, for messages. */
static inline const char *ml_exec_command(const struct ml_kubeconfig *config)
{
    return config->exec->argv.items[0];
}

/* Order: --kubeconfig (must exist), $KUBECONFIG (a list; missing files skipped; the first file
 * that defines an entry wins as a whole), in-cluster (unless a context is named),
 * ~/.kube/config. ML_EINVALID: a file that cannot be read or understood, an unknown context,
 * contradictory credentials, something not supported; the message names the file and the
 * entry. ML_ENOT_FOUND: none of the four. */
ML_NODISCARD int ml_kubeconfig_load(const struct ml_kubeconfig_opts *opts,
                                    struct ml_kubeconfig **out, struct ml_err *err);
void ml_kubeconfig_free(struct ml_kubeconfig *config); /* wipes its secrets; NULL is fine */

/* The files that are read again while it is in use; strings borrowed. Returns how many. */
#define ML_KUBECONFIG_FILES_MAX 36
size_t ml_kubeconfig_files(const struct ml_kubeconfig *config,
                           const char *out[ML_KUBECONFIG_FILES_MAX]);

/* ---- the steps, for credentials.c, which updates it, and for tests ---- */

#define ML_KUBEFILE_SIZE_MAX ((size_t)1024 * 1024)
#define ML_KUBEFILES_MAX     32 /* in $KUBECONFIG */
#define ML_TOKEN_SIZE_MAX    ((size_t)64 * 1024)

/* The variables that ml_kubeconfig_load reads from the process; NULL: not set. */
struct ml_kubeconfig_env {
    const char *kubeconfig;   /* KUBECONFIG */
    const char *home;         /* HOME */
    const char *service_host; /* KUBERNETES_SERVICE_HOST */
    const char *service_port; /* KUBERNETES_SERVICE_PORT */
    const char *account_dir;  /* /var/run/secrets/kubernetes.io/serviceaccount */
};

ML_NODISCARD int ml_kubeconfig_load_env(const struct ml_kubeconfig_opts *opts,
                                        const struct ml_kubeconfig_env *env,
                                        struct ml_kubeconfig **out, struct ml_err *err);

/* Reads the kubeconfig files of `config` once more, with the context that it has. `out` lacks the
 * token of a tokenFile. ML_EINVALID as for ml_kubeconfig_load. */
ML_NODISCARD int ml_kubeconfig_read_again(const struct ml_kubeconfig *config,
                                          struct ml_kubeconfig **out, struct ml_err *err);
/* Changes with the kubeconfig files (inode, size and times); 0: one of them is not there. */
uint64_t ml_kubeconfig_stamp(const struct ml_kubeconfig *config);

/* Reads the token file; on failure what was there stays. */
ML_NODISCARD int ml_kubeconfig_read_token(struct ml_kubeconfig *config, struct ml_err *err);

/* Sets the token of a file or an entry: trimmed, after "Bearer ". ML_EINVALID when it is empty or
 * not valid in a header. */
ML_NODISCARD int ml_kubeconfig_set_bearer(struct ml_kubeconfig *config, struct ml_str token,
                                          struct ml_err *err);

/* Appends the contents of a file that was read before and may have changed: never waits for a
 * writer. ML_ENOT_FOUND: no such file. ML_EIO: cannot be read, or is no regular file. ML_ELIMIT:
 * larger than out->len_max. The message starts with the path. */
ML_NODISCARD int ml_file_read_again(const char *path, struct ml_buf *out, struct ml_err *err);

/* One kubeconfig file as JSON. */
struct ml_kubefile {
    char *path;
    struct ml_buf json; /* an object; empty for an empty file */
    bool again;         /* it was read before: what it names is not waited for */
};

ML_NODISCARD int ml_kubefile_parse(const char *path, struct ml_str yaml, struct ml_kubefile *out,
                                   struct ml_err *err);
void ml_kubefile_fini(struct ml_kubefile *file);

/* Fills server, namespace, tls and credentials from the files. `context` NULL: the first
 * current-context that is set. */
ML_NODISCARD int ml_kubeconfig_resolve(struct ml_kubeconfig *config,
                                       const struct ml_kubefile *files, size_t file_count,
                                       const char *context, struct ml_err *err);
