/* L8 cli. Asks running hosts the questions that operator/inspect.h answers, for the commands that a
 * person types: a host on this machine, or in this pod, at its local socket; or those in a cluster,
 * through the API server, at the port of --inspect-bind-address, by pods/portforward and with a
 * token. */
#pragma once

#include "cli/command.h"

struct ml_ask_opts {
    const char *pid; /* of a host on this machine */
    /* Of hosts in a cluster: one that is not NULL asks there. */
    const char *kubeconfig, *context, *ns, *pod;
    const char *token_of; /* "NAMESPACE/SERVICEACCOUNT", whose token is shown; NULL: our own */
};

/* The rows for the options of a command whose values have a `struct ml_ask_opts ask`. */
#define ML_ASK_OPTIONS(values)                                                                     \
    {"--pid", "PID", "of a host on this machine; default: the only one", ML_OPTION_TEXT,           \
     offsetof(values, ask.pid)},                                                                   \
        {"--namespace", "NS", "ask the pods there; default with the next: moonloop-system",        \
         ML_OPTION_TEXT, offsetof(values, ask.ns)},                                                \
        {"--pod", "NAME", "ask this pod alone", ML_OPTION_TEXT, offsetof(values, ask.pod)},        \
        {"--kubeconfig", "FILE",                                                                   \
         "ask in the cluster of this; default: $KUBECONFIG, in-cluster, ~/.kube/config",           \
         ML_OPTION_TEXT, offsetof(values, ask.kubeconfig)},                                        \
        {"--context", "NAME", "ask in the cluster of this context of the kubeconfig",              \
         ML_OPTION_TEXT, offsetof(values, ask.context)},                                           \
    {                                                                                              \
        "--token-of", "NS/NAME", "show the host a token of this ServiceAccount, not your own",     \
            ML_OPTION_TEXT, offsetof(values, ask.token_of)                                         \
    }

struct ml_ask;

#define ML_ASK_HOSTS_MAX 64

/* Finds the hosts, ML_ASK_HOSTS_MAX at most; `opts` is borrowed. ML_ENOT_FOUND: there is none.
 * ML_EINVALID: several run on this machine, or an option is wrong. Other kinds: the API server does
 * not let us, or does not answer. */
ML_NODISCARD int ml_ask_open(const struct ml_ask_opts *opts, struct ml_ask **out,
                             struct ml_err *err);
void ml_ask_close(struct ml_ask *ask); /* NULL is fine */

size_t ml_ask_count(const struct ml_ask *ask); /* 1 or more */
/* Looks for pods that have come since, when all of the cluster's are asked: hosts with the next
 * numbers; the others keep theirs. If nobody answers, none is found. */
void ml_ask_look_again(struct ml_ask *ask);
/* The pod of a host; NULL: it runs on this machine. */
const char *ml_ask_pod(const struct ml_ask *ask, size_t host);
/* Its process, or its pod, for messages. The caller frees it. */
char *ml_ask_name(const struct ml_ask *ask, size_t host);

/* Sends GET `path`, and appends the answer, which is a JSON object, to `out`; blocks for 30 s at
 * most. ML_EFORBIDDEN, ML_EUNAUTHORIZED: the host does not tell us. ML_ENOT_FOUND: there is no such
 * host, or no such kind there. Others: no answer. */
ML_NODISCARD int ml_ask(struct ml_ask *ask, size_t host, struct ml_str path, struct ml_buf *out,
                        struct ml_err *err);
