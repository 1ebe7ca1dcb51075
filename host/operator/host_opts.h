/* L6 operator. The options of a host: made its own, as the caller's strings may go after moonloop_new,
 * checked as far as that can be before anything is connected, and what they mean where they were
 * left out. */
#pragma once

#include "base/log.h"
#include "include/moonloop.h"
#include "state/lease.h"

/* Replaces each string and list by a copy; a missing list becomes an empty one. */
void ml_host_opts_own(struct moonloop_opts *opts);
void ml_host_opts_free(struct moonloop_opts *opts);

/* Of options that are its own. ML_EINVALID names the flag and says what to give. */
ML_NODISCARD int ml_host_opts_check(const struct moonloop_opts *opts, struct ml_err *err);
ML_NODISCARD int ml_host_opts_log(const struct moonloop_opts *opts, enum ml_log_format *out_format,
                                  enum ml_log_level *out_level, struct ml_err *err);

/* Is the process one of several, of which one works, or which share the work? */
bool ml_host_opts_is_replica(const struct moonloop_opts *opts);
const char *ml_host_opts_lease_name(const struct moonloop_opts *opts);
struct ml_lease_times ml_host_opts_lease_times(const struct moonloop_opts *opts);
