/* L4 state. Which controller of this process wrote which version of an object, for the last few
 * hundred versions. The writer notes each write when it is answered; the enqueue filter asks, when
 * a change by somebody else wakes a key, whether that somebody is another controller here. */
#pragma once

#include "base/map.h"
#include "kube/kind.h"

#define ML_AUTHORS_MAX 256 /* versions that are remembered; a later one takes the place of one */

struct ml_author {
    const struct ml_kind *kind;
    uint64_t rv;
    const char *name; /* in `names` */
};

/* All zero: nobody wrote anything. */
struct ml_authors {
    struct ml_author last[ML_AUTHORS_MAX]; /* by the lowest bits of the version */
    struct ml_map names;                   /* each name once; controllers come and go */
};

void ml_authors_fini(struct ml_authors *authors);

/* `controller` wrote an object of `kind`, which is interned, at version `rv`. The name is copied.
 * `authors` NULL, and a version that is no number: ignored. */
void ml_authors_note(struct ml_authors *authors, const struct ml_kind *kind, uint64_t rv,
                     const char *controller);

/* NULL: none of this process, or it was too long ago, or the answer has not come yet. Valid until
 * fini. */
const char *ml_authors_of(const struct ml_authors *authors, const struct ml_kind *kind,
                          uint64_t rv);
