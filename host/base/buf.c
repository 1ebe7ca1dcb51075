/* Grows buffers, up to their maximum. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

void ml_buf_init(struct ml_buf *buf, size_t len_max)
{
    *buf = (struct ml_buf){.len_max = len_max};
}

void ml_buf_fini(struct ml_buf *buf)
{
    free(buf->ptr);
    ml_buf_init(buf, buf->len_max);
}

void ml_buf_clear(struct ml_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

char *ml_buf_reserve(struct ml_buf *buf, size_t len)
{
    size_t len_max = buf->len_max ? buf->len_max : ML_BUF_MAX_DEFAULT;
    if (buf->failed || len > len_max || buf->len > len_max - len) {
        buf->failed = true;
        return NULL;
    }
    /* One byte more than asked for: ml_buf_cstr never has to grow. */
    size_t need = buf->len + len + 1;
    if (need > buf->capacity) {
        size_t doubled = buf->capacity ? buf->capacity * 2 : 64;
        buf->capacity = ML_MAX(need, ML_MIN(doubled, len_max + 1));
        buf->ptr = ml_realloc(buf->ptr, buf->capacity);
    }
    return buf->ptr + buf->len;
}

bool ml_buf_append(struct ml_buf *buf, const void *bytes, size_t len)
{
    char *room = ml_buf_reserve(buf, len);
    if (!room)
        return false;
    if (len)
        memcpy(room, bytes, len);
    buf->len += len;
    return true;
}

bool ml_buf_append_str(struct ml_buf *buf, struct ml_str s)
{
    return ml_buf_append(buf, s.ptr, s.len);
}

bool ml_buf_puts(struct ml_buf *buf, const char *text)
{
    return ml_buf_append(buf, text, strlen(text));
}

bool ml_buf_putc(struct ml_buf *buf, char c)
{
    return ml_buf_append(buf, &c, 1);
}

bool ml_buf_printf(struct ml_buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *room = len < 0 ? NULL : ml_buf_reserve(buf, (size_t)len);
    if (room) {
        vsnprintf(room, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
    return room != NULL;
}

const char *ml_buf_cstr(struct ml_buf *buf)
{
    if (!buf->ptr)
        return "";
    buf->ptr[buf->len] = '\0';
    return buf->ptr;
}

void ml_buf_drop_byte_order_marks(struct ml_buf *buf)
{
    size_t kept = 0;
    for (size_t i = 0; i < buf->len; i++) {
        struct ml_str rest = {buf->ptr + i, buf->len - i};
        if ((kept == 0 || buf->ptr[kept - 1] == '\n') && ml_str_starts(rest, ML_BYTE_ORDER_MARK))
            i += strlen(ML_BYTE_ORDER_MARK) - 1;
        else
            buf->ptr[kept++] = buf->ptr[i];
    }
    if (kept < buf->len) /* nothing of a key stays behind the end */
        memset(buf->ptr + kept, 0, buf->len - kept);
    buf->len = kept;
}

char *ml_buf_take(struct ml_buf *buf)
{
    char *text = ml_realloc(buf->ptr, buf->len + 1);
    text[buf->len] = '\0';
    ml_buf_init(buf, buf->len_max);
    return text;
}
