/* The writer: appends tokens; all it keeps of the nesting is whether a comma is due. */
#include "codec/json.h"

#include "base/escape.h"
#include "codec/json_scan.h"

#include <math.h>
#include <stdio.h>

#define INT_LEN_MAX  20 /* -9223372036854775808 */
#define REAL_LEN_MAX 32 /* -1.7976931348623157e+308, and ".0" */

void ml_json_writer_init(struct ml_json_writer *writer, struct ml_buf *out)
{
    *writer = (struct ml_json_writer){.out = out};
}

/* Before a key or a value: the comma, and from then on one is due. */
static inline void write_due_comma(struct ml_json_writer *writer)
{
    if (writer->comma)
        ml_buf_putc(writer->out, ',');
    writer->comma = true;
}

static void write_opening(struct ml_json_writer *writer, char bracket)
{
    write_due_comma(writer);
    ml_buf_putc(writer->out, bracket);
    writer->comma = false;
}

static void write_closing(struct ml_json_writer *writer, char bracket)
{
    ml_buf_putc(writer->out, bracket);
    writer->comma = true;
}

void ml_json_begin_object(struct ml_json_writer *writer)
{
    write_opening(writer, '{');
}

void ml_json_end_object(struct ml_json_writer *writer)
{
    write_closing(writer, '}');
}

void ml_json_begin_array(struct ml_json_writer *writer)
{
    write_opening(writer, '[');
}

void ml_json_end_array(struct ml_json_writer *writer)
{
    write_closing(writer, ']');
}

/* Nothing in it that ml_escape_json would change. */
static bool needs_no_escape(struct ml_str text)
{
    if (text.len == 0)
        return true;
    const char *end = text.ptr + text.len;
    return ml_json_plain_end(text.ptr, end) == end && !memchr(text.ptr, 0x7F, text.len);
}

/* `tail` is what follows the closing quote. */
static void write_quoted(struct ml_buf *out, struct ml_str text, struct ml_str tail)
{
    char *room = needs_no_escape(text) ? ml_buf_reserve(out, text.len + 2 + tail.len) : NULL;
    if (!room) {
        ml_escape_json(out, text);
        ml_buf_append_str(out, tail);
        return;
    }
    room[0] = '"';
    if (text.len)
        memcpy(room + 1, text.ptr, text.len);
    room[text.len + 1] = '"';
    memcpy(room + text.len + 2, tail.ptr, tail.len);
    out->len += text.len + 2 + tail.len;
}

void ml_json_key(struct ml_json_writer *writer, struct ml_str key)
{
    write_due_comma(writer);
    write_quoted(writer->out, key, ML_STR(":"));
    writer->comma = false;
}

void ml_json_string(struct ml_json_writer *writer, struct ml_str text)
{
    write_due_comma(writer);
    write_quoted(writer->out, text, ML_STR(""));
}

void ml_json_int(struct ml_json_writer *writer, int64_t value)
{
    char text[INT_LEN_MAX];
    size_t at = sizeof text;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        text[--at] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude);
    if (value < 0)
        text[--at] = '-';
    write_due_comma(writer);
    ml_buf_append(writer->out, text + at, sizeof text - at);
}

void ml_json_real(struct ml_json_writer *writer, double value)
{
    ml_assert(isfinite(value));
    char text[REAL_LEN_MAX];
    int digits = 15, len;
    do
        len = snprintf(text, sizeof text, "%.*g", digits, value);
    while (digits++ < 17 && strtod(text, NULL) != value);
    write_due_comma(writer);
    ml_buf_append(writer->out, text, (size_t)len);
    if (!strpbrk(text, ".e"))
        ml_buf_puts(writer->out, ".0");
}

void ml_json_bool(struct ml_json_writer *writer, bool value)
{
    ml_json_raw(writer, value ? ML_STR("true") : ML_STR("false"));
}

void ml_json_null(struct ml_json_writer *writer)
{
    ml_json_raw(writer, ML_STR("null"));
}

void ml_json_raw(struct ml_json_writer *writer, struct ml_str json)
{
    write_due_comma(writer);
    ml_buf_append_str(writer->out, json);
}

void ml_json_put_string(struct ml_json_writer *writer, const char *key, struct ml_str text)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_string(writer, text);
}

void ml_json_put_int(struct ml_json_writer *writer, const char *key, int64_t value)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_int(writer, value);
}

void ml_json_put_bool(struct ml_json_writer *writer, const char *key, bool value)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_bool(writer, value);
}

void ml_json_put_raw(struct ml_json_writer *writer, const char *key, struct ml_str json)
{
    ml_json_key(writer, ml_str_of(key));
    ml_json_raw(writer, json);
}

/* ---- numbers as Go writes them (strconv.FormatFloat) ---- */

#define DIGITS_MAX 17 /* that tell a double */

/* The fewest digits that tell a number, and the place of its point: 0.digits times 10^point. */
struct digits {
    bool negative;
    char text[DIGITS_MAX + 1];
    int len, point;
};

static void find_digits(double value, bool is_single, struct digits *out)
{
    char text[DIGITS_MAX + 16];
    int precision = 0;
    for (; precision < DIGITS_MAX; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, value);
        double back = strtod(text, NULL);
        if (is_single ? (float)back == (float)value : back == value)
            break;
    }
    const char *at = text;
    *out = (struct digits){.negative = *at == '-'};
    for (at += out->negative; *at != 'e'; at++)
        if (*at != '.')
            out->text[out->len++] = *at;
    out->point = value != 0 ? (int)strtol(at + 1, NULL, 10) + 1 : 1;
    while (out->len > 1 && out->text[out->len - 1] == '0')
        out->len--;
}

static void put_zeros(struct ml_buf *out, int count)
{
    while (count-- > 0)
        ml_buf_putc(out, '0');
}

/* 1200, 1.5, 0.0001 */
static void put_plain(struct ml_buf *out, const struct digits *digits)
{
    int whole = ML_MAX(ML_MIN(digits->point, digits->len), 0);
    if (digits->point <= 0)
        ml_buf_putc(out, '0');
    ml_buf_append(out, digits->text, (size_t)whole);
    put_zeros(out, digits->point - digits->len);
    if (digits->len == whole)
        return;
    ml_buf_putc(out, '.');
    put_zeros(out, -digits->point);
    ml_buf_append(out, digits->text + whole, (size_t)(digits->len - whole));
}

/* 1.5e+21, with at least `width` digits in the exponent */
static void put_exponent(struct ml_buf *out, const struct digits *digits, int width)
{
    int exponent = digits->point - 1;
    ml_buf_append(out, digits->text, 1);
    if (digits->len > 1)
        ml_buf_putc(out, '.');
    ml_buf_append(out, digits->text + 1, (size_t)digits->len - 1);
    ml_buf_printf(out, "e%c%0*d", exponent < 0 ? '-' : '+', width, abs(exponent));
}

void ml_json_go_float64(struct ml_buf *out, double value)
{
    struct digits digits;
    find_digits(value, false, &digits);
    if (digits.negative)
        ml_buf_putc(out, '-');
    if (value != 0 && (fabs(value) < 1e-6 || fabs(value) >= 1e21))
        put_exponent(out, &digits, 1);
    else
        put_plain(out, &digits);
}

void ml_json_go_float32(struct ml_buf *out, float value)
{
    struct digits digits;
    find_digits(value, true, &digits);
    if (digits.negative)
        ml_buf_putc(out, '-');
    if (digits.point < -3 || digits.point > 6)
        put_exponent(out, &digits, 2);
    else
        put_plain(out, &digits);
}
