/* L6 run. One set of files, loaded: which are controllers, which are modules that others
 * require, which are no good and why. The same judgement for a running host and for
 * `moonloop check`. */
#pragma once

#include "run/files.h"

enum ml_batch_verdict {
    ML_BATCH_CONTROLLER, /* script is set */
    ML_BATCH_MODULE,     /* another file requires it */
    ML_BATCH_REFUSED,    /* err says why */
    ML_BATCH_SKIPPED,    /* as before: was not loaded again */
};

struct ml_batch_entry {
    enum ml_batch_verdict verdict;
    struct ml_script *script; /* owned, or NULL */
    struct ml_err err;
};

struct ml_batch {
    const struct ml_files *files;   /* borrowed */
    struct ml_batch_entry *entries; /* one for each file */
};

struct ml_batch_opts {
    struct ml_cluster *cluster; /* NULL: for checking only */
    const struct ml_script_limits *limits;
    /* The script that this file gave last time when nothing it was made from has changed, or
     * NULL to load it (again). May be NULL itself. */
    struct ml_script *(*unchanged)(void *context, size_t index);
    void *context;
};

void ml_batch_load(struct ml_batch *batch, const struct ml_files *files,
                   const struct ml_batch_opts *opts);
void ml_batch_fini(struct ml_batch *batch);

/* Over name and text of every file that `script` was made from, or of all when it is NULL. */
uint64_t ml_batch_fingerprint(const struct ml_files *files, const struct ml_script *script);
