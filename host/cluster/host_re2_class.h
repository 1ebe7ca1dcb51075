/* L5 script, private to host_re2*.c. The lower half of the translator of patterns: where it stands
 * in one, and characters, escapes and classes. host_re2.c has groups and repetitions. */
#pragma once

#include "cluster/host.h"

#define RE2_DEPTH_MAX 1000
#define RE2_ALNUM     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

struct re2 {
    const char *begin, *at, *end;
    struct ml_buf *out; /* the pattern for PCRE2, or what is wrong */
    bool repeatable;    /* something stands before, in this alternative */
    const char *repeat; /* where the repetition begins that has just been read; else NULL */
    int item;           /* how often what has just been read may come, times those within */
    size_t depth;
    int highest[RE2_DEPTH_MAX + 1]; /* item's highest, of each open group */
};

/* [from, to) is the part of the pattern that Go names. Returns false. */
bool re2_refuse(struct re2 *re, const char *what, const char *from, const char *to);

static inline size_t re2_left(const struct re2 *re)
{
    return (size_t)(re->end - re->at);
}

/* The byte at hand; 0 at the end, as well as for a NUL, which nothing looks for. */
static inline char re2_peek(const struct re2 *re, size_t ahead)
{
    return ahead < re2_left(re) ? re->at[ahead] : '\0';
}

static inline bool re2_looks_at(const struct re2 *re, const char *text)
{
    return ml_str_starts((struct ml_str){re->at, re2_left(re)}, text);
}

/* Takes a character; the pattern is UTF-8, and has not ended. */
uint32_t re2_take(struct re2 *re);

/* Writes a character that stands for itself, within a class or not. */
void re2_put(struct re2 *re, uint32_t c);

/* At a backslash that begins no class: the character that it means. */
ML_NODISCARD bool re2_take_escape(struct re2 *re, uint32_t *out);

/* "\d", "\pL", within brackets or not: true when there was one, or when it is refused, with *ok
 * false. */
ML_NODISCARD bool re2_take_class_escape(struct re2 *re, bool bracketed, bool *ok);

/* "[a-z]" */
ML_NODISCARD bool re2_take_class(struct re2 *re);
