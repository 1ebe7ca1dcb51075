/* L2 net, private to http_server.c, http_connection.c and http_exchange.c. A piece of a stream that
 * waits to be sent to many clients is kept once: a thousand who watch the same cost the memory of
 * one. What is kept so is counted for the server. */
#pragma once

#include <event2/buffer.h>

#include "base/str.h"

/* What a server's blocks take. Lives until the server and the last block have gone: libevent frees
 * buffers later than their connections. */
struct http_unsent {
    size_t refs;
    size_t block_bytes; /* memory of all blocks and of what refers to them */
    size_t referenced;  /* bytes that buffers have by reference */
};

/* What one TLS record holds. libevent hands one piece to one SSL_write, which counts as nothing
 * sent until all of it is, and takes twice its memory. */
#define HTTP_PIECE_BYTES ((size_t)16 * 1024)

struct http_block;

struct http_unsent *http_unsent_new(void);
void http_unsent_unref(struct http_unsent *unsent); /* NULL is fine */

/* A copy of `text`, with one reference. `before` and `after` are put around it. */
struct http_block *http_block_new(struct http_unsent *unsent, struct ml_str before,
                                  struct ml_str text, struct ml_str after);
void http_block_unref(struct http_block *block); /* NULL is fine */
/* Would http_block_new with this text, and the rest as for `block`, make the same? */
bool http_block_is(const struct http_block *block, struct ml_str text);

/* Adds the block to a buffer without copying it; the buffer has a reference then. */
void http_block_send(struct http_block *block, struct evbuffer *output);
