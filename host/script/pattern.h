/* L5 script, private. Lua 5.4 patterns (reference manual 6.4.1), matched so that they can be
 * stopped: the stock matcher backtracks for hours inside one C call. Each byte of the pattern and
 * of the subject that it looks at counts. Knows no lua_State. */
#pragma once

#include "base/str.h"

#define PATTERN_CAPTURES_MAX 32

enum { PATTERN_UNFINISHED = -1, PATTERN_POSITION = -2 }; /* in place of a capture's length */

struct pattern_capture {
    const char *start;
    ptrdiff_t len;
};

struct pattern {
    struct ml_str subject;
    const char *pattern_end;
    struct pattern_capture captures[PATTERN_CAPTURES_MAX];
    int capture_count;
    char problem[80]; /* the error of the pattern; "": none */
    bool (*expired)(void);
    bool stopped; /* expired() said so */
    /* Private. */
    int depth;
    size_t work; /* bytes read since the last check of the deadline */
};

void pattern_init(struct pattern *match, struct ml_str subject, bool (*expired)(void));

/* Matches `pattern` (without its leading '^') at `start` of the subject. Returns the end of the
 * match, or NULL: no match, a problem, or stopped. Overwrites the captures. */
const char *pattern_at(struct pattern *match, const char *start, struct ml_str pattern);
