#include "codec/json_scan.h"

static const char *stopped(struct ml_json_fault *fault, const char *at, const char *problem)
{
    *fault = (struct ml_json_fault){at, problem};
    return NULL;
}

/* The bytes of the well-formed sequence at p, whose first is not ASCII, or 0 (Unicode 15,
 * table 3-7: only the second byte has a range of its own). */
static size_t utf8_length(const char *text, const char *end)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t room = (size_t)(end - text);
    if (p[0] < 0xE0)
        return p[0] >= 0xC2 && room >= 2 && (p[1] & 0xC0) == 0x80 ? 2 : 0;
    if (p[0] < 0xF0) {
        unsigned char low = p[0] == 0xE0 ? 0xA0 : 0x80, high = p[0] == 0xED ? 0x9F : 0xBF;
        return room >= 3 && p[1] >= low && p[1] <= high && (p[2] & 0xC0) == 0x80 ? 3 : 0;
    }
    unsigned char low = p[0] == 0xF0 ? 0x90 : 0x80, high = p[0] == 0xF4 ? 0x8F : 0xBF;
    return p[0] <= 0xF4 && room >= 4 && p[1] >= low && p[1] <= high && (p[2] & 0xC0) == 0x80 &&
                   (p[3] & 0xC0) == 0x80
               ? 4
               : 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit of the \uXXXX at p, or -1. */
static int code_unit(const char *p, const char *end)
{
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    int unit = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(p[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_high_surrogate(int unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low_surrogate(int unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* The character that an escape other than \u stands for, or 0. */
static char simple_escape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case '"':
    case '\\':
    case '/':
        return c;
    default:
        return 0;
    }
}

/* The bytes of the escape at p, a surrogate pair counting as one, or 0. */
static size_t escape_length(const char *p, const char *end, struct ml_json_fault *fault)
{
    if (end - p >= 2 && simple_escape(p[1]))
        return 2;
    int unit = code_unit(p, end);
    if (unit < 0) {
        stopped(fault, p, "not an escape");
        return 0;
    }
    if (is_high_surrogate(unit) && is_low_surrogate(code_unit(p + 6, end)))
        return 12;
    if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
        stopped(fault, p, "half a surrogate pair");
        return 0;
    }
    return 6;
}

const char *ml_json_scan_string(const char *p, const char *end, bool *escaped,
                                struct ml_json_fault *fault)
{
    for (;;) {
        p = ml_json_plain_end(p, end);
        if (p == end)
            return stopped(fault, p, "string without an end");
        if (*p == '"')
            return p;
        size_t len;
        if (*p == '\\') {
            len = escape_length(p, end, fault);
            if (len == 0)
                return NULL;
            *escaped = true;
        } else {
            if ((unsigned char)*p < ' ')
                return stopped(fault, p, "raw control character in a string");
            len = utf8_length(p, end);
            if (len == 0)
                return stopped(fault, p, "not UTF-8");
        }
        p += len;
    }
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    } else {
        *out++ = (char)(0xF0 | code >> 18);
        *out++ = (char)(0x80 | (code >> 12 & 0x3F));
        *out++ = (char)(0x80 | (code >> 6 & 0x3F));
        *out++ = (char)(0x80 | (code & 0x3F));
    }
    return out;
}

char *ml_json_unescape(const char *p, const char *end, char *out)
{
    while (p < end) {
        const char *run = memchr(p, '\\', (size_t)(end - p));
        size_t len = (size_t)((run ? run : end) - p);
        memcpy(out, p, len);
        out += len;
        p += len;
        if (!run)
            break;
        if (p[1] != 'u') {
            *out++ = simple_escape(p[1]);
            p += 2;
            continue;
        }
        unsigned code = (unsigned)code_unit(p, end);
        p += 6;
        if (is_high_surrogate((int)code)) {
            unsigned low = (unsigned)code_unit(p, end);
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
        }
        out = put_utf8(out, code);
    }
    return out;
}

static const char *digits_end(const char *p, const char *end)
{
    while (p < end && (unsigned char)(*p - '0') <= 9)
        p++;
    return p;
}

const char *ml_json_scan_number(const char *p, const char *end, bool *whole,
                                struct ml_json_fault *fault)
{
    const char *start = p;
    p += *p == '-';
    const char *digits = p;
    p = digits_end(p, end);
    if (p == digits)
        return stopped(fault, p, p == start ? "not a value" : "not a number");
    if (*digits == '0' && p - digits > 1)
        return stopped(fault, digits, "number with a leading zero");
    *whole = true;
    if (p < end && *p == '.') {
        *whole = false;
        digits = ++p;
        p = digits_end(p, end);
        if (p == digits)
            return stopped(fault, p, "number without digits behind the point");
    }
    if (p < end && (*p | 0x20) == 'e') {
        *whole = false;
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = digits_end(p, end);
        if (p == digits)
            return stopped(fault, p, "number without digits in the exponent");
    }
    return p;
}
