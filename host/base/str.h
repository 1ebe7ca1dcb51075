/* L0 base. A slice of bytes that somebody else owns. Not terminated; may hold any byte. */
#pragma once

#include "base/base.h"

struct ml_str {
    const char *ptr; /* may be NULL when len is 0 */
    size_t len;
};

#define ML_STR(literal) ((struct ml_str){"" literal, sizeof(literal) - 1})
#define ML_STR_FMT      "%.*s"
#define ML_STR_ARG(s)   (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct ml_str ml_str_of(const char *text)
{
    return (struct ml_str){text, text ? strlen(text) : 0};
}

static inline bool ml_str_eq(struct ml_str a, struct ml_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool ml_str_is(struct ml_str s, const char *text)
{
    return ml_str_eq(s, ml_str_of(text));
}

bool ml_str_starts(struct ml_str s, const char *prefix);
bool ml_str_ends(struct ml_str s, const char *suffix);
int ml_str_cmp(struct ml_str a, struct ml_str b); /* bytewise, as memcmp */

/* Without leading and trailing spaces, tabs and line ends. */
struct ml_str ml_str_trim(struct ml_str s);

#define ML_BYTE_ORDER_MARK "\xef\xbb\xbf" /* of UTF-8 */

/* The first `max` bytes at most, cut at the end of a character. */
struct ml_str ml_str_head(struct ml_str s, size_t max);

/* Cuts `rest` at the first `separator`: returns what stood before it and moves `rest` behind
 * it. Without a separator returns all and leaves `rest` empty with ptr NULL. */
struct ml_str ml_str_cut(struct ml_str *rest, char separator);

/* The whole slice as a decimal number. False, with `out` untouched, when it is empty, has
 * anything but digits (one leading '-' for the signed form), or does not fit. */
ML_NODISCARD bool ml_str_to_i64(struct ml_str s, int64_t *out);
ML_NODISCARD bool ml_str_to_u64(struct ml_str s, uint64_t *out);

/* A terminated copy that the caller frees. */
static inline char *ml_str_dup(struct ml_str s)
{
    return ml_strndup(s.ptr, s.len);
}

/* FNV-1a, the same in every process: to detect changes of content, and where processes have to
 * agree. Not for tables: they use ml_hash (base/map.h). */
uint64_t ml_str_hash(struct ml_str s);

/* The number of bytes of the well-formed UTF-8 sequence at p, or 0: no overlong forms, no
 * surrogates, at most U+10FFFF (Unicode 15, table 3-7). `len`, at least 1, is the number of
 * readable bytes. */
size_t ml_utf8_len(const char *p, size_t len);
bool ml_str_is_utf8(struct ml_str s); /* all of it */
