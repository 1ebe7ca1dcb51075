/* L2 net. A small server for machines that ask for pages by their path: probes and metrics. Answers
 * are made at once, on the loop; only GET and HEAD. Limits: header 16 KiB, body 64 KiB, the others
 * by default. */
#pragma once

#include "base/buf.h"
#include "net/http_server.h"

#define ML_HTTP_ROUTES_MAX 8

struct ml_http_routes;

struct ml_http_page {
    const char *method;       /* "GET" or "HEAD" */
    const char *path;         /* decoded, without the query */
    const char *query;        /* raw, "" when there is none */
    struct ml_str body;       /* of the request */
    int status;               /* to set; 200 */
    const char *content_type; /* to set; "text/plain; charset=utf-8" */
    struct ml_buf reply;      /* to fill */
};

typedef void ml_http_make_page(void *context, struct ml_http_page *page);

/* `address`, ML_EINVALID and ML_EIO: as ml_tcp_listen. */
ML_NODISCARD int ml_http_routes_new(struct ml_loop *loop, const char *address,
                                    struct ml_http_routes **out, struct ml_err *err);
void ml_http_routes_free(struct ml_http_routes *routes);
/* For its port and its socket; borrowed. */
const struct ml_http_server *ml_http_routes_server(const struct ml_http_routes *routes);

/* `path` matches exactly, or as a prefix when it ends in '/'; the longest match counts. Other paths
 * get 404, methods other than GET and HEAD get 405. `path` is borrowed; at most ML_HTTP_ROUTES_MAX.
 */
void ml_http_routes_add(struct ml_http_routes *routes, const char *path, ml_http_make_page *make,
                        void *context);
