/* L6 operator. Gives up, for good, the rights that the host does not need: the layer behind the
 * sandbox. An attacker who escapes from a script is in a process that cannot start programs, open
 * files for writing or listen on a port, and has no core dump. docs/security.md.
 *
 * To be called by the only thread of the process, after the listening sockets are open and before
 * the first script is loaded. */
#pragma once

#include "base/log.h"

struct ml_lockdown_opts {
    bool runs_programs; /* credential plugins, which inherit the restrictions; so these are fewer */
    /* Files and folders that may be read: scripts, credentials. The whole folder of each can be
     * read, as a file may be replaced by another of the same name, and the folder that it links to.
     * It need not exist yet. Ends with NULL, or is NULL. What the C library, OpenSSL and the
     * process metrics read (/etc, /usr, /lib, /proc, /sys) can always be read. */
    const char *const *readable;
    const char *const *writable; /* folders that the host writes files to; the same form */
    struct ml_log *log;
};

/* Never fails: what the kernel does not support is left out. One log line says what is in force. */
void ml_lockdown(const struct ml_lockdown_opts *opts);
