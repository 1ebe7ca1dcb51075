/* L6 operator. What the last run of each key read, and so which changes can bring it to another
 * result. The enqueue filter asks, by way of controller_work.c, before it wakes a key for a change
 * that somebody else made.
 *
 * A key without a read set is woken by every change: it has not run yet, its last run failed, or
 * the result may depend on something else (script/reads.h). docs/decisions/0009 says why the rest
 * is sound. */
#pragma once

#include "operator/revision.h"

struct ml_read_sets;

struct ml_read_sets *ml_read_sets_new(void);
void ml_read_sets_free(struct ml_read_sets *sets); /* NULL is fine */

/* The last run of the key, of this revision's script, has ended. `set` NULL: no read set. Takes a
 * reference of its own. `wrote_status`: until that has come back, nothing is certain. */
void ml_read_sets_put(struct ml_read_sets *sets, struct ml_str key, struct ml_read_set *set,
                      const struct ml_read_versions *versions, bool wrote_status);
void ml_read_sets_drop(struct ml_read_sets *sets, struct ml_str key);
void ml_read_sets_drop_all(struct ml_read_sets *sets); /* there is another revision */

/* Can the change bring the key to another result? `own_status`: it is the status that its last run
 * returned, which wakes nobody; if the run had read what it changes, nothing is certain for this
 * key any more (ml_read_sets_uncertain). */
bool ml_read_sets_matters(struct ml_read_sets *sets, const struct ml_revision *revision,
                          struct ml_str key, const struct ml_change *change, bool own_status);
/* After the changes of which the key was told turned out not to matter: may others have passed by
 * it, that its watch functions and `when` left out? */
bool ml_read_sets_uncertain(const struct ml_read_sets *sets, const struct ml_revision *revision,
                            struct ml_str key);
/* The field for which the last change that mattered did, "status.phase"; empty: not known. Emptied
 * by this. */
void ml_read_sets_take_field(struct ml_read_sets *sets, struct ml_buf *out);

size_t ml_read_sets_bytes(const struct ml_read_sets *sets); /* held for all of them */
