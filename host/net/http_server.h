/* L2 net. A streaming HTTP/1.1 server on libevent's evhttp, plain or over TLS. The handler
 * gets a whole request and answers at once or later, with one body or piece by piece. It is
 * notified when the client disconnects, also while nothing is being sent.
 *
 * These heads are answered with 400: with a NUL, with field names that are not tokens, with several
 * Hosts or Content-Lengths, with a length that is not a number or comes with a Transfer-Encoding.
 *
 * Keep-alive, pipelining, chunked requests, `Expect: 100-continue` and HTTP/1.0 work. A client that
 * closes its sending side counts as disconnected.
 *
 * When the process runs out of descriptors nothing is accepted for up to a second. */
#pragma once

#include "net/http.h"
#include "net/loop.h"

struct ml_http_server;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

/* Called for each request; must answer the exchange, now or later. */
typedef void ml_http_handle(void *context, struct ml_http_exchange *exchange);

struct ml_http_server_opts {
    struct ml_loop *loop;
    /* As ml_tcp_listen takes it; or "@NAME", a local socket (local.h), which answers processes of
     * this user and of root alone. */
    const char *address;
    struct ssl_ctx_st *tls; /* NULL: plain. The server takes its own reference */
    ml_http_handle *handle;
    void *context;
    /* For the server's own answers (400, 405, 413, 501): fills in content_type and body, which
     * live as long as the server. NULL: "text/plain" and the reason phrase of the status. */
    void (*refusal)(void *context, int status, struct ml_http_answer *answer);
    struct ml_http_limits limits;
};

/* ML_EINVALID, ML_EIO: as ml_tcp_listen, and ml_local_listen. */
ML_NODISCARD int ml_http_server_new(const struct ml_http_server_opts *opts,
                                    struct ml_http_server **out, struct ml_err *err);
/* Closes all connections; closed() is called for exchanges under way. Not inside a handler. */
void ml_http_server_free(struct ml_http_server *server);
/* Of a server with TLS: connections that begin from now on have this context. It takes its own
 * reference. */
void ml_http_server_set_tls(struct ml_http_server *server, struct ssl_ctx_st *tls);
int ml_http_server_port(const struct ml_http_server *server);
int ml_http_server_listener(const struct ml_http_server *server);       /* the socket; borrowed */
size_t ml_http_server_connections(const struct ml_http_server *server); /* open now */
/* Memory of answers that wait to be sent, in bytes. */
size_t ml_http_server_unsent(const struct ml_http_server *server);

/* A field of the request by name, in any case; NULL when absent. */
const char *ml_http_header(const struct ml_http_exchange *exchange, const char *name);
/* A path or a query, as sent, without its %-encoding. The caller frees it. NULL: it holds a NUL,
 * and would mean something else cut off there. */
char *ml_http_decode(const char *raw);
/* Overwrites the values of a field with a secret, such as Authorization, after they were used. The
 * memory that the connection was read into is not wiped. */
void ml_http_forget_header(struct ml_http_exchange *exchange, const char *name);

/* Sends the whole answer. The exchange is over. */
void ml_http_answer(struct ml_http_exchange *exchange, const struct ml_http_answer *answer);

/* Begins an answer of unknown length: chunked, or for HTTP/1.0 ended by the connection's
 * close. With a Content-Length among the headers, the caller writes so much, or aborts.
 * `head->body` is not sent. The request's body is gone from here on. */
void ml_http_stream(struct ml_http_exchange *exchange, const struct ml_http_answer *head);
/* Adds a piece and returns the bytes now waiting in this process to be sent, SIZE_MAX / 2 when the
 * connection has been cut (unsent_bytes_max). If that is too much, the caller calls ml_http_abort.
 * A piece that is written to several streams in a row is kept once. */
size_t ml_http_write(struct ml_http_exchange *exchange, struct ml_str piece);
void ml_http_finish(struct ml_http_exchange *exchange); /* the exchange is over */

/* Answers 101 Switching Protocols with these headers (one with a line end is left out): from here
 * on the connection is raw bytes, from the client by received(), to it by ml_http_write, which adds
 * no framing. ml_http_finish closes it once all has been sent, and nothing is received any more. It
 * has no limit in time. A client that closes its sending side counts as disconnected here, too.
 * False: HTTP/1.0 and HEAD have no upgrades, and the exchange is still to be answered. */
ML_NODISCARD bool ml_http_upgrade(struct ml_http_exchange *exchange,
                                  const struct ml_http_header *headers, size_t count);
/* Of an upgraded exchange: while paused nothing is received, and the client has to wait. Its
 * disconnecting is not noticed either, unless something is written. */
void ml_http_pause(struct ml_http_exchange *exchange, bool paused);

/* Cuts the connection, whatever has been sent so far; closed() is not called. The exchange is
 * over. */
void ml_http_abort(struct ml_http_exchange *exchange);
