/* L6 operator. Gives up, for good, the rights that the host does not need: the layer behind the
 * sandbox. The process of an attacker who escapes from a script cannot start programs, open files
 * for writing or listen on a port, and writes no core dump. docs/security.md.
 *
 * To be called by the only thread of the process, after the listening sockets are open and before
 * the first script is loaded. */
#pragma once

#include "base/log.h"

struct ml_lockdown_opts {
    bool runs_programs; /* credential plugins, which inherit the restrictions; so these are fewer */
    /* Files and folders that may be read: scripts, credentials. The whole folder of each can be
     * read, because another file may replace it under the same name, and the folder that it links
     * to. It need not exist yet. Ends with NULL, or is NULL. /etc, /usr, /lib, /proc and /sys can
     * always be read: the C library, OpenSSL and the process metrics need them. */
    const char *const *readable;
    const char *const *writable; /* folders that the host writes files to; the same form */
    struct ml_log *log;
};

/* Never fails: leaves out what the kernel does not support. One log line says what is in force. */
void ml_lockdown(const struct ml_lockdown_opts *opts);
