/* Translates patterns of Go's regexp (RE2) to PCRE2, for host_regex.c. Patterns that Go rejects are
 * rejected with Go's message; syntax that PCRE2 reads differently is rewritten. Groups do not
 * capture, because nobody asks for them. Follows Go's regexp/syntax, parse.go. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cluster/trusted_internal.h"

#define COUNT_MAX     1000 /* of one repetition, and of nested ones multiplied */
#define RE2_DEPTH_MAX 1000
#define RE2_ALNUM     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define SPACE         "\\t\\n\\f\\r\\x20" /* Go's \s has no \v */
#define NO_SPACE      "\\x00-\\x08\\x0b\\x0e-\\x1f\\x21-\\x{10ffff}"
#define NO_CHARACTER  UINT32_MAX

struct re2 {
    const char *begin, *at, *end;
    struct ml_buf *out; /* the pattern for PCRE2, or the error message */
    bool repeatable;    /* this alternative has an item that can be repeated */
    const char *repeat; /* start of the repetition just read; else NULL */
    int item;           /* repeat count of the last item, multiplied by those nested in it */
    size_t depth;
    int highest[RE2_DEPTH_MAX + 1]; /* the highest `item` of each open group */
};

static size_t re2_left(const struct re2 *re)
{
    return (size_t)(re->end - re->at);
}

/* The byte `ahead` of the current one; 0 at the end, and for a NUL, which no syntax uses. */
static char re2_peek(const struct re2 *re, size_t ahead)
{
    return ahead < re2_left(re) ? re->at[ahead] : '\0';
}

static bool re2_looks_at(const struct re2 *re, const char *text)
{
    return ml_str_starts((struct ml_str){re->at, re2_left(re)}, text);
}

/* ---- characters, escapes and classes ---- */

/* [from, to) is the part of the pattern that Go names. Returns false. */
static bool re2_refuse(struct re2 *re, const char *what, const char *from, const char *to)
{
    ml_buf_clear(re->out);
    ml_buf_printf(re->out, "error parsing regexp: %s: `%.*s`", what, (int)(to - from), from);
    return false;
}

/* The pattern is UTF-8, and has not ended. */
static uint32_t re2_take(struct re2 *re)
{
    unsigned char first = (unsigned char)*re->at++;
    if (first < 0x80)
        return first;
    uint32_t c = first & (first >= 0xf0 ? 0x07 : first >= 0xe0 ? 0x0f : 0x1f);
    while (re->at < re->end && ((unsigned char)*re->at & 0xc0) == 0x80)
        c = c << 6 | ((unsigned char)*re->at++ & 0x3f);
    return c;
}

/* Writes a character that stands for itself, within a class or not. */
static void re2_put(struct re2 *re, uint32_t c)
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

/* At a backslash that begins no class: the character that it means. */
static bool re2_take_escape(struct re2 *re, uint32_t *out)
{
    const char *from = re->at++;
    if (re->at == re->end)
        return re2_refuse(re, "trailing backslash at end of expression", re->end, re->end);
    *out = take_escaped(re);
    return *out != NO_CHARACTER || re2_refuse(re, "invalid escape sequence", from, re->at);
}

/* Whether PCRE2 knows this property. It knows all of Go's but some synonyms. */
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

/* "\d", "\pL", within brackets or not: true when there was one, or when it is refused, with *ok
 * false. */
static bool re2_take_class_escape(struct re2 *re, bool bracketed, bool *ok)
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

/* "[a-z]" */
static bool re2_take_class(struct re2 *re)
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

/* ---- groups and repetitions ---- */

static bool refuse_all(struct re2 *re, const char *what)
{
    return re2_refuse(re, what, re->begin, re->end);
}

/* The last item is complete. */
static void end_item(struct re2 *re)
{
    re->highest[re->depth] = ML_MAX(re->highest[re->depth], re->item);
    re->item = 1;
}

static void begin_item(struct re2 *re)
{
    end_item(re);
    re->repeatable = true;
}

