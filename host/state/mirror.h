/* L4 state. A mirror: a copy of the cached objects on which a revision runs without doing anything.
 * Its writes take effect in the copy alone, so that each run sees what the earlier ones would have
 * made of the world. The same code runs as against a server: the mirror is a transport.
 *
 * Time stands still for them, and what is drawn at random is the same on each mirror: two runs
 * differ by what they do.
 *
 * Objects that the copy does not have are read from the server, by GET; nothing else is ever sent.
 * If something cannot be known, the mirror says so: then the run that asked has to be canceled.
 *
 * Not simulated: admission, defaults and validation of the server, garbage collection, and other
 * controllers. Server-side apply knows no schema (codec/json_apply.h). */
#pragma once

#include "state/services.h"

struct ml_mirror;

struct ml_mirror_opts {
    struct ml_services *services; /* whose caches are copied, and whose client reads; borrowed */
    /* Tells what its applies left out: the mirror of the revision that works now; or NULL. It
     * outlives this one. */
    const struct ml_mirror *before;
    size_t reads_max; /* of the server, in all; one more is not known */
    /* The run under way asks for what cannot be known: "GET https://… is not asked". It gets no
     * answer, and must be canceled. Comes later, from the loop. */
    void (*unknown)(void *context, const char *what);
    void *context;
};

struct ml_mirror *ml_mirror_new(const struct ml_mirror_opts *opts);
void ml_mirror_free(struct ml_mirror *mirror); /* NULL is fine */

/* For the scripts and revisions that run on it. They are freed before the mirror. */
struct ml_services *ml_mirror_services(struct ml_mirror *mirror);

/* The writes from now on are made for this object; copied. One run is under way at a time. */
void ml_mirror_begin(struct ml_mirror *mirror, struct ml_str key);
/* The writes so far that have changed an object. */
size_t ml_mirror_writes(const struct ml_mirror *mirror);

/* An object that was written to. */
struct ml_mirrored {
    const struct ml_kind *kind;
    char *id;                         /* "apps/v1 Deployment default/web" */
    char *by;                         /* key of the object whose run wrote it last */
    char *why;                        /* it is deleted: "no longer returned by a.lua:8"; or NULL */
    struct ml_object *before, *after; /* NULL: there was, or is, none */

    /* Private. */
    char *applied; /* the object that was applied last, or NULL */
    unsigned made; /* how often it was created here */
};

/* Steps through them in the order of their first writes; start with *cursor 0. One that is as it
 * was has the same object twice. */
const struct ml_mirrored *ml_mirror_next(const struct ml_mirror *mirror, size_t *cursor);
const struct ml_mirrored *ml_mirror_find(const struct ml_mirror *mirror, const char *id);
/* Events that would have been recorded, by type and reason. */
struct ml_mirrored_event {
    char *id;    /* "Warning Invalid" */
    char *note;  /* the first one */
    char *about; /* the object of that: "Site default/a" */
    size_t count;
};
const struct ml_mirrored_event *ml_mirror_next_event(const struct ml_mirror *mirror,
                                                     size_t *cursor);
