#include "base/print.h"

#include "base/escape.h"

#include <stdarg.h>

static void append_line(struct ml_buf *to, const char *format, va_list args) ML_PRINTF(2, 0);

static void append_line(struct ml_buf *to, const char *format, va_list args)
{
    ML_AUTO_FREE char *text = NULL;
    int len = vasprintf(&text, format, args);
    ml_assert(len >= 0);
    ml_escape_text(to, (struct ml_str){text, (size_t)len});
    ml_buf_putc(to, '\n');
}

void ml_append_line(struct ml_buf *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append_line(to, format, args);
    va_end(args);
}

void ml_print_line(FILE *to, const char *format, ...)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    va_list args;
    va_start(args, format);
    append_line(&line, format, args);
    va_end(args);
    fwrite(line.ptr, 1, line.len, to);
}
