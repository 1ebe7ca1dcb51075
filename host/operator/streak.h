/* L6 operator. Runs of one key in a row that each changed the same fields: the script wakes itself,
 * or it fights with another controller of this process, which changes them back in between. The
 * first 20 are free, then the pause is 1 s, doubling to 1000 s. Part of an entry of
 * enqueue_filter.c. */
#pragma once

#include "base/str.h"

struct streak {
    uint32_t runs;
    int64_t began_ns, last_ns;
    int64_t pause_ns;   /* what it comes to; 0: none yet */
    char *fields;       /* what each run changes: "ConfigMap d/a: data.time" */
    char *rival;        /* who changes it back in between; NULL: nobody */
    uint32_t idle_runs; /* in a row, that changed nothing, in a streak against a rival */

    /* A contest: what another controller has changed, and its name, until a run has changed the
     * same. NULL: there is none. */
    char *contested, *contender;
    bool contest_is_new; /* the run that may do so has not begun */
};

/* All zero: no streak. Both free what they end. */
void streak_end(struct streak *streak);
void streak_end_contest(struct streak *streak);

/* One more run that changed these fields, or the first one. True: it is slowed, by pause_ns. */
bool streak_count(struct streak *streak, struct ml_str fields, int64_t now_ns);

/* A run changed nothing that it had changed before, which ends the streak. Against a rival that may
 * be because the rival was faster: the write met a Conflict, or found its own value there. Then
 * three such runs in a row are passed over. */
void streak_pass_idle(struct streak *streak);

/* `author`, NULL when it is not known, has changed these fields. An unknown author of the very
 * fields of a streak against a rival is taken for the rival: the answer to its write has not come
 * yet. False: it is no contest. */
bool streak_is_contest(const struct streak *streak, const char *author, struct ml_str fields);
/* It is one. Returns how long the key waits before it answers. */
int64_t streak_contest(struct streak *streak, const char *author, struct ml_str fields);
bool streak_is_contested(const struct streak *streak, struct ml_str fields);
