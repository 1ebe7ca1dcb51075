/* cluster. A cluster in one process for a laptop: the embedded API server on loopback, an operator,
 * pods as local processes, and manifests that are applied whenever they are saved.
 *
 *   start   server, controllers and node; its address; manifests; scripts
 *   stop    in reverse: scripts, pods, the address; every file it made is removed */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* All borrowed during the call; lists end with NULL. NULL and 0: the default. */
struct ml_dev_opts {
    const char *const *scripts;    /* paths */
    const char *const *manifests;  /* files or folders to apply */
    const char *const *namespaces; /* that the operator watches; empty: all */
    const char *bind_address;      /* "127.0.0.1:0"; loopback only */
    const char *metrics_address;   /* of /metrics, on loopback; NULL and "0": not served */
    const char *const *logs;       /* pods whose output is printed in full: beginnings of names,
                                      "all", "none" */
    const char *kubeconfig;        /* where to write it; NULL: in a folder of its own */
    const char *data;              /* keep state in this folder; NULL: nowhere */
    const char *pods;              /* "process", "fake", "none"; NULL: as `controllers` says */
    const char *controllers;       /* "all" (default), "none": an API server alone, with no pods */
    const char *max_pods;          /* how many the node takes at once; NULL: 110 */
    const char *const *images;     /* "NAME=PROGRAM[:PATH] ARG…": programs of images */
    const char *pod_network;       /* "own" (default): pod_network.h; "host": the machine's */
    const char *authorization;     /* "AlwaysAllow" (default), "RBAC" */
    const char *audit_log;         /* a file: one line a request; NULL: none */
    const char *log_level;         /* of the host's own log, on standard error */
    const char *const *allow_http; /* origins that scripts may ask */
    const char *http_proxy;        /* NULL: as the environment says */
    const char *http_ca_file;      /* NULL: the system's authorities */
    bool until_idle;               /* end when nothing is left to do */
};

/* Runs until SIGINT, SIGTERM, or idle. Returns an exit code (include/moonloop.h); anything but 0
 * has its reason in `err`. */
ML_NODISCARD int ml_dev_run(const struct ml_dev_opts *opts, struct ml_err *err);
