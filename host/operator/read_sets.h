/* L6 operator. Keeps the reads of the last run of each key, which tell the changes that can change
 * its result. The enqueue filter asks before it wakes a key for a change by somebody else. Also
 * knows the keys that looked for an object by name: its changes concern them, whoever owns it.
 *
 * Every change wakes a key without a read set: it has not run yet, its last run failed, or the
 * result may depend on something else (script/reads.h). docs/decisions/0009 says why it is safe to
 * skip the other changes. */
#pragma once

#include "operator/revision.h"
#include "state/key.h"

struct ml_read_sets;

/* `keys` outlive them; they keep two parts of each record. */
struct ml_read_sets *ml_read_sets_new(struct ml_keys *keys);
void ml_read_sets_free(struct ml_read_sets *sets); /* NULL is fine */

/* The last run of the key, by this revision's script, has ended. `set` NULL: no read set. Takes its
 * own reference. `wrote_status`: until the echo of that write has come, the key is uncertain. */
void ml_read_sets_put(struct ml_read_sets *sets, struct ml_str key, struct ml_read_set *set,
                      const struct ml_read_versions *versions, bool wrote_status);
/* The key has no read set and looked for nothing, as long as none is put. */
void ml_read_sets_drop(struct ml_read_sets *sets, struct ml_str key);
void ml_read_sets_drop_all(struct ml_read_sets *sets); /* for a new revision */

/* Can the change change the result of the key's reconcile? `own_status`: it is the status that its
 * last run returned, which wakes no key; if the run had read a field that it changes, the key is
 * uncertain from now on (ml_read_sets_uncertain). */
bool ml_read_sets_matters(struct ml_read_sets *sets, const struct ml_revision *revision,
                          struct ml_str key, const struct ml_change *change, bool own_status);
/* None of the changes that the filter got for the key matters. May there have been others, which
 * its watch functions and `when` left out? */
bool ml_read_sets_uncertain(const struct ml_read_sets *sets, const struct ml_revision *revision,
                            struct ml_str key);
/* Moves to `out` the field that made the last relevant change relevant, "status.phase"; empty: not
 * known. */
void ml_read_sets_take_field(struct ml_read_sets *sets, struct ml_buf *out);

/* The last run of the key, by this revision's script, looked for these. Objects that `owner`
 * controls and the script owns are left out: their changes are told to the key anyway. True: one
 * that the run before did not look for has changed since this one did, so that its change was told
 * to nobody. The expectations know which changes are the run's own. */
bool ml_read_sets_look(struct ml_read_sets *sets, const struct ml_revision *revision,
                       const struct ml_object *owner, const struct ml_read_names *names);
/* Appends the keys that looked for the object, or for too many of its kind, each terminated. */
void ml_read_sets_find_readers(const struct ml_read_sets *sets, size_t kind, struct ml_str object,
                               struct ml_buf *out);

/* Appends what the last run of the key read, as ml_read_set_describe. False: it has no read set,
 * and every change wakes it. */
bool ml_read_sets_describe(const struct ml_read_sets *sets, const struct ml_revision *revision,
                           struct ml_str key, struct ml_buf *out);

size_t ml_read_sets_bytes(const struct ml_read_sets *sets); /* memory of all read sets */
