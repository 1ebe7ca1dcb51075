/* L2 net. What a client asks for: method, URL, fields and body, whom it trusts, how long it waits.
 */
#pragma once

#include "base/err.h"
#include "net/http_header.h"

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
