/* L6 run. The files of one source, read whole: what a folder or a ConfigMap holds at one
 * instant. */
#pragma once

#include "script/script.h"

#define ML_FILES_MAX 256

/* What is read from a folder, and what it is called in messages. */
struct ml_files_kind {
    const char *what; /* "scripts" */
    size_t size_max;  /* bytes of one file */
    bool (*wanted)(struct ml_str name);
};

extern const struct ml_files_kind ml_files_scripts;   /* "*.lua", no test ("*_test.lua") */
extern const struct ml_files_kind ml_files_manifests; /* "*.yaml", "*.yml", "*.json"; not what
                                                         kustomize reads */

struct ml_files {
    struct ml_script_file *files; /* sorted by name; names and texts owned */
    size_t count;
};

#define ML_FILES_INIT ((struct ml_files){0})

void ml_files_fini(struct ml_files *files);

/* Copies name and text in, keeping the order. ML_ELIMIT: too many, or too long. */
ML_NODISCARD int ml_files_add(struct ml_files *files, const struct ml_files_kind *kind,
                              struct ml_str name, struct ml_str text, struct ml_err *err);

/* Reads a file, of whatever name, or those of a folder that are wanted (not of its subfolders; no
 * hidden ones). A mounted ConfigMap is such a folder. ML_EIO, ML_ELIMIT, or ML_EINVALID with the
 * path and what is wrong. */
ML_NODISCARD int ml_files_read(struct ml_files *files, const struct ml_files_kind *kind,
                               const char *path, struct ml_err *err);

static inline struct ml_script_files ml_files_view(const struct ml_files *files)
{
    return (struct ml_script_files){files->files, files->count};
}
