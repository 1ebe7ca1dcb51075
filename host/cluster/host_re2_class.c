/* Characters, escapes and classes of a pattern in Go's syntax. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cluster/host_re2_class.h"

#define SPACE        "\\t\\n\\f\\r\\x20" /* Go's \s has no \v */
#define NO_SPACE     "\\x00-\\x08\\x0b\\x0e-\\x1f\\x21-\\x{10ffff}"
#define NO_CHARACTER UINT32_MAX

bool re2_refuse(struct re2 *re, const char *what, const char *from, const char *to)
{
    ml_buf_clear(re->out);
    ml_buf_printf(re->out, "error parsing regexp: %s: `%.*s`", what, (int)(to - from), from);
    return false;
}

uint32_t re2_take(struct re2 *re)
{
    unsigned char first = (unsigned char)*re->at++;
    if (first < 0x80)
        return first;
    uint32_t c = first & (first >= 0xf0 ? 0x07 : first >= 0xe0 ? 0x0f : 0x1f);
    while (re->at < re->end && ((unsigned char)*re->at & 0xc0) == 0x80)
        c = c << 6 | ((unsigned char)*re->at++ & 0x3f);
    return c;
}

void re2_put(struct re2 *re, uint32_t c)
{
    if (c < 0x80 && strchr(RE2_ALNUM, (int)c) && c != 0)
        ml_buf_putc(re->out, (char)c);
    else
        ml_buf_printf(re->out, "\\x{%x}", (unsigned)c);
}

static int hex_digit(uint32_t c)
{
    if (c >= '0' && c <= '9')
        return (int)c - '0';
    if (c >= 'a' && c <= 'f')
        return (int)c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? (int)c - 'A' + 10 : -1;
}

/* Behind "\x": two digits, or any number of them in braces. */
static uint32_t take_hex(struct re2 *re)
{
    uint32_t value = 0;
    if (re->at == re->end)
        return NO_CHARACTER;
    uint32_t c = re2_take(re);
    if (c != '{') {
        int high = hex_digit(c), low = re->at < re->end ? hex_digit(re2_take(re)) : -1;
        return high < 0 || low < 0 ? NO_CHARACTER : (uint32_t)(high * 16 + low);
    }
    for (size_t digits = 0; re->at < re->end; digits++) {
        c = re2_take(re);
        if (c == '}')
            return digits > 0 ? value : NO_CHARACTER;
        value = value * 16 + (uint32_t)hex_digit(c);
        if (hex_digit(c) < 0 || value > 0x10ffff)
            return NO_CHARACTER;
    }
    return NO_CHARACTER;
}

/* Behind the backslash and the first octal digit. */
static uint32_t take_octal(struct re2 *re, uint32_t value)
{
    for (int i = 1; i < 3 && re2_peek(re, 0) >= '0' && re2_peek(re, 0) <= '7'; i++)
        value = value * 8 + re2_take(re) - '0';
    return value;
}

static uint32_t take_escaped(struct re2 *re)
{
    static const char letters[] = "afnrtv", meanings[] = "\a\f\n\r\t\v";
    uint32_t c = re2_take(re);
    if (c == 'x')
        return take_hex(re);
    if (c == '0' || (c >= '1' && c <= '7' && re2_peek(re, 0) >= '0' && re2_peek(re, 0) <= '7'))
        return take_octal(re, c - '0');
    if (c == 0 || c >= 0x80)
        return c == 0 ? c : NO_CHARACTER;
    const char *letter = strchr(letters, (int)c);
    if (letter)
        return (unsigned char)meanings[letter - letters];
    return strchr(RE2_ALNUM, (int)c) ? NO_CHARACTER : c;
}

bool re2_take_escape(struct re2 *re, uint32_t *out)
{
    const char *from = re->at++;
    if (re->at == re->end)
        return re2_refuse(re, "trailing backslash at end of expression", re->end, re->end);
    *out = take_escaped(re);
    return *out != NO_CHARACTER || re2_refuse(re, "invalid escape sequence", from, re->at);
}

