/* L0 base. A growable byte buffer with a hard maximum. Once an append does not fit, the
 * buffer is marked failed and every further append is refused: check once, at the end. */
#pragma once

#include "base/base.h"
#include "base/str.h"

#define ML_BUF_MAX_DEFAULT ((size_t)64 * 1024 * 1024)

struct ml_buf {
    char *ptr;
    size_t len;
    size_t capacity;
    size_t len_max; /* 0 means ML_BUF_MAX_DEFAULT */
    bool failed;
};

#define ML_BUF_INIT ((struct ml_buf){0})

void ml_buf_init(struct ml_buf *buf, size_t len_max);
void ml_buf_fini(struct ml_buf *buf);  /* frees; the buffer is empty and usable again */
void ml_buf_clear(struct ml_buf *buf); /* empties, keeps the memory, forgets a failure */

/* False when the maximum would be passed. */
bool ml_buf_append(struct ml_buf *buf, const void *bytes, size_t len);
bool ml_buf_append_str(struct ml_buf *buf, struct ml_str s);
bool ml_buf_puts(struct ml_buf *buf, const char *text);
bool ml_buf_putc(struct ml_buf *buf, char c);
bool ml_buf_printf(struct ml_buf *buf, const char *format, ...) ML_PRINTF(2, 3);

/* Room for `len` more bytes at ptr + len, or NULL; the caller then raises buf->len. */
char *ml_buf_reserve(struct ml_buf *buf, size_t len);

/* Ends with a NUL that is not counted; valid until the next change. */
const char *ml_buf_cstr(struct ml_buf *buf);

/* Takes out the byte order marks (U+FEFF) at the beginning of the text and of its lines, which some
 * editors write and which files have in the middle that were put together. */
void ml_buf_drop_byte_order_marks(struct ml_buf *buf);

/* Hands the memory to the caller, who frees it; terminated as above, and no longer than the text.
 */
char *ml_buf_take(struct ml_buf *buf);

static inline struct ml_str ml_buf_str(const struct ml_buf *buf)
{
    return (struct ml_str){buf->ptr, buf->len};
}
