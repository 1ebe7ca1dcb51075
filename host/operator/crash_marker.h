/* L6 operator. Which version of a script was at work when the process died: a page in a file,
 * written as plain memory, that the next process reads. A version that was at work when the process
 * died twice in a row is quarantined: it is not loaded again by itself.
 *
 * All that it needs is opened by ml_crash_marker_open, so the lockdown has nothing to allow it.
 *
 * In a row: no process in between ended in order, or worked for ML_CRASH_MARKER_WORKED_NS. */
#pragma once

#include "base/log.h"
#include "operator/files.h"

/* When a version counts as good. As long as the kubelet waits before it forgets how often a
 * container has died. */
#define ML_CRASH_MARKER_WORKED_NS (600 * ML_NS_PER_S)

#define ML_CRASH_MARKER_VERSIONS_MAX 64 /* that it remembers; the oldest goes first */

struct ml_crash_marker;

/* Opens "crash-marker" in the folder, which must be there, or makes it (0600), and counts the death
 * of what is at work in it. Logs a death; logs a file that is none of its own, and begins anew.
 * ML_EIO, ML_EINVALID; ML_EALREADY_EXISTS: another process has it. The log is borrowed for this
 * call. */
ML_NODISCARD int ml_crash_marker_open(const char *folder, struct ml_log *log,
                                      struct ml_crash_marker **out, struct ml_err *err);
void ml_crash_marker_close(struct ml_crash_marker *marker); /* as if it died; NULL is fine */

const char *ml_crash_marker_folder(const struct ml_crash_marker *marker);

/* What of this file is the same in every process, and changes with its name and text; never 0. */
uint64_t ml_crash_marker_version(const struct ml_script_file *file);

/* For struct ml_script_limits: where the version at work stands, 0 when none is. */
volatile uint64_t *ml_crash_marker_at_work(struct ml_crash_marker *marker);

bool ml_crash_marker_quarantined(const struct ml_crash_marker *marker, uint64_t version);

/* The process ends in order, or has worked for long enough: single deaths are forgotten. */
void ml_crash_marker_forgive(struct ml_crash_marker *marker);

/* ---- the last good set ----
 *
 * The last set of files of a source whose scripts have all worked, kept for when a version
 * of one of them is quarantined (crash_marker.h). Two files in the folder of state, written in
 * turns, so that one is whole at any time; all is opened by ml_last_good_open, before the
 * lockdown, and only ever read and written after it. */
struct ml_last_good;

/* `source` is its name, from one process to the next. ML_EIO, ML_EINVALID. */
ML_NODISCARD int ml_last_good_open(const char *folder, const char *source,
                                   struct ml_last_good **out, struct ml_err *err);
void ml_last_good_close(struct ml_last_good *kept); /* NULL is fine */

/* Writes the set. It is read by nobody before ml_last_good_accept. ML_EIO. */
ML_NODISCARD int ml_last_good_propose(struct ml_last_good *kept, const struct ml_files *files,
                                      struct ml_err *err);
/* What was proposed last is good. Without effect when nothing is. ML_EIO. */
ML_NODISCARD int ml_last_good_accept(struct ml_last_good *kept, struct ml_err *err);

/* Fills `files`, which the caller frees. False: there is no good set, or it is damaged. */
bool ml_last_good_read(struct ml_last_good *kept, struct ml_files *files);
