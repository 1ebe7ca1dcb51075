#include "script/pattern.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>

#include "script/maxima.h"

#define DEPTH_MAX      200  /* of recursion; the stock matcher's own limit */
#define WORK_PER_CHECK 4096 /* bytes of pattern or subject between two checks of the deadline */

static const char *match_here(struct pattern *m, const char *s, const char *p);

static const char *pattern_problem(struct pattern *m, const char *what)
{
    snprintf(m->problem, sizeof(m->problem), "%s", what);
    return NULL;
}

static bool pattern_halted(const struct pattern *m)
{
    return m->stopped || m->problem[0];
}

/* Counts `bytes` of the pattern or the subject before they are read. False: stop matching. */
static bool pattern_charge(struct pattern *m, size_t bytes)
{
    m->work += bytes;
    if (ML_LIKELY(m->work < WORK_PER_CHECK))
        return !m->stopped;
    m->work = 0;
    if (m->expired())
        m->stopped = true;
    return !m->stopped;
}

static bool pattern_step(struct pattern *m)
{
    return pattern_charge(m, 1);
}

static int byte_at(const char *at)
{
    return (unsigned char)*at;
}

static const char *subject_end(const struct pattern *m)
{
    return m->subject.ptr + m->subject.len;
}

static int is_nul(int c)
{
    return c == 0;
}

/* The class letter `class` (%a, %D, …); any other character stands for itself. */
static bool class_has(int class, int c)
{
    static int (*const tests[UCHAR_MAX + 1])(int) = {
        ['a'] = isalpha, ['c'] = iscntrl,  ['d'] = isdigit, ['g'] = isgraph,
        ['l'] = islower, ['p'] = ispunct,  ['s'] = isspace, ['u'] = isupper,
        ['w'] = isalnum, ['x'] = isxdigit, ['z'] = is_nul, /* of 5.1; 5.4 still has it */
    };
    int (*test)(int) = tests[tolower(class)];
    if (!test)
        return class == c;
    return isupper(class) ? !test(c) : test(c);
}

/* The end of the single character class that starts at p; NULL: a problem, or stopped. */
static const char *class_end(struct pattern *m, const char *p)
{
    const char *start = p, *end = m->pattern_end;
    if (*p == '%')
        return p + 1 < end ? p + 2 : pattern_problem(m, "malformed pattern (ends with '%')");
    if (*p != '[')
        return p + 1;
    p++;
    if (p < end && *p == '^')
        p++;
    do { /* a ']' that comes first stands for itself */
        if (p >= end)
            return pattern_problem(m, "malformed pattern (missing ']')");
        p += *p == '%' && p + 1 < end ? 2 : 1;
    } while (p >= end || *p != ']');
    return pattern_charge(m, (size_t)(p - start)) ? p + 1 : NULL;
}

/* Does the set from '[' at p to ']' at `close` contain c? */
static bool set_has(struct pattern *m, const char *p, const char *close, int c)
{
    bool found = true;
    pattern_charge(m, (size_t)(close - p));
    p++;
    if (*p == '^') {
        found = false;
        p++;
    }
    while (p < close) {
        if (*p == '%') {
            if (class_has(byte_at(p + 1), c))
                return found;
            p += 2;
        } else if (p + 2 < close && p[1] == '-') {
            if (byte_at(p) <= c && c <= byte_at(p + 2))
                return found;
            p += 3;
        } else {
            if (byte_at(p) == c)
                return found;
            p++;
        }
    }
    return !found;
}

/* Does the class from p to `end` contain the character at s? */
static bool class_matches(struct pattern *m, const char *s, const char *p, const char *end)
{
    if (s >= subject_end(m))
        return false;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return class_has(byte_at(p + 1), byte_at(s));
    case '[':
        return set_has(m, p, end - 1, byte_at(s));
    default:
        return *p == *s;
    }
}

static const char *match_balanced(struct pattern *m, const char *s, const char *p)
{
    if (p + 1 >= m->pattern_end)
        return pattern_problem(m, "malformed pattern (missing arguments to '%b')");
    if (s >= subject_end(m) || *s != *p)
        return NULL;
    size_t open = 1;
    for (s++; s < subject_end(m) && pattern_step(m); s++) {
        if (*s == p[1]) {
            if (--open == 0)
                return s + 1;
        } else if (*s == *p) {
            open++;
        }
    }
    return NULL;
}

static const char *match_most(struct pattern *m, const char *s, const char *p, const char *end)
{
    ptrdiff_t count = 0;
    while (class_matches(m, s + count, p, end) && pattern_step(m))
        count++;
    for (; count >= 0 && !pattern_halted(m); count--) {
        const char *result = match_here(m, s + count, end + 1);
        if (result)
            return result;
    }
    return NULL;
}

static const char *match_fewest(struct pattern *m, const char *s, const char *p, const char *end)
{
    while (!pattern_halted(m) && pattern_step(m)) {
        const char *result = match_here(m, s, end + 1);
        if (result)
            return result;
        if (pattern_halted(m) || !class_matches(m, s, p, end))
            return NULL;
        s++;
    }
    return NULL;
}

static const char *match_opening(struct pattern *m, const char *s, const char *p)
{
    if (m->capture_count >= PATTERN_CAPTURES_MAX)
        return pattern_problem(m, "too many captures");
    bool is_position = p + 1 < m->pattern_end && p[1] == ')';
    m->captures[m->capture_count++] = (struct pattern_capture){s, is_position ? PATTERN_POSITION
                                                                              : PATTERN_UNFINISHED};
    const char *result = match_here(m, s, p + (is_position ? 2 : 1));
    if (!result)
        m->capture_count--;
    return result;
}

