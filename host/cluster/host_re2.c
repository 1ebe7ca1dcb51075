/* Patterns in the syntax of Go's regexp (RE2), made into PCRE2's. What Go refuses is refused in its
 * words; what PCRE2 would read in another way is written so that it does not. Groups lose their
 * numbers: nobody asks for them. Follows Go's regexp/syntax, parse.go. */
#include "cluster/host_re2_class.h"

#define COUNT_MAX 1000 /* of one repetition, and of those inside of each other multiplied */

static bool refuse_all(struct re2 *re, const char *what)
{
    return re2_refuse(re, what, re->begin, re->end);
}

/* What has been read before is complete. */
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

/* "{2}", "{2,}", "{2,5}": its end, or NULL when the brace stands for itself. `*most` is -1 for no
 * end, `*least` -1 for counts that are too large. */
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
        re->item = 1; /* what never comes does not count */
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

/* What begins at re->at. What matches no character is bracketed: then PCRE2, too, repeats it. */
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
