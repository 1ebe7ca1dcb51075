/* Overwrites secrets before their memory is freed, our own and those of libcurl. */
#include "base/wipe.h"

#include <malloc.h>

void ml_wipe_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void ml_wipe_buf(struct ml_buf *buf)
{
    if (buf->ptr)
        explicit_bzero(buf->ptr, buf->capacity);
    ml_buf_fini(buf);
}

char *ml_join(struct ml_str a, struct ml_str b)
{
    char *text = ml_alloc(a.len + b.len + 1);
    if (a.len)
        memcpy(text, a.ptr, a.len);
    if (b.len)
        memcpy(text + a.len, b.ptr, b.len);
    text[a.len + b.len] = '\0';
    return text;
}

/* libcurl frees a buffer of 64 KiB for each upload; the head of a request, with its token, is at
 * the beginning of what it is in. */
#define WIPED_MAX 16384

/* Most of what libcurl frees is short. From 2 KiB on, libc's memset uses a string instruction whose
 * start costs more than a whole short piece. */
#define WIPED_PIECE 1024

void ml_wiping_free(void *ptr)
{
    if (!ptr)
        return;
    size_t len = ML_MIN(malloc_usable_size(ptr), WIPED_MAX);
    char *at = ptr;
    for (; len > WIPED_PIECE; at += WIPED_PIECE, len -= WIPED_PIECE)
        memset(at, 0, WIPED_PIECE);
    memset(at, 0, len);
    __asm__ volatile("" : : "r"(ptr) : "memory"); /* so that the compiler keeps the memset */
    free(ptr);
}

void *ml_wiping_realloc(void *ptr, size_t size)
{
    size_t held = ptr ? malloc_usable_size(ptr) : 0;
    void *moved = malloc(size ? size : 1);
    if (!moved)
        return NULL;
    if (ptr)
        memcpy(moved, ptr, ML_MIN(held, size));
    ml_wiping_free(ptr);
    return moved;
}
