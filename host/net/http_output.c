#include "net/http_output.h"

/* What libevent and the heap take to keep one piece in a buffer, about. */
#define PIECE_COST ((size_t)128)

struct http_block {
    struct http_unsent *unsent;
    size_t refs;
    size_t before, after; /* bytes around the text */
    size_t len;           /* of all */
    char bytes[];
};

struct http_unsent *http_unsent_new(void)
{
    struct http_unsent *unsent = ml_new(struct http_unsent);
    unsent->refs = 1;
    return unsent;
}

void http_unsent_unref(struct http_unsent *unsent)
{
    if (unsent && --unsent->refs == 0)
        free(unsent);
}

struct http_block *http_block_new(struct http_unsent *unsent, struct ml_str before,
                                  struct ml_str text, struct ml_str after)
{
    size_t len = before.len + text.len + after.len;
    struct http_block *block = ml_alloc(sizeof *block + len);
    *block = (struct http_block){
        .unsent = unsent, .refs = 1, .before = before.len, .after = after.len, .len = len};
    if (before.len)
        memcpy(block->bytes, before.ptr, before.len);
    if (text.len)
        memcpy(block->bytes + before.len, text.ptr, text.len);
    if (after.len)
        memcpy(block->bytes + before.len + text.len, after.ptr, after.len);
    unsent->refs++;
    unsent->block_bytes += sizeof *block + len;
    return block;
}

void http_block_unref(struct http_block *block)
{
    if (!block || --block->refs > 0)
        return;
    block->unsent->block_bytes -= sizeof *block + block->len;
    http_unsent_unref(block->unsent);
    free(block);
}

bool http_block_is(const struct http_block *block, struct ml_str text)
{
    return block->len - block->before - block->after == text.len &&
           memcmp(block->bytes + block->before, text.ptr, text.len) == 0;
}

/* The buffer has sent, or dropped, a piece of a block. */
static void on_piece_gone(const void *data, size_t len, void *context)
{
    struct http_block *block = context;
    (void)data;
    block->unsent->block_bytes -= PIECE_COST;
    block->unsent->referenced -= len;
    http_block_unref(block);
}

void http_block_send(struct http_block *block, struct evbuffer *output)
{
    for (size_t at = 0, len; at < block->len; at += len) {
        len = ML_MIN(block->len - at, HTTP_PIECE_BYTES);
        int r = evbuffer_add_reference(output, block->bytes + at, len, on_piece_gone, block);
        ml_assert(r == 0);
        block->refs++;
        block->unsent->block_bytes += PIECE_COST;
        block->unsent->referenced += len;
    }
}
