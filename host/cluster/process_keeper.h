/* cluster. The keeper of one process: its parent, and by PR_SET_CHILD_SUBREAPER that of every
 * descendant whose own parent has ended. Nothing here uses anything of the host's but the socket.
 */
#pragma once

#include "cluster/process_internal.h"

/* What the warden's child runs, to its end. */
ML_NORETURN void process_keeper(const int fds[PROCESS_FD_COUNT]);
