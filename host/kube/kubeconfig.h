/* L3 kube. Where the API server is and which credentials it gets: from kubeconfig files, or from
 * the service account of the pod that moonloop runs in. Rules as client-go's clientcmd and rest
 * packages.
 *
 * This is what was found; ml_credentials (credentials.h) keeps it fresh. */
#pragma once

#include "base/err.h"
#include "net/http_client.h"

struct ml_kubeconfig_opts {
    const char *path;    /* --kubeconfig, or NULL */
    const char *context; /* --context, or NULL: current-context */
};

struct ml_kubeconfig;

/* Order: --kubeconfig (must exist), $KUBECONFIG (a list; missing files skipped; the first file
 * that defines an entry wins as a whole), in-cluster (unless a context is named),
 * ~/.kube/config. ML_EINVALID: a file that cannot be read or understood, an unknown context,
 * contradictory credentials, something not supported; the message names the file and the
 * entry. ML_ENOT_FOUND: none of the four. */
ML_NODISCARD int ml_kubeconfig_load(const struct ml_kubeconfig_opts *opts,
                                    struct ml_kubeconfig **out, struct ml_err *err);
void ml_kubeconfig_free(struct ml_kubeconfig *config);

const char *ml_kubeconfig_server(const struct ml_kubeconfig *config);    /* "https://host:port" */
const char *ml_kubeconfig_namespace(const struct ml_kubeconfig *config); /* "default" */
const char *ml_kubeconfig_source(const struct ml_kubeconfig *config);    /* for messages */
/* insecure-skip-tls-verify: whoever is on the way can read and change everything. */
bool ml_kubeconfig_insecure(const struct ml_kubeconfig *config);
/* The files that are read again while it is in use; strings borrowed. Returns how many. */
#define ML_KUBECONFIG_FILES_MAX 4
size_t ml_kubeconfig_files(const struct ml_kubeconfig *config,
                           const char *out[ML_KUBECONFIG_FILES_MAX]);
/* Does the user have an exec plugin, so that programs have to be started? */
bool ml_kubeconfig_runs_programs(const struct ml_kubeconfig *config);