static void put_item(struct re2 *re, const char *text, size_t taken)
{
    begin_item(re);
    ml_buf_puts(re->out, text);
    re->at += taken;
}

static bool open_group(struct re2 *re)
{
    end_item(re);
    if (re->depth == RE2_DEPTH_MAX)
        return refuse_all(re, "expression nests too deeply");
    re->highest[++re->depth] = 1;
    re->repeatable = false;
    return true;
}

static bool close_group(struct re2 *re)
{
    if (re->depth == 0)
        return refuse_all(re, "unexpected )");
    end_item(re);
    int item = re->highest[re->depth--];
    put_item(re, ")", 1);
    re->item = item;
    return true;
}

/* "(?P<name>" and "(?<name>". */
static bool take_named_group(struct re2 *re)
{
    const char *from = re->at, *name = from + (from[2] == 'P' ? 4 : 3);
    const char *close = memchr(name, '>', (size_t)(re->end - name));
    if (!close)
        return re2_refuse(re, "invalid named capture", from, re->end);
    bool good = close > name;
    for (const char *c = name; good && c < close; c++)
        good = *c == '_' || (*c && strchr(RE2_ALNUM, *c));
    if (!good)
        return re2_refuse(re, "invalid named capture", from, close + 1);
    re->at = close + 1;
    ml_buf_puts(re->out, "(?:");
    return open_group(re);
}

/* "(?i)", "(?i-s:", "(?:". */
static bool take_flags(struct re2 *re)
{
    const char *from = re->at;
    bool negative = false, any = false;
    for (re->at += 2; re->at < re->end;) {
        uint32_t c = re2_take(re);
        if (c != 0 && c < 0x80 && strchr("imsU", (int)c)) {
            any = true;
        } else if (c == '-' && !negative) {
            negative = true;
            any = false;
        } else if ((c == ':' || c == ')') && (!negative || any)) {
            ml_buf_append(re->out, from, (size_t)(re->at - from));
            return c == ')' || open_group(re);
        } else {
            break;
        }
    }
    return re2_refuse(re, "invalid or unsupported Perl syntax", from, re->at);
}

static bool take_group(struct re2 *re)
{
    if (re2_looks_at(re, "(?P<") && re2_left(re) > 4)
        return take_named_group(re);
    if (re2_looks_at(re, "(?<") && re2_left(re) > 3)
        return take_named_group(re);
    if (re2_looks_at(re, "(?"))
        return take_flags(re);
    ml_buf_puts(re->out, "(?:");
    re->at++;
    return open_group(re);
}

/* Digits without a leading zero. -1: too many. */
static bool take_count(const char **at, const char *end, int *out)
{
    const char *from = *at;
    struct ml_str digits = {from, 0};
    int64_t count;
    while (*at < end && **at >= '0' && **at <= '9')
        digits.len = (size_t)(++*at - from);
    if (digits.len == 0 || (digits.len > 1 && *from == '0'))
        return false;
    *out = ml_str_to_i64(digits, &count) && count <= COUNT_MAX ? (int)count : -1;
    return true;
}

/* "{2}", "{2,}", "{2,5}": returns its end, or NULL when the brace is a literal. `*most` is -1 for
 * no upper bound, `*least` -1 for counts that are too large. */
static const char *read_counts(const struct re2 *re, int *least, int *most)
{
    const char *at = re->at + 1;
    if (!take_count(&at, re->end, least) || at == re->end)
        return NULL;
    *most = *least;
    if (*at == ',') {
        at++;
        if (at < re->end && *at == '}')
            *most = -1;
        else if (!take_count(&at, re->end, most))
            return NULL;
        else if (*most < 0)
            *least = -1;
    }
    return at < re->end && *at == '}' ? at + 1 : NULL;
}

