/* The values of scalars: YAML 1.1 as Kubernetes' reader has it.
 *
 * Rules: go.yaml.in/yaml/v2 resolve.go (resolve, parseTimestamp) and decode.go (scalar); Go's
 * strconv (ParseInt with base 0, ParseFloat). */
#include "codec/yaml_scalar.h"

#include "codec/base64.h"
#include "codec/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

int ml_yaml_fail(struct ml_yaml_fault *fault, int kind, const struct ml_yaml_node *node,
                 const char *format, ...)
{
    char message[ML_ERR_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fault->line = node->line + (size_t)1;
    fault->named_line = 0;
    return ml_err_set(fault->err, kind, "%s", message);
}

/* ---- numbers ---- */

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

/* A sign, digits with or without a point, an exponent, and that is all. */
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

/* The number that Go's strconv and the reader's own rules find in a text that begins with a digit,
 * a sign or a point; false when it is none. */
static bool find_number(struct ml_str text, struct ml_yaml_value *out)
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

void ml_yaml_put_real_key(struct ml_buf *out, double value)
{
    if (isnan(value))
        ml_buf_puts(out, ".nan");
    else if (isinf((float)value))
        ml_buf_puts(out, value < 0 ? "-.inf" : ".inf");
    else
        ml_json_go_float32(out, (float)value);
}

/* ---- scalars ---- */

/* The values that the first character makes possible. */
enum hint { HINT_TEXT, HINT_WORD, HINT_POINT, HINT_NUMBER };

static enum hint hint_of(struct ml_str text)
{
    if (text.len == 0)
        return HINT_WORD;
    char c = text.ptr[0];
    if (c == '.')
        return HINT_POINT;
    if ((c >= '0' && c <= '9') || c == '+' || c == '-')
        return HINT_NUMBER;
    return c && strchr("yYnNtTfFoO~", c) ? HINT_WORD : HINT_TEXT;
}

/* The words that are no text: each in small letters, with a capital, and in capitals. */
static bool find_word(struct ml_str text, struct ml_yaml_value *out)
{
    static const struct {
        const char *words[3];
        int type;
        bool truth;
        double real;
    } table[] = {
        {{"", "~", "~"}, ML_YAML_IS_NULL, false, 0},
        {{"null", "Null", "NULL"}, ML_YAML_IS_NULL, false, 0},
        {{"true", "True", "TRUE"}, ML_YAML_IS_BOOL, true, 0},
        {{"false", "False", "FALSE"}, ML_YAML_IS_BOOL, false, 0},
        {{"y", "Y", "Y"}, ML_YAML_IS_BOOL, true, 0},
        {{"n", "N", "N"}, ML_YAML_IS_BOOL, false, 0},
        {{"yes", "Yes", "YES"}, ML_YAML_IS_BOOL, true, 0},
        {{"no", "No", "NO"}, ML_YAML_IS_BOOL, false, 0},
        {{"on", "On", "ON"}, ML_YAML_IS_BOOL, true, 0},
        {{"off", "Off", "OFF"}, ML_YAML_IS_BOOL, false, 0},
        {{".nan", ".NaN", ".NAN"}, ML_YAML_IS_REAL, false, NAN},
        {{".inf", ".Inf", ".INF"}, ML_YAML_IS_REAL, false, INFINITY},
        {{"+.inf", "+.Inf", "+.INF"}, ML_YAML_IS_REAL, false, INFINITY},
        {{"-.inf", "-.Inf", "-.INF"}, ML_YAML_IS_REAL, false, -INFINITY},
    };
    if (text.len > 5)
        return false;
    for (size_t i = 0; i < ML_COUNT(table); i++)
        for (size_t j = 0; j < ML_COUNT(table[i].words); j++)
            if (ml_str_is(text, table[i].words[j])) {
                out->type = table[i].type;
                out->truth = table[i].truth;
                out->real = table[i].real;
                return true;
            }
    return false;
}

/* Fills the value, and its tag; text when it is nothing else. */
static enum ml_yaml_tag read_plain(struct ml_str text, struct ml_yaml_value *out)
{
    static const enum ml_yaml_tag tags[] = {
        [ML_YAML_IS_NULL] = ML_YAML_NULL,  [ML_YAML_IS_BOOL] = ML_YAML_BOOL,
        [ML_YAML_IS_INT] = ML_YAML_INT,    [ML_YAML_IS_NATURAL] = ML_YAML_INT,
        [ML_YAML_IS_REAL] = ML_YAML_FLOAT, [ML_YAML_IS_TEXT] = ML_YAML_STR,
    };
    enum hint hint = hint_of(text);
    if (hint != HINT_TEXT && find_word(text, out))
        return tags[out->type];
    if ((hint == HINT_POINT || hint == HINT_NUMBER) && find_number(text, out))
        return tags[out->type];
    out->type = ML_YAML_IS_TEXT;
    out->text = text;
    return ML_YAML_STR;
}

/* ---- times: only their form matters ---- */

/* Cuts a number of 1 to `digits` digits, within the bounds. */
static bool cut_number(struct ml_str *text, size_t digits, int min, int max, int *out)
{
    size_t len = 0;
    int value = 0;
    for (; len < text->len && len < digits && text->ptr[len] >= '0' && text->ptr[len] <= '9'; len++)
        value = value * 10 + text->ptr[len] - '0';
    *text = (struct ml_str){text->ptr + len, text->len - len};
    *out = value;
    return len > 0 && value >= min && value <= max;
}

static bool cut_char(struct ml_str *text, const char *choice)
{
    if (text->len == 0 || !text->ptr[0] || !strchr(choice, text->ptr[0]))
        return false;
    *text = (struct ml_str){text->ptr + 1, text->len - 1};
    return true;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool cut_clock(struct ml_str *text)
{
    int ignored;
    if (!cut_number(text, 2, 0, 23, &ignored) || !cut_char(text, ":") ||
        !cut_number(text, 2, 0, 59, &ignored) || !cut_char(text, ":") ||
        !cut_number(text, 2, 0, 59, &ignored))
        return false;
    struct ml_str rest = *text;
    if (cut_char(&rest, ".,") && rest.len && rest.ptr[0] >= '0' && rest.ptr[0] <= '9')
        for (*text = rest; cut_char(text, "0123456789");)
            continue;
    return true;
}

static bool cut_zone(struct ml_str *text)
{
    int ignored;
    struct ml_str zone = *text;
    if (cut_char(text, "Z"))
        return true;
    return zone.len == 6 && cut_char(text, "+-") && cut_number(text, 2, 0, 24, &ignored) &&
           cut_char(text, ":") && cut_number(text, 2, 0, 60, &ignored);
}

static bool is_timestamp(struct ml_str text)
{
    int year, month, day;
    struct ml_str start = text;
    if (!cut_number(&text, 4, 0, 9999, &year) || text.len + 4 != start.len ||
        !cut_char(&text, "-") || !cut_number(&text, 2, 1, 12, &month) || !cut_char(&text, "-") ||
        !cut_number(&text, 2, 1, 31, &day) || day > days_of(year, month))
        return false;
    if (text.len == 0)
        return true;
    if (cut_char(&text, " "))
        return cut_clock(&text) && text.len == 0;
    return cut_char(&text, "Tt") && cut_clock(&text) && cut_zone(&text) && text.len == 0;
}

/* ---- tags ---- */

static const char *const shown_tags[] = {
    [ML_YAML_STR] = "!!str",     [ML_YAML_BOOL] = "!!bool", [ML_YAML_INT] = "!!int",
    [ML_YAML_FLOAT] = "!!float", [ML_YAML_NULL] = "!!null", [ML_YAML_TIMESTAMP] = "!!timestamp",
};

static int decode_binary(const struct ml_yaml_node *node, struct ml_buf *binary,
                         struct ml_yaml_value *out, struct ml_yaml_fault *fault)
{
    ml_buf_clear(binary);
    binary->len_max = node->text.len + 4;
    /* Ours passes over spaces, Go's does not. */
    if (memchr(node->text.ptr, ' ', node->text.len) ||
        memchr(node->text.ptr, '\t', node->text.len) || !ml_base64_decode(node->text, binary))
        return ml_yaml_fail(fault, ML_EINVALID, node,
                            "!!binary value contains invalid base64 data");
    out->text = ml_buf_str(binary);
    return 0;
}

/* A tag that the text does not bear out is refused; a float may be written as an integer. */
static int check_tag(const struct ml_yaml_node *node, enum ml_yaml_tag found,
                     struct ml_yaml_value *out, struct ml_yaml_fault *fault)
{
    if (node->tag == ML_YAML_FLOAT && out->type == ML_YAML_IS_INT) {
        out->type = ML_YAML_IS_REAL;
        out->real = (double)out->integer;
        return 0;
    }
    if (node->tag == found)
        return 0;
    return ml_yaml_fail(fault, ML_EINVALID, node, "cannot decode %s `" ML_STR_FMT "` as a %s",
                        shown_tags[found], ML_STR_ARG(node->text), shown_tags[node->tag]);
}

int ml_yaml_resolve(const struct ml_yaml_node *node, struct ml_buf *binary,
                    struct ml_yaml_value *out, struct ml_yaml_fault *fault)
{
    out->type = ML_YAML_IS_TEXT;
    out->text = node->text;
    switch ((enum ml_yaml_tag)node->tag) {
    case ML_YAML_UNTAGGED:
        if (node->plain)
            (void)read_plain(node->text, out);
        return 0;
    case ML_YAML_BINARY:
        return decode_binary(node, binary, out, fault);
    case ML_YAML_TIMESTAMP:
        if (is_timestamp(node->text))
            return 0;
        return check_tag(node, read_plain(node->text, out), out, fault);
    case ML_YAML_BOOL:
    case ML_YAML_INT:
    case ML_YAML_FLOAT:
    case ML_YAML_NULL:
        return check_tag(node, read_plain(node->text, out), out, fault);
    case ML_YAML_STR:
    case ML_YAML_MERGE:
    case ML_YAML_OTHER:
        return 0;
    }
    ML_UNREACHABLE();
}
