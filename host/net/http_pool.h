/* L2 net, private to the HTTP client. A pool is one libcurl multi handle on the loop: the
 * connections of one TLS identity, either for plain requests or for streams. An unused pool
 * closes its connections after a while; a pool whose identity was replaced closes them with its
 * last call. */
#pragma once

#include <curl/curl.h>

#include "net/http_curl.h"
#include "net/loop.h"

struct ml_http_pool {
    struct ml_list node;
    struct ml_http_pools *all;
    CURLM *multi;
    struct ml_timer timer; /* libcurl's own waits */
    struct ml_timer idle;
    size_t calls;
    int *sockets; /* of its connections */
    size_t socket_count;
    bool stale; /* a newer generation took over */

    const struct ml_http_tls *key; /* only compared, never read */
    bool streaming;
    struct ml_http_tls tls; /* our copy: a call may outlive the lender's contents */
    struct ml_http_route route;
};

struct ml_http_pools {
    struct ml_loop *loop;
    struct ml_list list;
    /* A transfer ended. Comes outside of libcurl; removes the handle from its pool. */
    void (*ended)(CURL *easy, CURLcode code);
    bool inside; /* libcurl is on the stack: no handle may be added or removed */
};

void ml_http_pools_init(struct ml_http_pools *pools, struct ml_loop *loop,
                        void (*ended)(CURL *easy, CURLcode code));
void ml_http_pools_fini(struct ml_http_pools *pools); /* every pool must be put back */

/* The pool for this identity (NULL: the default one); give it back with ml_http_pool_put. */
struct ml_http_pool *ml_http_pool_get(struct ml_http_pools *pools, const struct ml_http_tls *tls,
                                      bool streaming);
void ml_http_pool_put(struct ml_http_pool *pool);
/* Later calls with the identity of this pool make connections of their own; calls under way go on
 * with those they have. */
void ml_http_pool_leave_connections(struct ml_http_pool *pool);
/* Has the pool know the sockets that libcurl opens for this transfer, until it closes them. For
 * each transfer, before it is added to pool->multi. */
void ml_http_pool_follow_sockets(struct ml_http_pool *pool, CURL *easy);
/* Has something come on the kept connection, from this port, that the transfer is about to use?
 * Then it was closed, or the server, or somebody between, said something that nobody asked for.
 * libcurl 7.88 would take that for the answer. Always false for a new connection, and for one of
 * HTTP/2. For libcurl's PREREQFUNCTION. */
bool ml_http_pool_connection_is_unclean(const struct ml_http_pool *pool, CURL *easy,
                                        int local_port);
/* Lets a transfer go on whose callback has paused it; what it has held back comes inside. */
CURLcode ml_http_pool_unpause(struct ml_http_pool *pool, CURL *easy);
