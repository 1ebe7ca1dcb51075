/* L8 cli. The API server of the user's kubeconfig, for a command that asks it for a few things and
 * ends. */
#pragma once

#include "cli/command.h"
#include "kube/client.h"

struct ml_api_opts {
    const char *kubeconfig, *context, *ns; /* of the command line, or NULL */
};

/* The rows for the options of a command whose values have a `struct ml_api_opts api`. */
#define ML_API_OPTIONS(values)                                                                     \
    {"--namespace", "NS", "default: that of the kubeconfig's context", ML_OPTION_TEXT,             \
     offsetof(values, api.ns)},                                                                    \
        {"--kubeconfig", "FILE", "default: $KUBECONFIG, in-cluster, ~/.kube/config",               \
         ML_OPTION_TEXT, offsetof(values, api.kubeconfig)},                                        \
    {                                                                                              \
        "--context", "NAME", "of the kubeconfig; default: its current-context", ML_OPTION_TEXT,    \
            offsetof(values, api.context)                                                          \
    }

struct ml_api;

/* Reads the kubeconfig; asks nothing yet. */
ML_NODISCARD int ml_api_open(const struct ml_api_opts *opts, struct ml_api **out,
                             struct ml_err *err);
/* The same with the answers of a snapshot (kube/snapshot.h) in place of a server; no kubeconfig is
 * read. */
ML_NODISCARD int ml_api_open_snapshot(const char *path, struct ml_api **out, struct ml_err *err);
void ml_api_close(struct ml_api *api); /* NULL is fine */

/* Keeps all answers to reads from now on, which are of this namespace (NULL: of all); before
 * ml_api_operator_opts. */
ML_NODISCARD int ml_api_record(struct ml_api *api, const char *ns, struct ml_err *err);
/* Writes what was kept, as ml_snapshot_write. */
ML_NODISCARD int ml_api_write_snapshot(const struct ml_api *api, const char *path,
                                       struct ml_err *err);

/* That of the options, or else of the kubeconfig; of a snapshot its own, or NULL: all. */
const char *ml_api_namespace(const struct ml_api *api);
int64_t ml_api_now(struct ml_api *api); /* wall clock, ns */

/* Sends a request and waits for its answer, 30 s at most; `body` becomes it. A
 * request without an answer, or refused credentials, names the server in `err`. */
ML_NODISCARD int ml_api_ask(struct ml_api *api, struct ml_client_request *request,
                            struct ml_buf *body, struct ml_err *err);

/* Finds the kind that a person names: by its kind or its plural, in one group or in all: "Site",
 * "sites", "Site.example.com"; of the core group "Event.v1". It is that of the first version which
 * the server prefers, and valid until ml_api_close. ML_ENOT_FOUND: the server has none.
 * ML_EINVALID: no such name can be, or kinds in several groups have it; `err` says what to write
 * instead. */
ML_NODISCARD int ml_api_find_kind(struct ml_api *api, struct ml_str word,
                                  const struct ml_kind **out, struct ml_err *err);

/* Fills in all that an operator of the command needs to use this API server; borrowed. */
struct ml_operator_opts;
void ml_api_operator_opts(struct ml_api *api, struct ml_operator_opts *out);

/* Its parts, for connections that the caller makes; borrowed. */
struct ml_api_parts {
    struct ml_loop *loop;
    struct ml_http_client *http;        /* NULL: a snapshot answers */
    struct ml_credentials *credentials; /* likewise */
};
void ml_api_parts(const struct ml_api *api, struct ml_api_parts *out);

/* The exit code for an error of these functions. */
int ml_api_exit_code(const struct ml_err *err);
