/* L4 state. Remembers which run of this process wrote which version of an object, and which objects
 * runs deleted, for the last few hundred of each. The writer notes each write when it is answered;
 * the enqueue filter asks, when a change by somebody else wakes a key, who that is. */
#pragma once

#include "base/map.h"
#include "kube/kind.h"

#define ML_AUTHORS_MAX 256 /* writes that are remembered; a later one takes the place of one */

struct ml_author {
    const struct ml_kind *kind; /* NULL: of a deletion */
    uint64_t id;                /* the version, or a hash of the uid */
    const char *controller;     /* in `names` */
    char *key;                  /* of the object that the run was for */
};

/* All zero: nobody wrote anything. */
struct ml_authors {
    struct ml_author writes[ML_AUTHORS_MAX];    /* by the lowest bits of `id` */
    struct ml_author deletions[ML_AUTHORS_MAX]; /* likewise */
    struct ml_map names;                        /* each once; controllers come and go */
};

void ml_authors_fini(struct ml_authors *authors);

/* A run of `controller` for `key` wrote an object of `kind`, which is interned, at version `rv`, or
 * deleted the one with that uid. Both are copied. `authors` NULL, and a version that is no number:
 * ignored. */
void ml_authors_note(struct ml_authors *authors, const struct ml_kind *kind, uint64_t rv,
                     const char *controller, struct ml_str key);
void ml_authors_note_deletion(struct ml_authors *authors, struct ml_str uid, const char *controller,
                              struct ml_str key);

/* NULL: none of this process, or it was too long ago, or the answer has not come yet. Valid until
 * the next note. */
const struct ml_author *ml_authors_of(const struct ml_authors *authors, const struct ml_kind *kind,
                                      uint64_t rv);
const struct ml_author *ml_authors_of_deletion(const struct ml_authors *authors, struct ml_str uid);
