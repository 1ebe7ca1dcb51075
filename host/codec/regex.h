/* L1 codec. Regular expressions by RE2 (docs/decisions/0032-re2.md), for the patterns of CRDs, for
 * CEL and for scripts. Time is linear: that of one match is at most in proportion to the length of
 * the text times ml_regex_size, whatever the pattern. lua/moonloop/dialect.lua translates
 * before the little that Go's regexp reads in another way.
 *
 * Texts are UTF-8. No part of a pattern matches another byte; the text around it can match. */
#pragma once

#include "base/str.h"

#define ML_REGEX_GROUPS_MAX 64 /* that one call reports */

struct ml_regex;

/* Compiles the pattern, which is copied. `memory_max`: bytes for its program and for the states
 * that RE2 keeps between matches; a program that needs more is "expression too large". Never
 * returns NULL: ml_regex_problem says if it can be used. Free it with ml_regex_free. */
struct ml_regex *ml_regex_new(struct ml_str pattern, size_t memory_max);
void ml_regex_free(struct ml_regex *regex);

/* Why the pattern is none, in the words of Go's regexp, and which part of it is wrong; the part
 * lives as long as the regex. NULL, and `out_part` stays: it can be used, as the functions below
 * ask for. */
const char *ml_regex_problem(const struct ml_regex *regex, struct ml_str *out_part);

size_t ml_regex_groups(const struct ml_regex *regex); /* that capture */
size_t ml_regex_size(const struct ml_regex *regex);   /* instructions of its program */
/* Bytes that it holds now. Each match may change that. */
size_t ml_regex_memory(const struct ml_regex *regex);

/* Does it match anywhere in the text? */
bool ml_regex_matches(struct ml_regex *regex, struct ml_str text);

/* A walk over the matches in a text, from the left, as Go's FindAll makes it: an empty match that
 * touches the one before it does not count. Begin with { .regex =, .text =, .before =
 * ML_REGEX_NOWHERE }, and `at` where the first match may begin: "^" is the text's beginning all the
 * same. */
struct ml_regex_walk {
    struct ml_regex *regex;
    struct ml_str text;
    size_t at;     /* at most text.len */
    size_t before; /* where the match before ended */
};
#define ML_REGEX_NOWHERE SIZE_MAX

enum ml_regex_found {
    ML_REGEX_NONE, /* and the walk has ended */
    ML_REGEX_MATCH,
    ML_REGEX_AGAIN, /* a match that does not count: call it once more. This way the caller can look
                       at a deadline before each look at the text */
};

/* The next match: all of it in groups[0], and behind it the `count - 1` first groups; one that took
 * no part has the ptr NULL. They lie in the text. `count`: 1 to 1 + ML_REGEX_GROUPS_MAX. */
enum ml_regex_found ml_regex_next(struct ml_regex_walk *walk, struct ml_str *groups, size_t count);
