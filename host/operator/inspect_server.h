/* L6 operator. Where the questions of inspect.h are asked: a local socket, which answers processes
 * of the same user and of root on the same machine, or in the same pod; and a port on loopback, for
 * people who reach it through the API server (pods/portforward). Only GET.
 *
 * At the port each request shows a token. The API server says whose it is (a TokenReview), and what
 * that user may get and list (SubjectAccessReviews); the answer has nothing else. 401: no token, or
 * none that the API server knows. Its word about a token is used for 10 s, for 64 tokens and 256
 * decisions each; the token itself is not kept.
 *
 * An answer is made again until all that it depends on is known: decisions, and an object as the
 * API server has it. 503: the API server did not answer within 10 s, or refuses the reviews, or 16
 * requests are under way. Other statuses: inspect.h. */
#pragma once

#include "operator/inspect.h"

#define ML_INSPECT_ASKERS_MAX    64
#define ML_INSPECT_DECISIONS_MAX 256
#define ML_INSPECT_UNDER_WAY_MAX 16
#define ML_INSPECT_KEPT_NS       (10 * ML_NS_PER_S)
#define ML_INSPECT_PATIENCE_NS   (10 * ML_NS_PER_S)

#define ML_INSPECT_SOCKET "moonloop-"

/* The name of the socket of a process in this process id namespace, "moonloop-1.4026531836": pods
 * that share a network have names of their own. The caller frees it. */
char *ml_inspect_socket(const char *pid);

struct ml_inspect_server;

struct ml_inspect_server_opts {
    struct ml_loop *loop;
    struct ml_log *log; /* why the API server does not review */
    /* On loopback, as ml_tcp_listen takes it: tokens come in plain text. NULL: the local socket of
     * this process. */
    const char *address;
    /* Sends the reviews, at the port. Without a fence: a replica that stands by answers as well. */
    struct ml_client *client;
    ml_inspect_look *look;
    void *context;
};

/* Borrows all. ML_EINVALID: the address is not one of loopback, or as ml_tcp_listen; ML_EIO: also
 * if another process has the name of the socket. */
ML_NODISCARD int ml_inspect_server_new(const struct ml_inspect_server_opts *opts,
                                       struct ml_inspect_server **out, struct ml_err *err);
/* Before the operator; NULL is fine. */
void ml_inspect_server_free(struct ml_inspect_server *server);
int ml_inspect_server_port(const struct ml_inspect_server *server);
