/* L2 net. A small HTTP server on libevent's evhttp, for probes and metrics. Answers are made
 * at once, on the loop. Limits: header 16 KiB, body as given, idle connection 30 s. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "net/loop.h"

struct ml_http_server;

struct ml_http_exchange {
    const char *method;
    const char *path;  /* decoded, without the query */
    const char *query; /* raw, "" when there is none */
    struct ml_str body;
    int status;               /* to set; 200 */
    const char *content_type; /* to set; "text/plain; charset=utf-8" */
    struct ml_buf reply;      /* to fill */
};

typedef void ml_http_handle(void *context, struct ml_http_exchange *exchange);

/* Listens on "host:port", ":port" (all addresses) or port 0 for a free one. ML_EINVALID: no
 * such form; ML_EIO: cannot bind, with the reason. */
ML_NODISCARD int ml_http_server_new(struct ml_loop *loop, const char *address,
                                    struct ml_http_server **out, struct ml_err *err);
void ml_http_server_free(struct ml_http_server *server);
int ml_http_server_port(const struct ml_http_server *server);

/* `path` matches exactly, or as a prefix when it ends in '/'; the longest match counts. What
 * matches nothing gets 404, methods other than GET and HEAD get 405. `path` is copied. */
void ml_http_server_route(struct ml_http_server *server, const char *path, ml_http_handle *handle,
                          void *context);
