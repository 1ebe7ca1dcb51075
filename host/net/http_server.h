/* L2 net. A streaming HTTP/1.1 server on libevent's evhttp, plain or over TLS. A request is
 * handed over whole; the handler answers at once or later, with one body or piece by piece,
 * and learns when the client goes away, also while nothing is being sent.
 *
 * A head with a NUL, fields whose names are no tokens, several Hosts or Content-Lengths, a length
 * that is no number or stands beside a Transfer-Encoding are answered with 400.
 *
 * Keep-alive, pipelining, chunked requests, `Expect: 100-continue` and HTTP/1.0 work. A client that
 * closes its sending side counts as gone.
 *
 * Limits (struct ml_http_limits; 0 gives the default):
 *   header_bytes_max   64 KiB     request line and fields; beyond: 400
 *   body_bytes_max     3 MiB      beyond: 413, sent before more than this and the header's limit
 *                                 has been read; chunk framing counts
 *   arrival_ms         30 s       from accept, or a request's first byte, to its last; also how
 *                                 long a client may read nothing of an answer that has ended
 *   unsent_bytes_max   64 MiB     memory of all answers together that wait to be sent; beyond:
 *                                 closes the connection that has taken nothing of its answer for
 *                                 the longest time, and the next, but not the one written to
 *   arrived_bytes_max  64 MiB     of all requests under way together; beyond: closes the one that
 *                                 has been arriving for the longest time, and the next
 *   idle_ms            180 s      between requests; longer than clients keep connections (Go:
 *                                 90 s, libcurl: 118 s), so that they close first
 *   connections_max    1024       or a quarter of the descriptors a process may have; beyond: the
 *                                 one that has waited longest without a request under way is
 *                                 closed; if all have one, the new one is
 * A request under way and a stream have no limit in time: that is the handler's to choose. When
 * the process runs out of descriptors nothing is accepted for up to a second. */
#pragma once

#include "net/http.h"
#include "net/loop.h"

struct ml_http_server;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

/* Is called for each request; sees to it that the exchange is answered, now or later. */
typedef void ml_http_handle(void *context, struct ml_http_exchange *exchange);

struct ml_http_server_opts {
    struct ml_loop *loop;
    const char *address;    /* as ml_tcp_listen takes it */
    struct ssl_ctx_st *tls; /* NULL: plain. The server takes a reference of its own */
    ml_http_handle *handle;
    void *context;
    /* What the server itself answers (400, 405, 413, 501): fills in content_type and body, which
     * live as long as the server. NULL: "text/plain" and the status in words. */
    void (*refusal)(void *context, int status, struct ml_http_answer *answer);
    struct ml_http_limits limits;
};

/* ML_EINVALID, ML_EIO: as ml_tcp_listen. */
ML_NODISCARD int ml_http_server_new(const struct ml_http_server_opts *opts,
                                    struct ml_http_server **out, struct ml_err *err);
/* Closes all connections; closed() is called for exchanges under way. Not inside a handler. */
void ml_http_server_free(struct ml_http_server *server);
int ml_http_server_port(const struct ml_http_server *server);
int ml_http_server_listener(const struct ml_http_server *server);       /* the socket; borrowed */
size_t ml_http_server_connections(const struct ml_http_server *server); /* open now */
/* Memory of answers that wait to be sent, in bytes. */
size_t ml_http_server_unsent(const struct ml_http_server *server);

/* A field of the request by name, in any case; NULL when absent. */
const char *ml_http_header(const struct ml_http_exchange *exchange, const char *name);

/* Answers whole. The exchange is over. */
void ml_http_answer(struct ml_http_exchange *exchange, const struct ml_http_answer *answer);

/* Begins an answer of unknown length: chunked, or for HTTP/1.0 ended by the connection's
 * close. `head->body` is not sent. The request's body is gone from here on. */
void ml_http_stream(struct ml_http_exchange *exchange, const struct ml_http_answer *head);
/* Adds a piece and returns the bytes now waiting in this process to be sent, SIZE_MAX / 2 when the
 * connection has been cut (unsent_bytes_max). A caller to whom it is too much calls ml_http_abort.
 * A piece that is written to one stream after the other is kept once. */
size_t ml_http_write(struct ml_http_exchange *exchange, struct ml_str piece);
void ml_http_finish(struct ml_http_exchange *exchange); /* the exchange is over */

/* Cuts the connection, whatever has been sent so far; closed() is not called. The exchange is
 * over. */
void ml_http_abort(struct ml_http_exchange *exchange);
