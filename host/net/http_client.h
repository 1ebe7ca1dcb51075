/* L2 net. HTTP client: libcurl's multi interface on the loop. HTTP/2 where the server offers
 * it, connections kept alive and shared, bodies streamed, every wait bounded.
 *
 * Failures come as ML_ENETWORK (refused, reset, cut, no such host), ML_ETLS (certificate or
 * handshake), ML_ETIMEOUT (a deadline below), with a message that names host and cause. An
 * answer with any status code from 200 on is not a failure here. Redirects are not followed. */
#pragma once

#include "net/http.h"
#include "net/loop.h"

struct ml_http_client;
struct ml_http_call; /* one request under way */

struct ml_http_client *ml_http_client_new(struct ml_loop *loop, const char *user_agent);
/* Cancels all calls. Not inside a callback of a call. */
void ml_http_client_free(struct ml_http_client *client);

struct ml_http_head {
    int status;
    int64_t retry_after_ms; /* whole seconds only, as client-go; -1 when absent or not a number */
    int64_t date_s;         /* Unix time in the field Date; 0 when absent or nonsense */
    struct ml_str content_type;
    struct ml_str warning; /* text of the first `Warning: 299` header, or empty */
};

/* Builds an answer's head from its lines, one at a time, skips interim (1xx) answers, and ends at
 * the blank line. An answer that switches protocols, which nothing here asks for, or whose length
 * is not certain, is `bad`. For the client itself, and for a transport that has no socket
 * (cluster/host/transport_embedded.c). */
struct ml_http_head_parser {
    struct ml_http_head head; /* its slices point into the two texts below */
    char *content_type;
    char *warning;
    struct ml_str length; /* the Content-Length; its text is owned */
    const char *bad;      /* why the answer is none; NULL: it is one */
    bool complete;        /* later lines are trailers, which are ignored */
};

void ml_http_head_init(struct ml_http_head_parser *parser);
void ml_http_head_fini(struct ml_http_head_parser *parser);

/* Adds a line with or without its line end. True when it completes the head. */
bool ml_http_head_line(struct ml_http_head_parser *parser, struct ml_str line);

struct ml_http_handler {
    void (*head)(void *context, const struct ml_http_head *head);
    /* Non-zero ends the call: done() comes with that error. Slices live during the call. */
    int (*data)(void *context, struct ml_str piece, struct ml_err *err);
    /* Always the last, unless canceled. `err` NULL: the body ended regularly. The call
     * is freed when this returns. */
    void (*done)(void *context, const struct ml_err *err);
};

/* Starts a request; callbacks come later from the loop, never inside this call. */
struct ml_http_call *ml_http_send(struct ml_http_client *client,
                                  const struct ml_http_request *request,
                                  const struct ml_http_handler *handler, void *context);
/* No callback comes after this. Allowed inside the call's own head() and data(). */
void ml_http_cancel(struct ml_http_call *call);
/* While paused no data() comes, and its deadline stands still; the server has to wait when some 16
 * KiB and the kernel's buffers are full. Allowed inside head() and data(). Only for requests with
 * `passed_on`: libcurl pauses no single stream of an HTTP/2 connection reliably. */
void ml_http_call_pause(struct ml_http_call *call, bool paused);

/* A connection to the server of a URL, made as for a request: by its proxy, with its TLS. The
 * caller speaks on it (websocket.h). No other call gets it. */
struct ml_http_link;

struct ml_http_link_handler {
    void (*open)(void *context);
    void (*received)(void *context, struct ml_str bytes);
    /* Always the last, unless freed: there is no connection, or it broke; `err` NULL: the server
     * closed it. The link is freed when this returns. */
    void (*closed)(void *context, const struct ml_err *err);
};

/* Of the request it takes url, tls, deadlines.connect_ms and may_connect. Callbacks come later from
 * the loop, never inside this call; a link may be freed in them. */
struct ml_http_link *ml_http_connect(struct ml_http_client *client,
                                     const struct ml_http_request *request,
                                     const struct ml_http_link_handler *handler, void *context);
/* Once it is open. Returns the bytes that wait to be sent; with more than 64 MiB it breaks. Its
 * copies are wiped. */
size_t ml_http_link_write(struct ml_http_link *link, struct ml_str bytes);
/* Closes it, whatever waits; before the client is freed. NULL is fine. */
void ml_http_link_free(struct ml_http_link *link);
