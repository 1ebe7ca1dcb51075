/* L6 operator. The files of one source on their way to be scripts: loaded one at a time, in turns of the
 * loop (state/turns.h), so that files that take long to load hold up nobody. */
#pragma once

#include "operator/batch.h"
#include "operator/source.h"

struct ml_loader;

struct ml_loader_handler {
    /* As ml_batch_opts: what came of batch->files->files[index] before. */
    bool (*known)(void *context, struct ml_source *source, const struct ml_batch *batch,
                  size_t index, struct ml_batch_entry *entry);
    /* As ml_batch_opts: for batch->files->files[index]. */
    bool (*last_good)(void *context, struct ml_source *source, const struct ml_batch *batch,
                      size_t index, struct ml_files *out);
    /* As ml_batch_opts: which files are loaded behind the others. */
    bool (*late)(void *context, struct ml_source *source, const struct ml_script_file *file);
    /* As ml_batch_opts: what came of batch->files->files[index]. The entry stays the batch's. */
    void (*judged)(void *context, struct ml_source *source, const struct ml_batch *batch,
                   size_t index);
    /* A set is loaded whole, and all of it is judged. */
    void (*loaded)(void *context, struct ml_source *source, const struct ml_batch *batch);
};

/* All borrowed; the limits are copied. */
struct ml_loader_opts {
    struct ml_cluster *cluster;
    const struct ml_script_limits *limits;
    struct ml_crash_marker *marker; /* NULL: none is kept */
    struct ml_source *source;
    const struct ml_loader_handler *handler;
    void *context;
};

struct ml_loader *ml_loader_new(const struct ml_loader_opts *opts);
void ml_loader_free(struct ml_loader *loader); /* NULL is fine; not from inside its handler */

/* Copies the set and begins to load it. A set that is on its way is left; what of it is loaded, and
 * the same in the new one, is kept. */
void ml_loader_load(struct ml_loader *loader, const struct ml_files *files);
bool ml_loader_busy(const struct ml_loader *loader);
