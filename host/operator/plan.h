/* L6 operator. A plan: what a revision of a script would do, were it live now. It runs over the
 * objects in the cache, on a mirror (state/mirror.h), so nothing is written. The revision that
 * works now, where there is one, runs first, on a mirror of its own: what both would do is not the
 * doing of the new one. Each object is reconciled, then those whose runs wrote something once more;
 * one that still writes in the fourth run is said to do so without end. */
#pragma once

#include "codec/json_apply.h"
#include "operator/load.h"
#include "state/mirror.h"

struct ml_plan;

struct ml_plan_opts {
    struct ml_services *services; /* borrowed */
    const struct ml_script_limits *limits;
    struct ml_crash_marker *marker; /* as in ml_load_opts */
    const struct ml_files *files;   /* of the revision; `only` has the controller; copied */
    const struct ml_files *runs;    /* the same of the one that works now; NULL: none does */
    size_t objects_max;             /* a sample when there are more; 0: all are tried */
    size_t reads_max;               /* of the server, for what is not cached; 0: 500 */
    /* It has come to its end. May free the plan. */
    void (*done)(void *context);
    void *context;
};

/* ML_ESCRIPT: one of the two cannot be loaded. Nothing is called inside this call. */
ML_NODISCARD int ml_plan_new(const struct ml_plan_opts *opts, struct ml_plan **out,
                             struct ml_err *err);
void ml_plan_free(struct ml_plan *plan); /* at any time; NULL is fine */

const struct ml_declaration *ml_plan_declaration(const struct ml_plan *plan);
/* Of the revision that works now; NULL: there is none. */
const struct ml_declaration *ml_plan_predecessor(const struct ml_plan *plan);

/* Before its end: appends a line for each kind whose objects are not in the cache yet, and why. */
void ml_plan_waits(const struct ml_plan *plan, struct ml_buf *why);

/* Is one of the kinds not installed? */
bool ml_plan_misses_kind(const struct ml_plan *plan);

/* ---- from its end on ---- */

/* The objects of the reconciled kind, and how many of them were tried. */
size_t ml_plan_objects(const struct ml_plan *plan, size_t *out_tried);
/* The objects in the cache whose owner reference controls them for one that was tried. */
size_t ml_plan_owned(const struct ml_plan *plan);

enum ml_plan_verb { ML_PLAN_CREATE, ML_PLAN_CHANGE, ML_PLAN_DELETE, ML_PLAN_VERBS };

extern const char *const ml_plan_verbs[ML_PLAN_VERBS]; /* "create", … */

struct ml_plan_change {
    enum ml_plan_verb verb;
    const struct ml_kind *kind;
    struct ml_str key;              /* of the object */
    const char *by;                 /* key of the object whose run did it */
    const char *why;                /* of a deletion: "no longer returned by a.lua:8"; or NULL */
    const struct ml_object *before; /* NULL: it is created */
    const struct ml_object *after;  /* NULL: it is deleted */
    struct ml_str stored;           /* JSON: what a server would make of `after`. Empty: not asked;
                                       for the caller to set */
};

/* The next object that would be another one; start with *cursor 0. False: there is none. */
bool ml_plan_next_change(const struct ml_plan *plan, size_t *cursor, struct ml_plan_change *out);
/* Calls `differs` for each field of a change that a person would care for: not those of the
 * metadata that the server sets. The values of Secrets are replaced by "(hidden)". */
void ml_plan_differences(const struct ml_plan_change *change, ml_json_differs *differs,
                         void *context);
/* Such a difference for people, "spec.replicas: 3 → nothing"; long values are cut. */
void ml_plan_append_difference(struct ml_buf *out, struct ml_str field, struct ml_str from,
                               struct ml_str to);

/* A remark about the runs for one object. */
struct ml_plan_note {
    const char *key, *text;
};

enum ml_plan_notes {
    ML_PLAN_FAILS,   /* its reconcile fails, and does not in the revision that works now */
    ML_PLAN_UNKNOWN, /* the plan does not know what follows: it would ask a server */
    ML_PLAN_ENDLESS, /* each run writes again */
    ML_PLAN_NOTES,
};

/* One of them in the order of the keys. False: there are no more. */
bool ml_plan_note(const struct ml_plan *plan, enum ml_plan_notes which, size_t index,
                  struct ml_plan_note *out);
/* As ml_mirror_next_event. */
const struct ml_mirrored_event *ml_plan_next_event(const struct ml_plan *plan, size_t *cursor);
