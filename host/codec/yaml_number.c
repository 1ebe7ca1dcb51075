/* Numbers as Kubernetes' YAML reader takes them, and as Go writes them.
 *
 * Rules: go.yaml.in/yaml/v2 resolve.go; Go's strconv (ParseInt with base 0, ParseFloat,
 * FormatFloat) and encoding/json (floats). */
#include "codec/yaml_internal.h"

#include <math.h>
#include <stdio.h>

#define DIGITS_MAX 17 /* that tell a double */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 36;
}

/* All of the text as digits of a base; no sign. */
static bool read_digits(struct ml_str text, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)digit_value(text.ptr[i]);
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return text.len > 0;
}

/* Digits with a prefix that says their base: 0x, 0o, 0b, or a zero for octal. */
static bool read_natural(struct ml_str text, uint64_t *out)
{
    unsigned base = 10;
    size_t prefix = 0;
    if (text.len > 1 && text.ptr[0] == '0') {
        char letter = (char)(text.ptr[1] | 0x20);
        base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
        prefix = letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1;
    }
    return read_digits((struct ml_str){text.ptr + prefix, text.len - prefix}, base, out);
}

static bool as_int(bool negative, uint64_t natural, struct ml_yaml_value *out)
{
    if (natural > (uint64_t)INT64_MAX + negative)
        return false;
    out->type = ML_YAML_IS_INT;
    out->integer = negative ? (int64_t)(0 - natural) : (int64_t)natural;
    return true;
}

static bool read_int(struct ml_str text, struct ml_yaml_value *out)
{
    uint64_t natural;
    bool negative = text.ptr[0] == '-', is_signed = negative || text.ptr[0] == '+';
    struct ml_str digits = {text.ptr + is_signed, text.len - is_signed};
    if (read_natural(digits, &natural)) {
        if (as_int(negative, natural, out))
            return true;
        out->type = ML_YAML_IS_NATURAL;
        out->natural = natural;
        return !is_signed;
    }
    /* The reader's own way with 0b lets a sign stand behind the prefix. */
    if (text.len < 4 || !ml_str_starts(text, "0b") || (text.ptr[2] != '-' && text.ptr[2] != '+'))
        return false;
    return read_digits((struct ml_str){text.ptr + 3, text.len - 3}, 2, &natural) &&
           as_int(text.ptr[2] == '-', natural, out);
}

static size_t skip_digits(struct ml_str text, size_t at)
{
    while (at < text.len && is_digit(text.ptr[at]))
        at++;
    return at;
}

/* A sign, digits with or without a point, an exponent: no more and no less. */
static bool is_decimal(struct ml_str text)
{
    size_t at = text.ptr[0] == '-' || text.ptr[0] == '+';
    size_t whole = skip_digits(text, at) - at;
    at += whole;
    if (at < text.len && text.ptr[at] == '.') {
        size_t fraction = skip_digits(text, at + 1) - at - 1;
        at += 1 + fraction;
        if (whole + fraction == 0)
            return false;
    } else if (whole == 0) {
        return false;
    }
    if (at < text.len && (text.ptr[at] | 0x20) == 'e') {
        at++;
        at += at < text.len && (text.ptr[at] == '-' || text.ptr[at] == '+');
        size_t end = skip_digits(text, at);
        if (end == at)
            return false;
        at = end;
    }
    return at == text.len;
}

/* One beyond double is none. */
static bool read_real(const char *text, struct ml_yaml_value *out)
{
    out->type = ML_YAML_IS_REAL;
    out->real = strtod(text, NULL);
    return isfinite(out->real);
}

/* Behind a leading point, underscores may only stand between digits. */
static bool has_stray_underscore(struct ml_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '_' && (i == 0 || i + 1 == text.len || !is_digit(text.ptr[i - 1]) ||
                                   (!is_digit(text.ptr[i + 1]) && text.ptr[i + 1] != '_')))
            return true;
    return false;
}

/* `plain` has no underscores and ends with a NUL. */
static bool read_number(struct ml_str plain, bool with_point, struct ml_yaml_value *out)
{
    if (plain.len == 0 || (!with_point && read_int(plain, out)))
        return plain.len > 0;
    return is_decimal(plain) && read_real(plain.ptr, out);
}

bool ml_yaml_number(struct ml_str text, struct ml_yaml_value *out)
{
    char small[64];
    bool with_point = text.ptr[0] == '.';
    if (with_point && has_stray_underscore(text))
        return false;
    char *plain = text.len < sizeof small ? small : ml_alloc(text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != '_')
            plain[len++] = text.ptr[i];
    plain[len] = '\0';
    bool found = read_number((struct ml_str){plain, len}, with_point, out);
    if (plain != small)
        free(plain);
    return found;
}

/* ---- writing ---- */

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

void ml_yaml_put_real(struct ml_buf *out, double value)
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

void ml_yaml_put_real_key(struct ml_buf *out, double value)
{
    struct digits digits;
    if (isnan(value)) {
        ml_buf_puts(out, ".nan");
        return;
    }
    if (isinf((float)value)) {
        ml_buf_puts(out, value < 0 ? "-.inf" : ".inf");
        return;
    }
    find_digits((float)value, true, &digits);
    if (digits.negative)
        ml_buf_putc(out, '-');
    if (digits.point < -3 || digits.point > 6)
        put_exponent(out, &digits, 2);
    else
        put_plain(out, &digits);
}
