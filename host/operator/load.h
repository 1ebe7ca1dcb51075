/* L6 operator. A load makes scripts of one set of files. It gives each file a verdict: it is a
 * controller, a module that others require, or refused and why. The same for a running host and for
 * `moonloop check`. */
#pragma once

#include "operator/crash_marker.h"
#include "operator/files.h"

enum ml_load_outcome {
    ML_LOAD_CONTROLLER, /* script is set; with an `err` it is an older version */
    ML_LOAD_MODULE,     /* another file requires it, or may: it was not asked for */
    ML_LOAD_REFUSED,    /* err says why */
    ML_LOAD_UNCHANGED,  /* runs already; not loaded again */
};

struct ml_load_verdict {
    enum ml_load_outcome outcome;
    struct ml_script *script; /* owned, or NULL */
    struct ml_err err;
    bool quarantined; /* in quarantine, and `err` says so */
};

struct ml_load_opts {
    struct ml_services *services; /* NULL: for checking only */
    const struct ml_script_limits *limits;
    struct ml_crash_marker *marker; /* NULL: none is kept */
    /* Gives the files of an older version of a file that is refused: the best one for `n` 0, and so
     * on. False: there are no more, or a version of the file runs. NULL: there are none. */
    bool (*older)(void *context, struct ml_str file, size_t n, struct ml_files *out);
    void *context;
};

struct ml_load {
    struct ml_files files;
    struct ml_load_opts opts;
    struct ml_load_verdict *verdicts; /* one for each file; that on a module is final at the end */
    uint64_t fingerprint;             /* of all files */
    size_t *order;                    /* indexes of the files that were asked for */
    size_t order_count;
    size_t next; /* in `order`; those before it have a verdict */
};

/* Copies the files and loads them all at once. Of two controllers with one name, the one loaded
 * first keeps it. */
void ml_load_all(struct ml_load *load, const struct ml_files *files,
                 const struct ml_load_opts *opts);
void ml_load_fini(struct ml_load *load);

/* ---- file by file: the caller decides on the order, and when the next one is loaded ---- */

/* Copies the files. The caller may change `order`. */
void ml_load_begin(struct ml_load *load, const struct ml_files *files,
                   const struct ml_load_opts *opts);
/* The verdict on files[index] of an unfinished load (or NULL) that this one replaces, if it was
 * made from the same text. False: there is none. */
bool ml_load_recall(const struct ml_load *load, size_t index, const struct ml_load *before,
                    struct ml_load_verdict *out);
/* Gives the next file in `order` its verdict: `known`, which is taken over, or by loading the file
 * when that is NULL. An older version replaces a file that is refused. */
void ml_load_next(struct ml_load *load, const struct ml_load_verdict *known);
/* When all files are loaded: is files[index] a module that was asked for? If nothing requires it,
 * it is refused. Its verdict is final. */
bool ml_load_check_module(struct ml_load *load, size_t index);

/* The first older version of a file that can be loaded, for one that was refused outside of a load;
 * or NULL. The caller has a reference. */
struct ml_script *ml_load_older(const struct ml_load_opts *opts, struct ml_str file);
/* The controller in files[only]. NULL: it cannot be loaded, is in quarantine, or is no controller;
 * `err` says so. The caller has a reference. */
struct ml_script *ml_load_kept(const struct ml_load_opts *opts, const struct ml_files *files,
                               struct ml_err *err);
/* When all files are loaded: no file is refused or in quarantine. */
bool ml_load_is_good(const struct ml_load *load);
