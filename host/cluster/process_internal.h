/* cluster. The protocol between the host (process.c) and the processes that it forks
 * (process_warden.c, process_keeper.c). */
#pragma once

#include <sys/types.h>

#include "cluster/process.h"

/* Host to warden: one byte and these descriptors. The request is that of process_request.h. The
 * last is left out for processes in the host's network. */
enum {
    PROCESS_FD_REQUEST,
    PROCESS_FD_OUTPUT,
    PROCESS_FD_CONTROL,
    PROCESS_FD_NETWORK,
    PROCESS_FD_COUNT
};

/* Keeper to host, over the control socket; and a container's init to its keeper. */
struct process_report {
    enum { PROCESS_STARTED, PROCESS_FAILED, PROCESS_ENDED } what;
    int value;                         /* pid; of PROCESS_ENDED: as of waitpid */
    bool too_many;                     /* of PROCESS_ENDED */
    char message[ML_PROCESS_SAYS_MAX]; /* of PROCESS_FAILED */
};

/* Host to keeper: the number of a signal; SIGKILL for all there is. Closed: the same, and out. */
typedef int process_command;

/* Warden to keeper: too many processes. */
#define PROCESS_SIGNAL_TOO_MANY SIGUSR1

/* process_request.c: the descriptor of a new file for PROCESS_FD_REQUEST, or -1 and errno: E2BIG,
 * ENOSPC. */
int process_request_open(const struct ml_process_opts *opts);

/* process_container.c: whether this machine lets its user have containers; `folder` is an empty one
 * for the attempt. If not, the report says why. */
ML_NODISCARD bool process_container_try(const char *folder, struct process_report *report);

/* process_warden.c. Never returns. `socket` is the host's other end. */
ML_NORETURN void process_warden(int socket);
