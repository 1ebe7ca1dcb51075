/* L6 operator. Which files the process may open from now on, by landlock: part of the kernel, no
 * library needed. It holds for the calling thread and those that it starts, for good.
 *
 *   read    the places given, and what the C library, OpenSSL and process metrics read: /etc, /usr,
 *           /lib, /proc, /sys
 *   write   the folders given, files only
 *   execute nothing
 * And where the kernel can: no new TCP port to listen on, no signal to a process outside. */
#pragma once

#include "base/err.h"

struct ml_file_rights_opts {
    /* Files and folders. All beneath the folder that one stands in can be read, as it may be
     * replaced by another of that name, and beneath the one it links to, if any. One that is not
     * there yet may come. A NULL behind the last, or NULL. */
    const char *const *readable;
    const char *const *writable; /* folders; the same */
};

enum ml_file_reads {
    ML_FILE_READS_LISTED,
    ML_FILE_READS_ALL, /* a place that is not there yet may come straight beneath the root */
};

/* ML_EUNSUPPORTED: the kernel has no landlock, or it is off. ML_EIO: it takes no rules. Nothing
 * has changed then. Wants no_new_privs. */
ML_NODISCARD int ml_file_rights_restrict(const struct ml_file_rights_opts *opts,
                                         enum ml_file_reads *out, struct ml_err *err);
