/* L2 net. HTTP in structs: a field; what a client asks for; what a server is asked, what it
 * answers, and how much of both it keeps. What is done with them: http_client.h and http_server.h.
 */
#pragma once

#include "base/err.h"

/* A field of a request's or an answer's head. */
struct ml_http_header {
    const char *name;
    const char *value;
};

/* RFC 9110, 5.6.2: what a method or the name of a field may be. */
static inline bool ml_http_is_token(const char *text)
{
    return *text && text[strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

/* ---- for clients ---- */

/* How to trust and to be trusted. PEM texts, borrowed while the struct is in use. Calls with
 * the same `struct ml_http_tls *` share connections; with another one never do. */
struct ml_http_tls {
    struct ml_str ca_pem;   /* empty: the system's roots */
    struct ml_str cert_pem; /* client certificate, with key_pem or not at all */
    struct ml_str key_pem;
    const char *server_name; /* SNI and verified name instead of the URL's host, or NULL */
    bool insecure;           /* verify nothing */
    const char *proxy_url;   /* http, https or socks5; NULL: environment */
    uint64_t generation;     /* raise it when the contents change: old connections retire */
};

/* 0 means none for each deadline. `idle_ms` counts from the last byte of the body. */
struct ml_http_deadlines {
    int64_t connect_ms;    /* name, TCP and TLS */
    int64_t first_byte_ms; /* from sending to the answer's head */
    int64_t idle_ms;
    int64_t total_ms;
};

struct ml_http_request {
    const char *method;
    const char *url;
    const struct ml_http_header *headers;
    size_t header_count;
    struct ml_str body; /* copied */
    const struct ml_http_tls *tls;
    struct ml_http_deadlines deadlines;
    bool streaming; /* a list or watch: a connection of its own, kept for the next one */
    /* Asked once more when a connection is there and the request is about to be written to it:
     * non-zero ends the call with that error, and nothing is sent. NULL: no question. `context`
     * is the call's. */
    int (*may_send)(void *context, struct ml_err *err);
};

/* ---- for servers ---- */

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
