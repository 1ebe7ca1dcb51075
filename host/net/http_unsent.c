/* Output buffers that share large pieces, and the count of the memory they take. Called by
 * http_server.c, which writes answers, and http_connection.c, which bounds them. */
#include "net/http_unsent.h"

#include <stdio.h>

/* What one TLS record holds. libevent hands one piece to one SSL_write, which counts as nothing
 * sent until all of it is, and takes twice its memory. */
#define PIECE_BYTES ((size_t)16 * 1024)
/* The approximate memory that libevent and the heap need for one piece in a buffer. */
#define PIECE_COST ((size_t)128)

/* Pieces of streams that are kept once for all who get them: smaller ones are cheaper copied, and
 * of larger ones none is kept for the next. */
#define SHARED_MIN ((size_t)1024)
#define SHARED_MAX ((size_t)4 * 1024 * 1024)

/* A chunk with its frame. */
struct block {
    struct http_unsent *unsent;
    size_t refs;
    struct ml_str text; /* in `bytes`, without the frame */
    size_t len;
    char bytes[];
};

struct http_unsent {
    size_t refs;        /* the server and each block */
    size_t block_bytes; /* memory of all blocks and of what refers to them */
    size_t referenced;  /* bytes that buffers have by reference */
    struct block *last; /* of the latest large piece */
};

struct http_unsent *http_unsent_new(void)
{
    struct http_unsent *unsent = ml_new(struct http_unsent);
    unsent->refs = 1;
    return unsent;
}

static void http_unsent_unref(struct http_unsent *unsent)
{
    if (--unsent->refs == 0)
        free(unsent);
}

static struct block *block_new(struct http_unsent *unsent, struct ml_str text)
{
    char size[24];
    size_t size_len = (size_t)snprintf(size, sizeof size, "%zx\r\n", text.len);
    size_t len = size_len + text.len + strlen("\r\n");
    struct block *block = ml_alloc(sizeof *block + len);
    block->unsent = unsent;
    block->refs = 1;
    block->text = (struct ml_str){block->bytes + size_len, text.len};
    block->len = len;
    memcpy(block->bytes, size, size_len);
    memcpy(block->bytes + size_len, text.ptr, text.len);
    memcpy(block->bytes + size_len + text.len, "\r\n", strlen("\r\n"));
    unsent->refs++;
    unsent->block_bytes += sizeof *block + len;
    return block;
}

static void block_unref(struct block *block)
{
    if (!block || --block->refs > 0)
        return;
    block->unsent->block_bytes -= sizeof *block + block->len;
    http_unsent_unref(block->unsent);
    free(block);
}

/* The buffer has sent, or dropped, a piece of a block. */
static void on_block_piece_gone(const void *data, size_t len, void *context)
{
    struct block *block = context;
    (void)data;
    block->unsent->block_bytes -= PIECE_COST;
    block->unsent->referenced -= len;
    block_unref(block);
}

/* Adds it to a buffer without copying it; the buffer has references then. */
static void block_send(struct block *block, struct evbuffer *output)
{
    for (size_t at = 0, len; at < block->len; at += len) {
        len = ML_MIN(block->len - at, PIECE_BYTES);
        int r = evbuffer_add_reference(output, block->bytes + at, len, on_block_piece_gone, block);
        ml_assert(r == 0);
        block->refs++;
        block->unsent->block_bytes += PIECE_COST;
        block->unsent->referenced += len;
    }
}

void http_unsent_free(struct http_unsent *unsent)
{
    block_unref(ml_take(&unsent->last));
    http_unsent_unref(unsent);
}

/* What buffers hold by reference is counted once, with its block. */
size_t http_unsent_bytes(const struct http_unsent *unsent, size_t buffered)
{
    return buffered - ML_MIN(unsent->referenced, buffered) + unsent->block_bytes;
}

void http_unsent_add_text(struct evbuffer *output, struct ml_str text)
{
    for (size_t len; text.len; text.ptr += len, text.len -= len) {
        len = ML_MIN(text.len, PIECE_BYTES);
        evbuffer_add(output, text.ptr, len);
    }
}

/* As evhttp_send_reply_chunk, but small ones copied to the buffer's end: each block is a TLS record
 * and a system call of its own. */
void http_unsent_add_chunk(struct http_unsent *unsent, struct evbuffer *output, struct ml_str piece)
{
    if (piece.len < SHARED_MIN || piece.len > SHARED_MAX) {
        evbuffer_add_printf(output, "%zx\r\n", piece.len);
        http_unsent_add_text(output, piece);
        evbuffer_add(output, "\r\n", 2);
        return;
    }
    if (!unsent->last || !ml_str_eq(unsent->last->text, piece)) {
        block_unref(unsent->last);
        unsent->last = block_new(unsent, piece);
    }
    block_send(unsent->last, output);
}
