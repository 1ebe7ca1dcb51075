/* L2 net. What the host (process.c) and the processes it forks (process_warden.c,
 * process_keeper.c) tell each other. */
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

/* Never returns. Closes the descriptors. */
ML_NORETURN void process_keeper(const int fds[PROCESS_FD_COUNT]);

/* ---- process_tree.c: who descends from whom, as /proc tells ---- */

struct process_entry {
    pid_t parent;
    pid_t pid;
};

struct process_tree {
    struct process_entry *entries; /* by parent */
    size_t count;
    size_t capacity;
    pid_t *found; /* work space */
    size_t found_capacity;
};

/* Reads all processes anew. */
void process_tree_read(struct process_tree *tree);
/* The descendants of `root`, without it; valid until the next call. Returns how many. */
size_t process_tree_below(struct process_tree *tree, pid_t root, const pid_t **out);
void process_tree_fini(struct process_tree *tree);
