#include "base/escape.h"

static const char hex[] = "0123456789abcdef";

static bool append_unicode(struct ml_buf *buf, unsigned code)
{
    char text[6] = {
        '\\', 'u', hex[code >> 12 & 15], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};
    return ml_buf_append(buf, text, sizeof text);
}

static bool append_ascii(struct ml_buf *buf, unsigned char c)
{
    switch (c) {
    case '"':
        return ml_buf_puts(buf, "\\\"");
    case '\\':
        return ml_buf_puts(buf, "\\\\");
    case '\n':
        return ml_buf_puts(buf, "\\n");
    case '\r':
        return ml_buf_puts(buf, "\\r");
    case '\t':
        return ml_buf_puts(buf, "\\t");
    default:
        return append_unicode(buf, c);
    }
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* Decodes the sequence at p; 0 when it is not well-formed. */
static size_t decode(const char *p, size_t len, unsigned *code)
{
    unsigned char lead = (unsigned char)p[0];
    size_t need = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (need > len || !ml_str_is_utf8((struct ml_str){p, need}))
        return 0;
    unsigned value = lead & (0x7FU >> need);
    for (size_t i = 1; i < need; i++)
        value = value << 6 | ((unsigned char)p[i] & 0x3F);
    *code = value;
    return need;
}

static bool needs_escape(unsigned code)
{
    bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
    return code < 0xA0 || turns || code == 0x2028 || code == 0x2029 || code == 0xFEFF ||
           code == 0xFFFE || code == 0xFFFF;
}

bool ml_escape_json(struct ml_buf *buf, struct ml_str text)
{
    ml_buf_putc(buf, '"');
    size_t i = 0;
    while (i < text.len) {
        size_t run = i;
        while (run < text.len && is_plain((unsigned char)text.ptr[run]))
            run++;
        ml_buf_append(buf, text.ptr + i, run - i);
        i = run;
        if (i == text.len)
            break;
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x80) {
            append_ascii(buf, c);
            i++;
            continue;
        }
        unsigned code = 0;
        size_t step = decode(text.ptr + i, text.len - i, &code);
        if (step == 0)
            ml_buf_puts(buf, "\xEF\xBF\xBD");
        else if (needs_escape(code))
            append_unicode(buf, code);
        else
            ml_buf_append(buf, text.ptr + i, step);
        i += step ? step : 1;
    }
    return ml_buf_putc(buf, '"');
}

static bool append_byte(struct ml_buf *buf, unsigned char c)
{
    char text[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
    return ml_buf_append(buf, text, sizeof text);
}

static bool append_control(struct ml_buf *buf, unsigned char c)
{
    switch (c) {
    case '\n':
        return ml_buf_puts(buf, "\\n");
    case '\r':
        return ml_buf_puts(buf, "\\r");
    case '\t':
        return ml_buf_puts(buf, "\\t");
    default:
        return append_byte(buf, c);
    }
}

static bool is_printable_ascii(unsigned char c)
{
    return c >= 0x20 && c < 0x7F;
}

bool ml_escape_text(struct ml_buf *buf, struct ml_str text)
{
    size_t i = 0;
    while (i < text.len && !buf->failed) {
        size_t run = i;
        while (run < text.len && is_printable_ascii((unsigned char)text.ptr[run]))
            run++;
        ml_buf_append(buf, text.ptr + i, run - i);
        i = run;
        if (i == text.len)
            break;
        unsigned char c = (unsigned char)text.ptr[i];
        unsigned code = 0;
        size_t step = c < 0x80 ? 0 : decode(text.ptr + i, text.len - i, &code);
        if (c < 0x80)
            append_control(buf, c);
        else if (step == 0)
            append_byte(buf, c);
        else if (needs_escape(code))
            append_unicode(buf, code);
        else
            ml_buf_append(buf, text.ptr + i, step);
        i += step ? step : 1;
    }
    return !buf->failed;
}
