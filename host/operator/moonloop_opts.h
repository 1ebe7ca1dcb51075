/* L6 operator. The options of a host: copied, checked, and what follows from them. */
#pragma once

#include "include/moonloop.h"
#include "state/lease.h"

/* Replaces what the options point to by copies, as the caller may free its own after
 * moonloop_new. A list that is NULL becomes an empty one. */
void moonloop_opts_own(struct moonloop_opts *opts);
void moonloop_opts_fini(struct moonloop_opts *opts); /* frees those copies */

/* 0, or ML_EINVALID with what to change. The options are owned. */
ML_NODISCARD int moonloop_opts_check(const struct moonloop_opts *opts, struct ml_err *err);

/* Is this process one of several that hold Leases: with --leader-elect, or --shard? */
bool moonloop_opts_is_replica(const struct moonloop_opts *opts);
const char *moonloop_opts_lease_name(const struct moonloop_opts *opts); /* borrowed */
struct ml_lease_times moonloop_opts_lease_times(const struct moonloop_opts *opts);