static const char *match_closing(struct pattern *m, const char *s, const char *p)
{
    int open = m->capture_count - 1;
    while (open >= 0 && m->captures[open].len != PATTERN_UNFINISHED)
        open--;
    if (open < 0)
        return pattern_problem(m, "invalid pattern capture");
    m->captures[open].len = s - m->captures[open].start;
    const char *result = match_here(m, s, p + 1);
    if (!result)
        m->captures[open].len = PATTERN_UNFINISHED;
    return result;
}

/* %1 … %9: the text of that capture again. */
static const char *match_again(struct pattern *m, const char *s, int digit)
{
    int index = digit - '1';
    if (index < 0 || index >= m->capture_count || m->captures[index].len == PATTERN_UNFINISHED) {
        snprintf(m->problem, sizeof(m->problem), "invalid capture index %%%d", index + 1);
        return NULL;
    }
    const struct pattern_capture *capture = &m->captures[index];
    if (capture->len < 0 || subject_end(m) - s < capture->len)
        return NULL;
    size_t len = (size_t)capture->len;
    if (!pattern_charge(m, len))
        return NULL;
    return memcmp(capture->start, s, len) == 0 ? s + len : NULL;
}

/* %f[set]: the border from a character outside the set to one in it. On success `p` has moved
 * behind the set. */
static bool match_frontier(struct pattern *m, const char *s, const char **p)
{
    if (*p >= m->pattern_end || **p != '[') {
        pattern_problem(m, "missing '[' after '%f' in pattern");
        return false;
    }
    const char *end = class_end(m, *p);
    if (!end)
        return false;
    int before = s == m->subject.ptr ? 0 : byte_at(s - 1);
    int after = s == subject_end(m) ? 0 : byte_at(s);
    if (set_has(m, *p, end - 1, before) || !set_has(m, *p, end - 1, after))
        return false;
    *p = end;
    return true;
}

/* Matches a class and its quantifier. True: continue at *s, *p. False: *result is the answer. */
static bool match_class(struct pattern *m, const char **s, const char **p, const char **result)
{
    *result = NULL;
    const char *end = class_end(m, *p);
    if (!end)
        return false;
    bool matches = class_matches(m, *s, *p, end);
    switch (end < m->pattern_end ? *end : '\0') {
    case '?':
        if (matches)
            *result = match_here(m, *s + 1, end + 1);
        *p = end + 1;
        return !*result && !pattern_halted(m);
    case '+':
        *result = matches ? match_most(m, *s + 1, *p, end) : NULL;
        return false;
    case '*':
        *result = match_most(m, *s, *p, end);
        return false;
    case '-':
        *result = match_fewest(m, *s, *p, end);
        return false;
    default:
        *s += 1;
        *p = end;
        return matches;
    }
}

/* %b, %f and %1 … %9. True: it was one; *s (NULL: no match) and *p have moved on. */
static bool match_special(struct pattern *m, const char **s, const char **p)
{
    if (**p != '%' || *p + 1 >= m->pattern_end)
        return false;
    char kind = (*p)[1];
    if (kind == 'b') {
        *s = match_balanced(m, *s, *p + 2);
        *p += 4;
        return true;
    }
    if (kind == 'f') {
        *p += 2;
        if (!match_frontier(m, *s, p))
            *s = NULL;
        return true;
    }
    if (!isdigit((unsigned char)kind))
        return false;
    *s = match_again(m, *s, kind);
    *p += 2;
    return true;
}

static const char *match_items(struct pattern *m, const char *s, const char *p)
{
    const char *result;
    while (p < m->pattern_end) {
        if (!pattern_step(m))
            return NULL;
        if (*p == '(')
            return match_opening(m, s, p);
        if (*p == ')')
            return match_closing(m, s, p);
        if (*p == '$' && p + 1 == m->pattern_end)
            return s == subject_end(m) ? s : NULL;
        if (match_special(m, &s, &p)) {
            if (!s)
                return NULL;
            continue;
        }
        if (!match_class(m, &s, &p, &result))
            return result;
    }
    return s;
}

static const char *match_here(struct pattern *m, const char *s, const char *p)
{
    if (m->depth == DEPTH_MAX)
        return pattern_problem(m, "pattern too complex");
    m->depth++;
    const char *result = match_items(m, s, p);
    m->depth--;
    return pattern_halted(m) ? NULL : result;
}

void pattern_init(struct pattern *match, struct ml_str subject, bool (*expired)(void))
{
    *match = (struct pattern){.subject = subject, .expired = expired};
}

const char *pattern_at(struct pattern *match, const char *start, struct ml_str pattern)
{
    match->pattern_end = pattern.ptr + pattern.len;
    match->capture_count = 0;
    match->depth = 0;
    if (pattern.len > SCRIPT_PATTERN_MAX) {
        snprintf(match->problem, sizeof(match->problem),
                 "a pattern has at most %d bytes; find(…, 1, true) takes any text",
                 SCRIPT_PATTERN_MAX);
        return NULL;
    }
    pattern_step(match); /* an empty pattern matches without any other step */
    return match_here(match, start, pattern.ptr);
}
