/* Which scalar of YAML is which value of JSON: the core schema of YAML 1.2 (section 10.3.2). Called
 * by yaml.c. */
#include "codec/yaml_scalar.h"

#include "base/escape.h"

static bool is_one_of(struct ml_str text, const char *const *words)
{
    for (; *words; words++)
        if (ml_str_is(text, *words))
            return true;
    return false;
}

static bool is_null(struct ml_str text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};
    return is_one_of(text, words);
}

static bool is_true(struct ml_str text)
{
    static const char *const words[] = {"true", "True", "TRUE", NULL};
    return is_one_of(text, words);
}

static bool is_false(struct ml_str text)
{
    static const char *const words[] = {"false", "False", "FALSE", NULL};
    return is_one_of(text, words);
}

static bool is_sign(char c)
{
    return c == '+' || c == '-';
}

/* Infinity or not a number. */
static bool is_not_finite(struct ml_str text)
{
    static const char *const infinity[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};
    if (is_one_of(text, nan))
        return true;
    if (text.len && is_sign(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    return is_one_of(text, infinity);
}

/* Takes the leading decimal digits off. */
static struct ml_str cut_digits(struct ml_str *text)
{
    struct ml_str digits = {text->ptr, 0};
    while (text->len && text->ptr[0] >= '0' && text->ptr[0] <= '9') {
        text->ptr++;
        text->len--;
        digits.len++;
    }
    return digits;
}

static bool cut_any(struct ml_str *text, const char *choice, char *out)
{
    if (text->len == 0 || text->ptr[0] == '\0' || !strchr(choice, text->ptr[0]))
        return false;
    *out = text->ptr[0];
    text->ptr++;
    text->len--;
    return true;
}

/* A decimal number in its parts; the exponent keeps its sign. */
struct decimal {
    bool negative, point;
    struct ml_str whole, fraction, exponent;
};

static bool parse_decimal(struct ml_str text, struct decimal *decimal)
{
    char c = '+';
    *decimal = (struct decimal){0};
    cut_any(&text, "+-", &c);
    decimal->negative = c == '-';
    decimal->whole = cut_digits(&text);
    decimal->point = cut_any(&text, ".", &c);
    if (decimal->point)
        decimal->fraction = cut_digits(&text);
    if (decimal->whole.len + decimal->fraction.len == 0)
        return false;
    struct ml_str rest = text;
    if (!cut_any(&text, "eE", &c))
        return text.len == 0;
    decimal->exponent = (struct ml_str){rest.ptr + 1, rest.len - 1};
    cut_any(&text, "+-", &c);
    return cut_digits(&text).len > 0 && text.len == 0;
}

static bool is_whole(const struct decimal *decimal)
{
    return !decimal->point && decimal->exponent.len == 0;
}

/* JSON wants digits on both sides of a point and no zero in front. */
static void write_decimal(const struct decimal *decimal, bool as_float, struct ml_buf *out)
{
    struct ml_str whole = decimal->whole;
    while (whole.len > 1 && whole.ptr[0] == '0') {
        whole.ptr++;
        whole.len--;
    }
    if (decimal->negative)
        ml_buf_putc(out, '-');
    ml_buf_append_str(out, whole.len ? whole : ML_STR("0"));
    if (decimal->point || (as_float && is_whole(decimal))) {
        ml_buf_putc(out, '.');
        ml_buf_append_str(out, decimal->fraction.len ? decimal->fraction : ML_STR("0"));
    }
    if (decimal->exponent.len) {
        ml_buf_putc(out, 'e');
        ml_buf_append_str(out, decimal->exponent);
    }
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* 0o17 and 0x1F. */
static bool is_based(struct ml_str text, int *base)
{
    *base = ml_str_starts(text, "0o") ? 8 : 16;
    if (text.len < 3 || (*base == 16 && !ml_str_starts(text, "0x")))
        return false;
    for (size_t i = 2; i < text.len; i++)
        if (digit_value(text.ptr[i]) >= *base)
            return false;
    return true;
}

static const char *write_based_int(struct ml_str text, int base, struct ml_buf *out)
{
    uint64_t value = 0;
    for (size_t i = 2; i < text.len; i++) {
        if (value > UINT64_MAX / (uint64_t)base)
            return "an octal or hexadecimal number has more than 64 bits";
        value = value * (uint64_t)base + (uint64_t)digit_value(text.ptr[i]);
    }
    ml_buf_printf(out, "%llu", (unsigned long long)value);
    return NULL;
}

static const char *write_int(struct ml_str text, struct ml_buf *out)
{
    int base;
    struct decimal decimal;
    if (is_based(text, &base))
        return write_based_int(text, base, out);
    if (!parse_decimal(text, &decimal) || !is_whole(&decimal))
        return "tagged !!int but not an integer";
    write_decimal(&decimal, false, out);
    return NULL;
}

static const char *write_float(struct ml_str text, struct ml_buf *out)
{
    struct decimal decimal;
    if (is_not_finite(text))
        return "JSON has no infinity and no NaN";
    if (!parse_decimal(text, &decimal))
        return "tagged !!float but not a number";
    write_decimal(&decimal, true, out);
    return NULL;
}

static const char *write_untagged(struct ml_str text, struct ml_buf *out)
{
    int base;
    struct decimal decimal;
    if (is_null(text))
        ml_buf_puts(out, "null");
    else if (is_true(text))
        ml_buf_puts(out, "true");
    else if (is_false(text))
        ml_buf_puts(out, "false");
    else if (is_based(text, &base))
        return write_based_int(text, base, out);
    else if (is_not_finite(text))
        return write_float(text, out);
    else if (parse_decimal(text, &decimal))
        write_decimal(&decimal, false, out);
    else
        ml_escape_json(out, text);
    return NULL;
}

const char *ml_yaml_scalar(struct ml_str text, enum scalar_kind type, struct ml_buf *out)
{
    switch (type) {
    case SCALAR_ANY:
        return write_untagged(text, out);
    case SCALAR_STRING:
        ml_escape_json(out, text);
        return NULL;
    case SCALAR_NULL:
        return is_null(text) ? write_untagged(text, out) : "tagged !!null but not null";
    case SCALAR_BOOL:
        return is_true(text) || is_false(text) ? write_untagged(text, out)
                                               : "tagged !!bool but neither true nor false";
    case SCALAR_INT:
        return write_int(text, out);
    case SCALAR_FLOAT:
        return write_float(text, out);
    }
    ML_UNREACHABLE();
}
