/* L6 operator. The questions of inspect.h at a port on loopback, for people who reach it through
 * the API server (pods/portforward). Each request shows a token. The API server says whose it is (a
 * TokenReview), and what that user may get and list (SubjectAccessReviews); the answer has nothing
 * else.
 *
 * 401: no token, or none that the API server knows. 403, of `why`: the user may not get the object.
 * 404: there is no such question, or no script with the kind. 503: the API server did not answer
 * within 10 s, or refuses the reviews, or 16 requests are under way.
 *
 * The API server's word about a token is used for 10 s, for 64 tokens and 256 decisions each; the
 * token itself is not kept. */
#pragma once

#include "operator/inspect.h"

#define ML_INSPECT_ASKERS_MAX    64
#define ML_INSPECT_DECISIONS_MAX 256
#define ML_INSPECT_UNDER_WAY_MAX 16
#define ML_INSPECT_KEPT_NS       (10 * ML_NS_PER_S)
#define ML_INSPECT_PATIENCE_NS   (10 * ML_NS_PER_S)

struct ml_inspect_reviews;

struct ml_inspect_reviews_opts {
    struct ml_loop *loop;
    struct ml_log *log; /* why the API server does not review */
    /* Sends the reviews. Without a fence: a replica that stands by answers as well. */
    struct ml_client *client;
    const char *address; /* as ml_tcp_listen takes it, on loopback: tokens come in plain text */
    ml_inspect_look *look;
    void *context;
};

/* Borrows all. ML_EINVALID: the address is not one of loopback, or as ml_tcp_listen; ML_EIO. */
ML_NODISCARD int ml_inspect_reviews_new(const struct ml_inspect_reviews_opts *opts,
                                        struct ml_inspect_reviews **out, struct ml_err *err);
void ml_inspect_reviews_free(struct ml_inspect_reviews *reviews); /* NULL is fine */
int ml_inspect_reviews_port(const struct ml_inspect_reviews *reviews);
