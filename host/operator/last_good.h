/* L6 operator. The last set of files of a source whose scripts have all worked, kept for when a version
 * of one of them is quarantined (crash_marker.h). Two files in the folder of state, written in
 * turns, so that one is whole at any time; all is opened by ml_last_good_open, before the
 * lockdown, and only ever read and written after it. */
#pragma once

#include "operator/files.h"

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
