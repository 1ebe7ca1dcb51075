/* L2 net. HTTP in structs: header fields, requests of a client, requests and answers of a server,
 * and its limits. Their functions: http_client.h and http_server.h. */
#pragma once

#include "base/err.h"

/* A field of a request's or an answer's head. */
struct ml_http_header {
    const char *name;
    const char *value;
};

/* RFC 9110, 5.6.2: is this a valid method or field name? */
static inline bool ml_http_is_token(const char *text)
{
    return *text && text[strspn(text, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '\0';
}

/* ---- for clients ---- */

/* The server's CA and the client's certificate. PEM texts, borrowed while the struct is in use.
 * Calls with the same `struct ml_http_tls *` share connections; calls with another one never do. */
struct ml_http_tls {
    struct ml_str ca_pem;   /* empty: those of ca_file */
    const char *ca_file;    /* PEM; parsed once for all connections. NULL: libcurl's default */
    struct ml_str cert_pem; /* client certificate, with key_pem or not at all */
    struct ml_str key_pem;
    const char *server_name; /* SNI and verified name instead of the URL's host, or NULL */
    bool insecure;           /* verify nothing */
    const char *proxy_url;   /* http, https or socks5; NULL: environment; "": none */
    uint64_t generation;     /* raise it when the contents change: old connections retire */
};

/* 0 means none for each deadline. `idle_ms` counts from the last byte of the body. */
struct ml_http_deadlines {
    int64_t connect_ms;    /* name, TCP and TLS */
    int64_t first_byte_ms; /* from sending to the answer's head */
    int64_t idle_ms;
    int64_t total_ms;
};

struct sockaddr;
struct ssl_st;

struct ml_http_request {
    const char *method;
    const char *url;
    const struct ml_http_header *headers;
    size_t header_count;
    struct ml_str body; /* copied */
    const struct ml_http_tls *tls;
    struct ml_http_deadlines deadlines;
    bool streaming; /* a list or watch: a connection of its own, kept for the next one */
    /* A proxy passes on the request of somebody else: Host and Content-Length are the only fields
     * of ours, and it is sent in HTTP/1.1. */
    bool passed_on;
    /* In HTTP/2 from the first byte, as gRPC speaks it, also without TLS; on a connection of its
     * own that no other request gets. A server of HTTP/1.1 is no server then: ML_ENETWORK. */
    bool http2;
    /* Called when a connection is ready, just before the request is written to it: non-zero ends
     * the call with that error, and nothing is sent. May be NULL. `context` is the call's. */
    int (*may_send)(void *context, struct ml_err *err);
    /* A socket that can connect to this address, which may be in another network than the process;
     * -1: there is none, and the call fails. NULL: an ordinary one. `context` is the call's. */
    int (*open_socket)(void *context, const struct sockaddr *address);
    /* Asked about each address of the server that a connection is to be made to, as its name
     * resolves to it: non-zero and the address is not used; the call fails with that error when
     * there is no other. Not asked about the address of a proxy. NULL: all may be used. `context`
     * is the call's. */
    int (*may_connect)(void *context, const struct sockaddr *address, struct ml_err *err);
    /* Called for each field of the answer's head, in their order, before head(). Slices live during
     * the call. May be NULL. `context` is the call's. */
    void (*field)(void *context, struct ml_str name, struct ml_str value);
    /* The same for each field behind the answer's body, before done(). */
    void (*trailer)(void *context, struct ml_str name, struct ml_str value);
};

/* ---- for servers ---- */

/* A request and the way to answer it. Lives until its answer has ended (ml_http_answer,
 * ml_http_finish, ml_http_abort) or closed() has been called, whichever comes first. */
struct ml_http_exchange {
    const char *method; /* "GET", "PATCH", …: those of RFC 9110 and PATCH; others get 405 */
    const char *path;   /* as sent, still %-encoded; "*" possible */
    const char *query;  /* as sent, behind the '?'; "" when there is none */
    const struct ml_http_header *headers; /* in the order sent, names as sent */
    size_t header_count;
    struct ml_str body;
    struct ssl_st *tls; /* OpenSSL's SSL of the connection, for tls.h; NULL: plain */
    const char *client; /* its address */

    /* To set: called once when the client disconnects, or the server is freed, before the answer
     * has ended. The exchange is freed when it returns; nothing may be sent. May be NULL. */
    void (*closed)(void *context);
    /* To set before ml_http_upgrade: what the client sends from then on, piece by piece. */
    void (*received)(void *context, struct ml_str bytes);
    void *context;
};

struct ml_http_answer {
    int status;
    const char *content_type;             /* NULL: none */
    const struct ml_http_header *headers; /* copied; one with a line end is left out */
    size_t header_count;
    struct ml_str body; /* copied; of a HEAD only its length is sent */
};

/* Limits of a server; 0 gives the default. A request that the handler has, and a stream, have no
 * limit in time: that is the handler's to choose. */
struct ml_http_limits {
    size_t header_bytes_max; /* 64 KiB: request line and fields; beyond: 400 */
    size_t body_bytes_max;   /* 3 MiB; beyond: 413, sent before more than this and the header's
                              * limit has been read; chunk framing counts */
    int64_t arrival_ms;      /* 30 s, from accept, or a request's first byte, to its last; also how
                              * long a client may read nothing of an answer that has ended */
    int64_t idle_ms;         /* 180 s between requests; longer than clients keep connections (Go:
                              * 90 s, libcurl: 118 s), so that they close first */
    /* 1024, and no more than a quarter of the descriptors a process may have. Beyond: the one that
     * has waited longest without a request under way is closed; if all have one, the new one is. */
    size_t connections_max;
    /* 64 MiB: memory of all answers together that wait to be sent. Beyond: closes the connection
     * that has taken nothing of its answer for the longest time, and the next, but not the one
     * written to. */
    size_t unsent_bytes_max;
    /* 64 MiB, of all requests under way together. Beyond: closes the one that has been arriving
     * for the longest time, and the next. */
    size_t arrived_bytes_max;
};
