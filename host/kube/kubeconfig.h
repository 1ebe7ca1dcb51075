/* L3 kube. Where the API server is and how to show who we are: kubeconfig files or the
 * service account of the pod we run in. Rules as client-go's clientcmd and rest packages. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "net/http_client.h"

struct ml_kubeconfig_opts {
    const char *path;    /* --kubeconfig, or NULL */
    const char *context; /* --context, or NULL: current-context */
};

/* Credentials as they stand now; see ml_kubeconfig_refresh. */
struct ml_kubeconfig;

/* Order: --kubeconfig (must exist), $KUBECONFIG (a list; missing files skipped; the first file
 * that defines an entry wins as a whole), in-cluster (unless a context is named),
 * ~/.kube/config. ML_EINVALID: a file that cannot be read or understood, an unknown context,
 * contradictory credentials, something not supported; the message names the file and the
 * entry. ML_ENOT_FOUND: none of the four. */
ML_NODISCARD int ml_kubeconfig_load(const struct ml_kubeconfig_opts *opts, struct ml_clock *clock,
                                    struct ml_kubeconfig **out, struct ml_err *err);
void ml_kubeconfig_free(struct ml_kubeconfig *config);

const char *ml_kubeconfig_server(const struct ml_kubeconfig *config);    /* "https://host:port" */
const char *ml_kubeconfig_namespace(const struct ml_kubeconfig *config); /* "default" */
const char *ml_kubeconfig_source(const struct ml_kubeconfig *config);    /* for messages */
const struct ml_http_tls *ml_kubeconfig_tls(const struct ml_kubeconfig *config);

/* The value of the Authorization header, or NULL. Reads a token file again when what we have
 * is older than 50 s (client-go: one minute less ten seconds); keeps the last good token when
 * reading fails or gives an empty file. Valid until the next call. */
const char *ml_kubeconfig_authorization(struct ml_kubeconfig *config);

/* After a 401: forget what was read, so that the next call reads again. */
void ml_kubeconfig_refresh(struct ml_kubeconfig *config);
