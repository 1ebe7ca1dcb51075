/* L6 operator. One set of files, loaded: which are controllers, which are modules that others
 * require, which are no good and why. The same for a running host and for `moonloop check`. */
#pragma once

#include "operator/crash_marker.h"
#include "operator/files.h"

enum ml_batch_verdict {
    ML_BATCH_CONTROLLER, /* script is set */
    ML_BATCH_MODULE,     /* another file requires it */
    ML_BATCH_REFUSED,    /* err says why */
    ML_BATCH_SKIPPED,    /* as it works already: was not loaded again */
};

struct ml_batch_entry {
    enum ml_batch_verdict verdict;
    struct ml_script *script; /* owned, or NULL */
    struct ml_err err;
    bool quarantined; /* the crash marker has this version, err says so: REFUSED, or CONTROLLER when
                         `script` is of the last good one */
};

struct ml_batch;

struct ml_batch_opts {
    struct ml_cluster *cluster; /* NULL: for checking only */
    const struct ml_script_limits *limits;
    struct ml_crash_marker *marker; /* NULL: none is kept */
    /* Fills the entry of a file with what came of it before, when nothing it was made from has
     * changed; false: load it (again). May be NULL itself. */
    bool (*known)(void *context, const struct ml_batch *batch, size_t index,
                  struct ml_batch_entry *entry);
    /* This file is loaded behind the others: nobody expects much of it. May be NULL. */
    bool (*late)(void *context, const struct ml_script_file *file);
    /* The verdict on a file is final; called once for each, a module only at the end of the set.
     * May be NULL. */
    void (*judged)(void *context, const struct ml_batch *batch, size_t index);
    /* Fills the last good set of this source, where something of it is to take the place of what is
     * quarantined. May be NULL itself. */
    bool (*last_good)(void *context, const struct ml_batch *batch, size_t index,
                      struct ml_files *out);
    void *context;
};

struct ml_batch {
    const struct ml_files *files; /* borrowed */
    struct ml_batch_opts opts;
    struct ml_batch_entry *entries; /* one for each file */
    const struct ml_batch *before;  /* borrowed: one that was left, and what it loaded; or NULL */
    size_t *order;                  /* indexes of the files, as they are loaded */
    size_t next;                    /* in `order`; those before it are filled */
    uint64_t fingerprint;           /* of all files */
};

void ml_batch_begin(struct ml_batch *batch, const struct ml_files *files,
                    const struct ml_batch_opts *opts);
/* Loads one file, and judges it against those before it: of two controllers with one name, the one
 * that was loaded first has it. False when all are loaded, and the modules are judged as well. */
bool ml_batch_step(struct ml_batch *batch);
void ml_batch_load(struct ml_batch *batch, const struct ml_files *files,
                   const struct ml_batch_opts *opts); /* all at once */
void ml_batch_fini(struct ml_batch *batch);

/* Over name and text of every file that `script` was made from, or of all when it is NULL. */
uint64_t ml_batch_fingerprint(const struct ml_files *files, const struct ml_script *script);

/* How many files of this set are no good, each told through `tell` with ML_ESCRIPT or
 * ML_EINVALID and "file:line: message". For moonloop check: nothing is started. `good` is
 * called with each controller. */
struct ml_batch_check {
    void (*bad)(void *context, const struct ml_err *err);
    void (*good)(void *context, const struct ml_script *script);
    void *context;
};

size_t ml_batch_check(const struct ml_script_limits *limits, const struct ml_files *files,
                      const struct ml_batch_check *check);

/* ---- in turns of the loop (state/turns.h), so that files that take long hold up nobody ---- */

struct ml_loader;

/* `opts` and its limits are copied; its cluster is not NULL. `loaded`, with the context of `opts`:
 * a set is loaded whole, and all of it is decided. */
struct ml_loader *ml_loader_new(const struct ml_batch_opts *opts,
                                void (*loaded)(void *context, const struct ml_batch *batch));
void ml_loader_free(struct ml_loader *loader); /* NULL is fine; not from inside its handler */

/* Copies the set and begins to load it. A set that is on its way is left; what of it is loaded, and
 * the same in the new one, is kept. */
void ml_loader_load(struct ml_loader *loader, const struct ml_files *files);
bool ml_loader_busy(const struct ml_loader *loader);
