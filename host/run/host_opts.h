/* L6 run. The options of a host, made its own: the caller's strings may go after
 * moonloop_new. */
#pragma once

#include "include/moonloop.h"

/* Replaces each string and list by a copy; a missing list becomes an empty one. */
void ml_host_opts_own(struct moonloop_opts *opts);
void ml_host_opts_free(struct moonloop_opts *opts);
