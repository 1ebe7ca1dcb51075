/* cluster. The protocol between the host (process.c) and the processes that it forks
 * (process_keeper.c). */
#pragma once

#include <sys/types.h>

#include "cluster/process.h"

/* Host to warden: one byte and these descriptors. */
enum { PROCESS_FD_REQUEST, PROCESS_FD_OUTPUT, PROCESS_FD_CONTROL, PROCESS_FD_COUNT };

/* At the beginning of the request; argv, env and the folder follow, each with a NUL. */
struct process_request {
    uint32_t count_max;
    uint32_t argc;
    uint32_t envc;
    uint32_t has_directory;
};

/* Keeper to host, over the control socket. */
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

/* Never returns. `socket` is the host's other end. */
ML_NORETURN void process_warden(int socket);
