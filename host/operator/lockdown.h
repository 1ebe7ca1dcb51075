/* L6 operator. Gives up, for good, the rights that the host has no use for: the layer behind the
 * sandbox. Whoever breaks out of a script finds a process that starts no program, opens no file
 * for writing and no port, and leaves no memory behind in a core dump. docs/security.md.
 *
 * To be called by the only thread of the process, after what it listens on is open and before
 * the first script is loaded. */
#pragma once

#include "base/log.h"

struct ml_lockdown_opts {
    bool runs_programs; /* credential plugins; they inherit what is given up, so it is less */
    /* Files and folders that may be read: scripts, credentials. All beneath the folder that one
     * stands in can be read, as it may be replaced by another of that name, and beneath the one it
     * links to. One that is not there yet may come. A NULL behind the last, or NULL. What the C
     * library, OpenSSL and process metrics read (/etc, /usr, /lib, /proc, /sys) may always be. */
    const char *const *readable;
    const char *const *writable; /* folders that the host writes files in; the same */
    struct ml_log *log;
};

/* Never fails: what the kernel cannot do is left out. One log line says what is in force. */
void ml_lockdown(const struct ml_lockdown_opts *opts);
