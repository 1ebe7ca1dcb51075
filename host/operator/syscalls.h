/* L6 operator. Which system calls the process may make from now on: a seccomp filter, made here, of
 * which no library is needed. It holds for all threads, and for good. */
#pragma once

#include "base/err.h"

enum ml_syscalls {
    /* What the host does at its work, and nothing else. What only an intruder would try (execve,
     * ptrace, mount, bpf, io_uring, …) ends the process with SIGSYS. A listed call with other
     * arguments (a new listening socket, a fork, memory to execute) is EPERM; all others are
     * ENOSYS, as on a kernel that does not have them, for which libraries have a second way. */
    ML_SYSCALLS_STRICT,
    /* The same, and files may be opened for writing, made and renamed. Where: landlock says. */
    ML_SYSCALLS_STRICT_AND_FILES,
    /* The process starts other programs (a credential plugin), and these inherit the filter: all
     * calls but those that only an intruder would try, which are EPERM. */
    ML_SYSCALLS_WITH_PROGRAMS,
};

/* Wants no_new_privs, or CAP_SYS_ADMIN. ML_EUNSUPPORTED: the kernel has no filters, or this is
 * neither x86_64 nor aarch64; ML_EIO: it takes none. Nothing has changed then. */
ML_NODISCARD int ml_syscalls_restrict(enum ml_syscalls which, struct ml_err *err);
