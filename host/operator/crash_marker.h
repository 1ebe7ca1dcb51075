/* L6 operator. Records which version of a script runs, in a memory-mapped page of a file. After the
 * process has died, the next process reads it. If the process dies twice in a row while the same
 * version runs, that version is quarantined: it is not loaded again by itself. In a row: no process
 * in between ended normally, or ran for ML_CRASH_MARKER_WORKED_NS.
 *
 * All files are opened before the lockdown, so the lockdown need not allow opening them. */
#pragma once

#include "base/log.h"
#include "net/loop.h"
#include "operator/files.h"

/* After this time a version counts as good. The kubelet forgets the crashes of a container after
 * the same time. */
#define ML_CRASH_MARKER_WORKED_NS (600 * ML_NS_PER_S)

#define ML_CRASH_MARKER_VERSIONS_MAX 64 /* that it records; the oldest is dropped first */

struct ml_crash_marker;

/* Opens "crash-marker" in the folder, which must exist, or creates it (0600). Counts and logs the
 * death of the version that ran; logs and replaces a damaged file. ML_EIO, ML_EINVALID;
 * ML_EALREADY_EXISTS: another process has it. The log is borrowed for this call. */
ML_NODISCARD int ml_crash_marker_open(const char *folder, struct ml_log *log,
                                      struct ml_crash_marker **out, struct ml_err *err);
void ml_crash_marker_close(
    struct ml_crash_marker *marker); /* as if the process died; NULL is fine */

const char *ml_crash_marker_folder(const struct ml_crash_marker *marker);

/* For struct ml_script_limits: holds the version that runs, or 0. */
volatile uint64_t *ml_crash_marker_at_work(struct ml_crash_marker *marker);

/* `version`: ml_file_fingerprint of the script. */
bool ml_crash_marker_quarantined(const struct ml_crash_marker *marker, uint64_t version);

/* The process ends normally, or has run for long enough: forgets single deaths. */
void ml_crash_marker_forgive(struct ml_crash_marker *marker);

/* ---- the last good set ----
 *
 * The last set of files of a source whose scripts all ran well. It replaces a version that is put
 * into quarantine. Two files in --state-dir are written in turns, so that one is always complete.
 * Write errors are logged. NULL is fine for all but open. */
struct ml_last_good;

struct ml_last_good_opts {
    struct ml_loop *loop;
    struct ml_log *log;
    const char *folder;
    const char *source; /* its name, the same in every process; borrowed for life */
    /* Does every file of the source run in its newest version? */
    bool (*works)(void *context);
    void *context;
};

/* ML_EIO, ML_EINVALID: none is kept, which is logged as well. */
int ml_last_good_open(const struct ml_last_good_opts *opts, struct ml_last_good **out,
                      struct ml_err *err);
void ml_last_good_close(struct ml_last_good *kept);

/* A set was loaded. A good one, in which nothing was refused, is written, and becomes the last good
 * set once it has worked for ML_CRASH_MARKER_WORKED_NS, unless another is loaded before. */
void ml_last_good_propose(struct ml_last_good *kept, const struct ml_files *files, bool good);
/* The process ends normally: a set that works is accepted now. */
void ml_last_good_end(struct ml_last_good *kept);

/* Fills `files`, which the caller frees. False: there is no good set, or it is damaged. */
bool ml_last_good_read(struct ml_last_good *kept, struct ml_files *files);
