/* L2 net. A request that the HTTP server has received, the answer to it, and how much of both it
 * keeps. What is done with an exchange: http_server.h. */
#pragma once

#include "base/str.h"
#include "net/http_header.h"

/* A request and the way to answer it. Lives until its answer has ended (ml_http_answer,
 * ml_http_finish, ml_http_abort) or closed() has been called, whichever comes first. */
struct ml_http_exchange {
    const char *method; /* "GET", "PATCH", …: those of RFC 9110 and PATCH; others get 405 */
    const char *path;   /* as sent, still %-encoded; "*" possible */
    const char *query;  /* as sent, behind the '?'; "" when there is none */
    const char *remote; /* the client's address, "127.0.0.1", without the port */
    const struct ml_http_header *headers; /* in the order sent, names as sent */
    size_t header_count;
    struct ml_str body;

    /* To set: called once when the client has gone, or the server is freed, before the answer
     * has ended. The exchange is gone when it returns; nothing may be sent. May be NULL. */
    void (*closed)(void *context);
    void *context;
};

struct ml_http_answer {
    int status;
    const char *content_type;             /* NULL: none */
    const struct ml_http_header *headers; /* copied; a line end in one makes it be left out */
    size_t header_count;
    struct ml_str body; /* copied; of a HEAD only its length is sent */
};

/* What each means, and its default: http_server.h. */
struct ml_http_limits {
    size_t header_bytes_max;
    size_t body_bytes_max;
    int64_t arrival_ms;
    int64_t idle_ms;
    size_t connections_max;
    size_t unsent_bytes_max;
    size_t arrived_bytes_max;
};