/* The repetition from re->at to `end`, which may be followed by a '?'. */
static bool take_repeat(struct re2 *re, const char *end, int least, int most)
{
    const char *from = re->at;
    re->at = end;
    if (re2_peek(re, 0) == '?')
        re->at++;
    if (re->repeat)
        return re2_refuse(re, "invalid nested repetition operator", re->repeat, re->at);
    if (!re->repeatable)
        return re2_refuse(re, "missing argument to repetition operator", from, re->at);
    int times = most < 0 ? least : most;
    re->item = times == 0 ? re->item : re->item * times;
    if ((least >= 2 || most >= 2) && re->item > COUNT_MAX)
        return re2_refuse(re, "invalid repeat count", from, re->at);
    ml_buf_append(re->out, from, (size_t)(re->at - from));
    re->repeat = from;
    return true;
}

static bool take_braces(struct re2 *re)
{
    int least, most;
    const char *end = read_counts(re, &least, &most);
    if (!end) {
        put_item(re, "\\{", 1);
        return true;
    }
    if (least < 0 || (most >= 0 && least > most))
        return re2_refuse(re, "invalid repeat count", re->at, end);
    bool taken = take_repeat(re, end, least, most);
    if (taken && most == 0)
        re->item = 1; /* an item repeated 0 times does not count */
    return taken;
}

/* "\Q…\E" */
static void take_quoted(struct re2 *re)
{
    re->at += 2;
    const char *end = memmem(re->at, re2_left(re), "\\E", 2);
    const char *stop = end ? end : re->end;
    while (re->at < stop) {
        begin_item(re);
        re2_put(re, re2_take(re));
    }
    re->at = end ? end + 2 : stop;
}

static bool take_backslash(struct re2 *re)
{
    bool ok;
    uint32_t c;
    switch (re2_peek(re, 1)) {
    case 'A':
        put_item(re, "(?:\\A)", 2);
        return true;
    case 'z':
        put_item(re, "(?:\\z)", 2);
        return true;
    case 'b':
        put_item(re, "(?:\\b)", 2);
        return true;
    case 'B':
        put_item(re, "(?:\\B)", 2);
        return true;
    case 'C':
        return re2_refuse(re, "invalid escape sequence", re->at, re->at + 2);
    case 'Q':
        take_quoted(re);
        return true;
    default:
        break;
    }
    begin_item(re);
    if (re2_take_class_escape(re, false, &ok))
        return ok;
    if (!re2_take_escape(re, &c))
        return false;
    re2_put(re, c);
    return true;
}

/* Translates the item at re->at. Assertions are put in a group, because PCRE2 repeats them only
 * there. */
static bool take_next(struct re2 *re)
{
    switch (*re->at) {
    case '(':
        return take_group(re);
    case ')':
        return close_group(re);
    case '[':
        begin_item(re);
        return re2_take_class(re);
    case '\\':
        return take_backslash(re);
    case '{':
        return take_braces(re);
    case '*':
    case '+':
    case '?':
        return take_repeat(re, re->at + 1, 0, -1);
    case '|':
        end_item(re);
        ml_buf_putc(re->out, '|');
        re->at++;
        re->repeatable = false;
        return true;
    case '^':
        put_item(re, "(?:^)", 1);
        return true;
    case '$':
        put_item(re, "(?:$)", 1);
        return true;
    case '.':
        put_item(re, ".", 1);
        return true;
    default:
        begin_item(re);
        re2_put(re, re2_take(re));
        return true;
    }
}

bool host_re2_translate(struct ml_str pattern, struct ml_buf *out)
{
    struct re2 re = {.begin = pattern.ptr, .at = pattern.ptr, .out = out, .item = 1};
    re.end = re.begin + pattern.len;
    if (!ml_str_is_utf8(pattern))
        return refuse_all(&re, "invalid UTF-8");
    while (re.at < re.end) {
        const char *before = re.repeat;
        if (!take_next(&re))
            return false;
        if (re.repeat == before)
            re.repeat = NULL;
    }
    return re.depth == 0 || refuse_all(&re, "missing closing )");
}
