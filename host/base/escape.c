/* Escapes text for JSON, text logs and terminals. */
#include "base/escape.h"

#include <stdarg.h>

enum escape_style { ESCAPE_JSON, ESCAPE_TEXT };

static const char hex[] = "0123456789abcdef";

static void append_unicode_escape(struct ml_buf *buf, unsigned code)
{
    char text[6] = {
        '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};
    ml_buf_append(buf, text, sizeof text);
}

static void append_byte_escape(struct ml_buf *buf, unsigned char c)
{
    char text[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
    ml_buf_append(buf, text, sizeof text);
}

static void append_ascii_escape(struct ml_buf *buf, unsigned char c, enum escape_style style)
{
    static const char named[] = "\"\\\n\r\t", names[] = "\"\\nrt";
    const char *at = memchr(named, c, sizeof named - 1);
    if (at) {
        ml_buf_putc(buf, '\\');
        ml_buf_putc(buf, names[at - named]);
    } else if (style == ESCAPE_JSON) {
        append_unicode_escape(buf, c);
    } else {
        append_byte_escape(buf, c);
    }
}

static bool is_plain_ascii(unsigned char c, enum escape_style style)
{
    return c >= 0x20 && c < 0x7F && (style == ESCAPE_TEXT || (c != '"' && c != '\\'));
}

/* Decodes the sequence at p, which is not ASCII; 0 when it is not well-formed. */
static size_t decode_utf8(const char *p, size_t len, unsigned *code)
{
    size_t need = ml_utf8_len(p, len);
    unsigned value = (unsigned char)p[0] & (0x7FU >> need);
    for (size_t i = 1; i < need; i++)
        value = value << 6 | ((unsigned char)p[i] & 0x3F);
    *code = value;
    return need;
}

static bool needs_unicode_escape(unsigned code)
{
    bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return code < 0xA0 || turns || code == 0x2028 || code == 0x2029 || code == 0xFEFF ||
           code == 0xFFFE || code == 0xFFFF;
}

/* The sequence at p, which is not ASCII; returns how many bytes it took. */
static size_t append_non_ascii(struct ml_buf *buf, const char *p, size_t len,
                               enum escape_style style)
{
    unsigned code;
    size_t step = decode_utf8(p, len, &code);
    if (step == 0 && style == ESCAPE_JSON)
        ml_buf_puts(buf, "\xEF\xBF\xBD");
    else if (step == 0)
        append_byte_escape(buf, (unsigned char)p[0]);
    else if (needs_unicode_escape(code))
        append_unicode_escape(buf, code);
    else
        ml_buf_append(buf, p, step);
    return step ? step : 1;
}

static void append_escaped(struct ml_buf *buf, struct ml_str text, enum escape_style style)
{
    size_t i = 0;
    while (i < text.len && !buf->failed) {
        size_t run = i;
        while (run < text.len && is_plain_ascii((unsigned char)text.ptr[run], style))
            run++;
        ml_buf_append(buf, text.ptr + i, run - i);
        i = run;
        if (i == text.len)
            break;
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x80) {
            append_ascii_escape(buf, c, style);
            i++;
        } else {
            i += append_non_ascii(buf, text.ptr + i, text.len - i, style);
        }
    }
}

bool ml_escape_json(struct ml_buf *buf, struct ml_str text)
{
    ml_buf_putc(buf, '"');
    append_escaped(buf, text, ESCAPE_JSON);
    return ml_buf_putc(buf, '"');
}

bool ml_escape_text(struct ml_buf *buf, struct ml_str text)
{
    append_escaped(buf, text, ESCAPE_TEXT);
    return !buf->failed;
}

void ml_clean_line(struct ml_str text, char *out, size_t size)
{
    text = ml_str_head(ml_str_trim(text), size - 1);
    bool utf8 = ml_str_is_utf8(text);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        out[i] = c < ' ' || c == 0x7f ? ' ' : c >= 0x80 && !utf8 ? '?' : (char)c;
    }
    out[text.len] = '\0';
}

ML_PRINTF(2, 0)
static void append_escaped_line(struct ml_buf *to, const char *format, va_list args)
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
    append_escaped_line(to, format, args);
    va_end(args);
}

void ml_print_line(FILE *to, const char *format, ...)
{
    ML_AUTO(ml_buf_fini) struct ml_buf line = ML_BUF_INIT;
    va_list args;
    va_start(args, format);
    append_escaped_line(&line, format, args);
    va_end(args);
    fwrite(line.ptr, 1, line.len, to);
}
