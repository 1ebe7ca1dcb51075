/* L6 operator. Tells of keys that are slowed, because they fight or wake themselves
 * (enqueue_filter.h): in the log, once for each doubling of the time that it lasts, and by an Event
 * on the object. The text names both sides and the fields; and for each side the line of its script
 * and its revision, if its last write of that object is in the journal.
 *
 * The other side of a fight may be no run of this process. Half of the pause later, when this
 * controller has left the field alone for a while, the object is read from the server: its
 * managedFields name the one that wrote the field last. (The cache has none.) */
#pragma once

#include "operator/enqueue_filter.h"

struct ml_fights;

/* All outlive it. */
struct ml_fights_opts {
    struct ml_services *services;
    const char *controller; /* its name */
    struct ml_keys *keys;   /* remember what was told */
    const struct ml_enqueue_filter *filter;
    /* The key's object in the cache, and the revision that works for it. NULL: it is gone, or no
     * revision is live. */
    const struct ml_object *(*object)(void *context, struct ml_str key,
                                      const struct ml_revision **out_revision);
    void *context;
};

struct ml_fights *ml_fights_new(const struct ml_fights_opts *opts);
void ml_fights_free(struct ml_fights *fights); /* nothing more is told; NULL is fine */

/* The key is slowed. Of a fight with somebody who is not known yet it tells later. */
void ml_fights_tell(struct ml_fights *fights, struct ml_str key, const struct ml_slowed *slowed);
/* The key is slowed because its runs ask to be called again at once. */
void ml_fights_tell_hot(struct ml_fights *fights, struct ml_str key);
/* Tells nothing more of the key. */
void ml_fights_forget(struct ml_fights *fights, struct ml_str key);

/* The fields, and the lines that change them: "ConfigMap d/a: data.time (site.lua:12 of revision
 * 3f2a91bc)". The caller frees it. */
char *ml_fights_describe(const struct ml_fights *fights, struct ml_str key,
                         const struct ml_slowed *slowed);
