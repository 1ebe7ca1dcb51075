/* L6 operator. Decides which changes wake a key, and how soon it may run. A write of the key's own
 * reconcile comes back on the watch as an echo: the expectations distinguish it from changes by
 * others.
 *
 *   a change by others      wakes the key, unless nothing that its last run read has changed
 *                           (read_sets.h)
 *   an echo of status only  does not wake it: the script itself returned this status
 *   any other echo          wakes it, because the script has not seen it yet
 *
 * The filter counts how often the runs of a key change each field of each object:
 *
 *   a fight          somebody else had changed the same field since this key's last run changed it;
 *                    or had deleted the object that the run makes again, or made the one that it
 *                    deletes. Two of these are forgotten each minute. Where both sides set the same
 *                    two values again and again, more than three slow the key: in the spec of a
 *                    related object, and in the status of its own
 *   a self-trigger   nothing explains the change: nobody else changed another object, and the time
 *                    that the script had asked for has not come. Dependents of the changed
 *                    object, and its status, may be results of that change: they explain
 *                    nothing. Ten of these are forgotten each minute
 *   all others       count for a twenty-fifth of a self-trigger, and so does each object that is
 *                    made or deleted, and each returned status, unless the run asks to be called
 *                    again within a second
 *
 * Many keys of a controller may do the same, each too slowly to be found alone. So self-triggers
 * are counted for each field of a kind, too: those of keys that change it three times in ten
 * seconds, to values that no run has written of late. A step of a rollout is the same value for
 * all.
 *
 * More than twenty slow the key: it pauses for 1 s, and after each further change of such a field
 * twice as long, up to 1000 s. A minute of peace after a pause ends that. Nothing wakes the key
 * before its pause is over. Its deletion ends a pause early, and so do edits of its object by
 * others, in fields that are not slowed (20 edits at once, then ten a minute); the next pause is
 * then no longer than the one that was ended.
 *
 * A key whose runs all ask to be called again at once (within 10 ms) would use a whole core without
 * changing anything: the first 100 runs follow at once, then the pause is 10 ms, doubling to 1 s.
 *
 * A change may arrive before the answer to the write that made it. So changes that arrive while a
 * key's run is under way are held until it has ended, when all answers are known. */
#pragma once

#include "operator/read_sets.h"
#include "state/writer.h"

struct ml_enqueue_filter;

/* A key is slowed: once for each run that changes too often what it changes. */
struct ml_slowed {
    char *fields;                   /* "ConfigMap d/a: data.time" */
    const struct ml_change *change; /* one of them; NULL: the key is not slowed */
    char *field;                    /* the first of these, as ml_object_diff names it; empty: the
                                       object was made or deleted */
    bool fight;                     /* somebody else changes them, too */
    char *other_side;               /* its name, "controller b"; NULL: not known */
    int64_t pause_ns;
};

/* The filter's decision about a change, or about all that were held during a run. */
struct ml_verdict {
    bool wakes;                    /* reconcile the key */
    bool skipped;                  /* all of it is by others, and the last run read none of it */
    const struct ml_change *cause; /* it wakes the key; NULL: too many changes to name one */
    struct ml_slowed slowed;
    struct ml_change *held; /* the changes of a run, which `cause` and `slowed` point at */
    size_t held_count;
};

void ml_verdict_fini(struct ml_verdict *verdict);

/* All outlive the filter. */
struct ml_enqueue_filter_opts {
    struct ml_keys *keys; /* it keeps a part of each record */
    struct ml_loop *loop;
    struct ml_expectations *expectations;
    struct ml_read_sets *read_sets;   /* they know which changes by others matter */
    const struct ml_authors *authors; /* NULL: nobody knows who wrote what */
    const char *controller;           /* its runs are the author of own changes */
    bool slows_hot_keys;              /* keys whose runs ask to be called again at once */
};

struct ml_enqueue_filter *ml_enqueue_filter_new(const struct ml_enqueue_filter_opts *opts);
void ml_enqueue_filter_free(struct ml_enqueue_filter *filter); /* NULL is fine */

/* A change concerns the key: every change comes through here. Reports a deleted child to the
 * expectations. The verdict is valid as long as `change` is, until ml_verdict_fini. `revision` is
 * the live one. */
ML_NODISCARD struct ml_verdict ml_enqueue_filter_changed(struct ml_enqueue_filter *filter,
                                                         const struct ml_revision *revision,
                                                         struct ml_str key,
                                                         const struct ml_change *change);

/* The run of a key, from its beginning (when the caches show all that it wrote before) to its
 * end; the caller reports the end to the expectations after this. */
void ml_enqueue_filter_begun(struct ml_enqueue_filter *filter, struct ml_str key);
/* In how many ns the key may run; 0: now. */
int64_t ml_enqueue_filter_pause(const struct ml_enqueue_filter *filter, struct ml_str key);
/* The run asks to be called again after `delay_ns`; returns the delay that it gets. `out_hot`: such
 * runs are slowed from now on, until one asks for something else; true once. */
int64_t ml_enqueue_filter_restrain(struct ml_enqueue_filter *filter, struct ml_str key,
                                   int64_t delay_ns, bool *out_hot);
/* Returns the verdict on the changes that came during the run. */
ML_NODISCARD struct ml_verdict ml_enqueue_filter_ended(struct ml_enqueue_filter *filter,
                                                       const struct ml_revision *revision,
                                                       struct ml_str key);

/* The object of the key was deleted. */
void ml_enqueue_filter_gone(struct ml_enqueue_filter *filter, struct ml_str key);
/* There is a new script: no key is slowed any more. */
void ml_enqueue_filter_reset_backoff(struct ml_enqueue_filter *filter);
/* The number of keys that it has state for. */
size_t ml_enqueue_filter_len(struct ml_enqueue_filter *filter);