/* Whether PCRE2 knows a property of that name: all of them that Go does but for some synonyms. */
static bool is_property(const char *text, size_t len)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)text, len, PCRE2_UTF, &code, &at, NULL);
    pcre2_code_free(compiled);
    return compiled != NULL;
}

/* "\pL", "\p{Greek}", "\P{^L}". */
static bool take_property(struct re2 *re)
{
    const char *from = re->at;
    re->at += 2;
    if (re2_peek(re, 0) == '{') {
        const char *close = memchr(re->at, '}', re2_left(re));
        re->at = close ? close + 1 : re->end;
    } else if (re->at < re->end) {
        (void)re2_take(re);
    }
    size_t len = (size_t)(re->at - from);
    if (!is_property(from, len))
        return re2_refuse(re, "invalid character class range", from, re->at);
    ml_buf_append(re->out, from, len);
    return true;
}

bool re2_take_class_escape(struct re2 *re, bool bracketed, bool *ok)
{
    char c = re2_peek(re, 0) == '\\' ? re2_peek(re, 1) : '\0';
    *ok = true;
    if (c == 'p' || c == 'P') {
        *ok = take_property(re);
        return true;
    }
    if (!c || !strchr("dDwWsS", c))
        return false;
    if (c == 's' || c == 'S')
        ml_buf_printf(re->out, bracketed ? "%s" : "[%s]", c == 's' ? SPACE : NO_SPACE);
    else
        ml_buf_append(re->out, re->at, 2);
    re->at += 2;
    return true;
}

/* "[:alpha:]": true when there was one, or *ok is false. */
static bool take_posix(struct re2 *re, bool *ok)
{
    static const char *const names[] = {"alnum", "alpha", "ascii", "blank", "cntrl",
                                        "digit", "graph", "lower", "print", "punct",
                                        "space", "upper", "word",  "xdigit"};
    const char *close = re2_looks_at(re, "[:") ? memmem(re->at + 2, re2_left(re) - 2, ":]", 2)
                                               : NULL;
    *ok = true;
    if (!close)
        return false;
    const char *from = re->at, *first = re->at + (re->at[2] == '^' ? 3 : 2);
    re->at = close + 2;
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        if (close < first || !ml_str_is((struct ml_str){first, (size_t)(close - first)}, names[i]))
            continue;
        ml_buf_append(re->out, from, (size_t)(re->at - from));
        return true;
    }
    *ok = re2_refuse(re, "invalid character class range", from, re->at);
    return true;
}

static bool take_class_character(struct re2 *re, const char *class, uint32_t *out)
{
    if (re->at == re->end)
        return re2_refuse(re, "missing closing ]", class, re->end);
    if (*re->at == '\\')
        return re2_take_escape(re, out);
    *out = re2_take(re);
    return true;
}

/* A character or a range of them. */
static bool take_range(struct re2 *re, const char *class)
{
    const char *from = re->at;
    uint32_t low, high;
    if (!take_class_character(re, class, &low))
        return false;
    re2_put(re, low);
    if (re2_peek(re, 0) != '-' || re2_left(re) < 2 || re2_peek(re, 1) == ']')
        return true;
    re->at++;
    if (!take_class_character(re, class, &high))
        return false;
    if (high < low)
        return re2_refuse(re, "invalid character class range", from, re->at);
    ml_buf_putc(re->out, '-');
    re2_put(re, high);
    return true;
}

bool re2_take_class(struct re2 *re)
{
    const char *class = re->at;
    bool ok = true;
    ml_buf_putc(re->out, '[');
    re->at++;
    if (re2_peek(re, 0) == '^') {
        ml_buf_putc(re->out, '^');
        re->at++;
    }
    for (bool first = true; ok && (re2_peek(re, 0) != ']' || first); first = false)
        if (!take_posix(re, &ok) && !re2_take_class_escape(re, true, &ok))
            ok = take_range(re, class);
    if (!ok)
        return false;
    ml_buf_putc(re->out, ']');
    re->at++;
    return true;
}
