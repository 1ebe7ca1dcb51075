/* L6 operator. The revisions of a ConfigMap of scripts that were live and good, kept in a second
 * ConfigMap beside it, NAME-revisions: five of each controller; and why others were stopped, so
 * that no process tries them again. They outlive the process, and the ConfigMap of the scripts.
 * Only a process that reconciles writes there. And the annotation of the ConfigMap of the scripts
 * that names one of them to run. */
#pragma once

#include "operator/files.h"
#include "state/services.h"

#define ML_HISTORY_SUFFIX    "-revisions"         /* of the name */
#define ML_HISTORY_KEPT_MAX  5                    /* revisions of one controller */
#define ML_HISTORY_BYTES_MAX ((size_t)900 * 1024) /* of all; the API server takes 1 MiB */

struct ml_history;

struct ml_history_opts {
    struct ml_services *services; /* borrowed */
    struct ml_str ns, name;       /* of the ConfigMap of the scripts; borrowed for life */
    /* The kept revisions were read for the first time. Must not free the history. */
    void (*known)(void *context);
    void (*changed)(void *context); /* they have changed since; likewise */
    void *context;
};

/* Begins to watch the ConfigMap. Callbacks come later from the loop. */
struct ml_history *ml_history_new(const struct ml_history_opts *opts);
void ml_history_free(struct ml_history *history); /* NULL is fine */

/* The kept revisions have been read, even if there are none. Until then all reads say so. */
bool ml_history_is_known(const struct ml_history *history);

struct ml_live_revision {
    const char *controller, *revision;
    const char *file;    /* that has the controller */
    const char *version; /* resourceVersion of the ConfigMap of the scripts; NULL: it is
                            kept already */
    const char *way;     /* "start", "edit", "rollback", "return": why it is live; static */
    const struct ml_files *files; /* all that it was loaded from */
};

/* The revision is live, and the newest of its controller from now on. Copied, and written when this
 * process reconciles. The oldest ones are dropped for it, but never the newest of a controller. */
void ml_history_keep(struct ml_history *history, const struct ml_live_revision *revision);

/* The revision of the controller was stopped. `version` as above. Written like one that is kept, in
 * its place: so one that is kept later was not stopped. */
void ml_history_stop(struct ml_history *history, const char *controller, const char *revision,
                     const char *version, const char *why);
/* Was it stopped? Then `why` has the text. */
bool ml_history_is_stopped(const struct ml_history *history, struct ml_str controller,
                           struct ml_str revision, struct ml_buf *why);
/* Is it the newest one of the controller that is kept? */
bool ml_history_is_newest(const struct ml_history *history, struct ml_str controller,
                          struct ml_str revision);

/* The files of a revision of a controller, which the caller frees; `only` is the one with the
 * controller. False: it is not kept. */
bool ml_history_read(const struct ml_history *history, struct ml_str controller,
                     struct ml_str revision, struct ml_files *out);
/* As ml_history_read, the revision number `*n` of those whose controller was in `file`; 0: the
 * newest. False: there are fewer, and `*n` is less by their number. */
bool ml_history_read_newest(const struct ml_history *history, struct ml_str file, size_t *n,
                            struct ml_files *out);
/* Appends the revisions of a controller, newest first: "3f2a91bc, 99aa88bb"; "none". */
void ml_history_list(const struct ml_history *history, struct ml_str controller,
                     struct ml_buf *out);

/* The same of a ConfigMap (JSON) with kept revisions; nothing: there are none. */
void ml_kept_list(struct ml_str configmap, struct ml_str controller, struct ml_buf *out);

/* ---- moonloop.dev/rollback: "site: 3f2a91bc instead of 99aa88bb, database: …" ---- */

#define ML_ROLLBACK_ANNOTATION "moonloop.dev/rollback"

struct ml_rollback {
    struct ml_str controller;
    struct ml_str revision;   /* which is to run */
    struct ml_str instead_of; /* while the scripts have this one */
};

/* Reads the next item of the annotation and takes it off `rest`. False: that was the last one.
 * ML_EINVALID in `err`: the item is of another form. Slices point into the annotation. */
bool ml_rollback_next(struct ml_str *rest, struct ml_rollback *out, struct ml_err *err);
/* The item for a controller. False: there is none. `annotation` may be NULL. */
bool ml_rollback_find(const char *annotation, struct ml_str controller, struct ml_rollback *out);
