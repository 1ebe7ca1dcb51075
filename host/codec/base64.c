/* Base64 as Go's encoding/base64 reads and writes it. */
#include "codec/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool ml_base64_encode(struct ml_str bytes, struct ml_buf *out)
{
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    size_t len = (bytes.len + 2) / 3 * 4;
    char *room = ml_buf_reserve(out, len);
    if (!room)
        return false;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t have = ML_MIN(bytes.len - i, 3);
        unsigned group = (unsigned)p[i] << 16 | (have > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                         (have > 2 ? p[i + 2] : 0);
        *room++ = alphabet[group >> 18];
        *room++ = alphabet[group >> 12 & 63];
        *room++ = have > 1 ? alphabet[group >> 6 & 63] : '=';
        *room++ = have > 2 ? alphabet[group & 63] : '=';
    }
    out->len += len;
    return true;
}

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_skipped_space(char c)
{
    return c == '\r' || c == '\n' || c == ' ';
}

/* Writes to `bytes`, which has room; returns how many, or -1. */
static ptrdiff_t decode_sextets(struct ml_str text, char *bytes)
{
    unsigned group = 0;
    size_t seen = 0, padding = 0, written = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (is_skipped_space(c))
            continue;
        int value = c == '=' ? 0 : sextet(c);
        padding += c == '=';
        if (value < 0 || (padding && c != '='))
            return -1;
        group = group << 6 | (unsigned)value;
        if (++seen % 4 == 0) {
            bytes[written++] = (char)(group >> 16);
            bytes[written++] = (char)(group >> 8);
            bytes[written++] = (char)group;
        }
    }
    if (seen % 4 != 0 || padding > 2)
        return -1;
    return (ptrdiff_t)(written - padding);
}

bool ml_base64_decode(struct ml_str text, struct ml_buf *out)
{
    char *room = ml_buf_reserve(out, text.len / 4 * 3);
    ptrdiff_t len = room ? decode_sextets(text, room) : -1;
    if (len < 0)
        return false;
    out->len += (size_t)len;
    return true;
}

int ml_base64_decode_strict(struct ml_str text, struct ml_buf *out, struct ml_err *err)
{
    static const int unused_bits[] = {0, 3, 15};
    size_t padding = ml_str_ends(text, "==") ? 2 : ml_str_ends(text, "=");
    for (size_t i = 0; i + padding < text.len; i++)
        if (sextet(text.ptr[i]) < 0)
            return ml_err_set(err, ML_EINVALID, "byte %zu (0x%02x) is no character of base64",
                              i + 1, (unsigned char)text.ptr[i]);
    if (text.len % 4 != 0)
        return ml_err_set(err, ML_EINVALID,
                          "it has %zu characters; base64 has a multiple of 4, with = at the end",
                          text.len);
    if (padding && sextet(text.ptr[text.len - padding - 1]) & unused_bits[padding])
        return ml_err_set(err, ML_EINVALID,
                          "the last character before = has bits that belong to no byte");
    return ml_base64_decode(text, out) ? 0 : ml_err_set(err, ML_ELIMIT, "it is too large");
}
