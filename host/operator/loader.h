/* L6 operator. Loads a set of files and decides which are controllers, which are modules that
 * others require, and which are refused and why. The same for a running host and for `moonloop
 * check`. */
#pragma once

#include "operator/crash_marker.h"
#include "operator/files.h"

enum ml_batch_verdict {
    ML_BATCH_CONTROLLER, /* script is set; with an `err` it comes from the last good set */
    ML_BATCH_MODULE,     /* another file requires it, or may: it was not asked for */
    ML_BATCH_REFUSED,    /* err says why */
    ML_BATCH_SKIPPED,    /* runs already; not loaded again */
};

struct ml_batch_entry {
    enum ml_batch_verdict verdict;
    struct ml_script *script; /* owned, or NULL */
    struct ml_err err;
    bool quarantined; /* in quarantine, and `err` says so */
};

struct ml_batch;

struct ml_batch_opts {
    struct ml_services *services; /* NULL: for checking only */
    const struct ml_script_limits *limits;
    struct ml_crash_marker *marker; /* NULL: none is kept */
    /* Fills the entry of a file with its earlier verdict, if each of the files that it was made
     * from is unchanged. False: load it (again). May be NULL. */
    bool (*known)(void *context, const struct ml_batch *batch, size_t index,
                  struct ml_batch_entry *entry);
    /* Is this file to be loaded after the others? May be NULL. */
    bool (*late)(void *context, const struct ml_script_file *file);
    /* The verdict on a file is final. Called once for each that was asked for, for modules at the
     * end of the set. May be NULL. */
    void (*judged)(void *context, const struct ml_batch *batch, size_t index);
    /* Fills `out` with the last good set of the source, to replace a file that is refused. False:
     * there is none, or the file has a version that runs. May be NULL. */
    bool (*last_good)(void *context, struct ml_str file, struct ml_files *out);
    void *context;
};

struct ml_batch {
    struct ml_files files;
    struct ml_batch_opts opts;
    struct ml_batch_entry *entries; /* one for each file */
    uint64_t fingerprint;           /* of all files */

    /* Private. */
    const struct ml_batch
        *before;   /* borrowed: the unfinished one that this one replaces; or NULL */
    size_t *order; /* indexes of the files that were asked for, as they are loaded */
    size_t order_count;
    size_t next; /* in `order`; those before it are filled */
};

/* Copies the files and loads them all at once. Of two controllers with one name, the one loaded
 * first keeps it. */
void ml_batch_load(struct ml_batch *batch, const struct ml_files *files,
                   const struct ml_batch_opts *opts);
void ml_batch_fini(struct ml_batch *batch);

/* The controller of this file in the last good set, for a file that was refused before it got into
 * the batch; or NULL. The caller has a reference. */
struct ml_script *ml_batch_load_last_good(const struct ml_batch *batch, struct ml_str file);

/* Of a loaded batch: no file is refused or in quarantine. */
bool ml_batch_is_good(const struct ml_batch *batch);

/* ---- in turns of the loop (state/turns.h), so that slow files hold up nobody ---- */

struct ml_loader;

/* `opts` and its limits are copied; its services are not NULL. `loaded` is called from the loop
 * with the context of `opts` when a whole set is loaded and all its verdicts are final. */
struct ml_loader *ml_loader_new(const struct ml_batch_opts *opts,
                                void (*loaded)(void *context, const struct ml_batch *batch));
void ml_loader_free(struct ml_loader *loader); /* NULL is fine; not from inside its handler */

/* Copies the set and begins to load it. It replaces a set that is still being loaded; files that
 * are already loaded and the same in both are kept. */
void ml_loader_load(struct ml_loader *loader, const struct ml_files *files);
bool ml_loader_busy(const struct ml_loader *loader); /* false for NULL */
