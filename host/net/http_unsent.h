/* L2 net, private to http_server.c and http_connection.c. What waits to be sent to clients. A piece
 * of a stream that many of them get is kept once: a thousand who watch the same cost the memory of
 * one. */
#pragma once

#include <event2/buffer.h>

#include "base/str.h"

/* Memory of a server's answers. */
struct http_unsent;

struct http_unsent *http_unsent_new(void);
/* The server ends. The memory goes with what is left to send: libevent frees buffers later than
 * their connections. */
void http_unsent_free(struct http_unsent *unsent);

/* How much it is, in bytes, as far as it can be known; `buffered` are those in all output buffers.
 */
size_t http_unsent_bytes(const struct http_unsent *unsent, size_t buffered);

/* Adds the piece, which is not empty, as a chunk of a stream. The same piece written to one stream
 * after the other is kept once. */
void http_unsent_add_chunk(struct http_unsent *unsent, struct evbuffer *output,
                           struct ml_str piece);
/* Adds a copy of the text as it is. */
void http_unsent_add_text(struct evbuffer *output, struct ml_str text);
