/* L6 operator. Answers the questions of a person at a running host: moonloop status, why and trace
 * (cli/why.c). It listens on a local socket, and answers processes of the same user and of root on
 * the same machine, or in the same pod. Only GET; nothing is changed. The answers
 * have names, times, texts of errors and places in scripts, and no data of objects.
 *
 * - /status: {"leads":true,"ready":true,"checks":["[+]site.lua ok: …"],"controllers":[…]}
 * - /why/KIND/NS/NAME and /why/KIND/NAME: {"found":true,"controllers":[…],"runs":[…],"writes":[…]};
 *   a kind by its name, its resource or its singular, in any case
 * - /trace/NUMBER: {"next":NUMBER,"more":false,"missed":0,"entries":[{"run":{…}},{"write":{…}}]},
 *   what was done after this entry of the journal; `next` is for the next question, at once if
 *   there is `more`, and so many entries in between have made room already. /trace/: no entries,
 *   and the `next` of now */
#pragma once

#include "operator/operator.h"

#define ML_INSPECT_SOCKET "moonloop-"

/* The name of the socket of a process in this process id namespace, "moonloop-1.4026531836": pods
 * that share a network have names of their own. The caller frees it. */
char *ml_inspect_socket(const char *pid);

struct ml_inspect;

struct ml_inspect_opts {
    struct ml_loop *loop;
    struct ml_operator *of; /* borrowed */
    /* As in struct ml_endpoints_opts. NULL: the operator's own. */
    bool (*ready)(void *context, struct ml_buf *why);
    void *context;
};

/* ML_EIO: another process has the name. */
ML_NODISCARD int ml_inspect_new(const struct ml_inspect_opts *opts, struct ml_inspect **out,
                                struct ml_err *err);
void ml_inspect_free(struct ml_inspect *inspect); /* before the operator; NULL is fine */

/* The answers as JSON objects, appended to `out`. `why` as `ready` appends it. */
void ml_inspect_status(const struct ml_services *services, const struct ml_scripts *scripts,
                       bool ready, struct ml_str why, struct ml_buf *out);
void ml_inspect_why(const struct ml_services *services, const struct ml_scripts *scripts,
                    struct ml_str kind, struct ml_str key, struct ml_buf *out);
void ml_inspect_trace(const struct ml_journal *journal, uint64_t after, struct ml_buf *out);
