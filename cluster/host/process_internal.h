/* cluster. How the host (process.c) talks with the processes that it forks (process_supervisor.c),
 * and the steps by which these become the program that was asked for, in a container or not. */
#pragma once

#include <sys/types.h>

#include "cluster/host/process.h"

/* Host to supervisor. The request is a file in memory. The last four may be missing. */
enum {
    PROCESS_FD_REQUEST,
    PROCESS_FD_CONTROL,
    PROCESS_FD_OUTPUT, /* a pipe; with a terminal a socket, over which its upper end comes */
    PROCESS_FD_ERRORS, /* a pipe; missing: errors go to output */
    PROCESS_FD_INPUT,  /* a pipe; missing: input is empty, or the terminal */
    PROCESS_FD_NETWORK,
    PROCESS_FD_MEMORY,
    PROCESS_FD_COUNT
};

/* The descriptors of the above that become the process's own. */
struct process_stdio {
    int input;
    int output;
    int errors;
};

/* Shim to host, over the control socket; and a container's init to its shim. */
struct process_report {
    enum { PROCESS_STARTED, PROCESS_FAILED, PROCESS_ENDED } what;
    int value;                         /* pid; of PROCESS_ENDED: as of waitpid */
    bool too_many;                     /* of PROCESS_ENDED */
    char message[ML_PROCESS_SAYS_MAX]; /* of PROCESS_FAILED */
};

/* Host to shim: the number of a signal; SIGKILL for all there is. Closed: the same, and out. */
typedef int process_command;

/* Supervisor to shim: too many processes. */
#define PROCESS_SIGNAL_TOO_MANY SIGUSR1

/* ---- process_request.c ---- */

/* At the beginning of the file in memory that is PROCESS_FD_REQUEST: the supervisor reads it, the
 * shim reads all. Each string that follows ends with a NUL. */
struct process_request_head {
    uint32_t count_max; /* a container's init is counted in */
    uint32_t argc;
    uint32_t envc;
    uint32_t mountc;
    uint32_t user;
    uint32_t group;
    int beside; /* a pid in the container to enter; 0: none */
    bool has_directory;
    bool has_container;
    bool read_only;
    bool has_terminal;
    struct ml_process_terminal terminal;
};

/* A request as a shim has read it. Its strings point into `text`. */
struct process_request {
    char *text;
    char **argv;
    char **env;
    const char *directory; /* NULL: where the shim is */
    int beside;
    bool has_container;
    bool has_terminal;
    struct ml_process_terminal terminal;
    struct ml_process_container container;
};

/* The descriptor of a new file for PROCESS_FD_REQUEST, or -1 and errno: E2BIG, ENOSPC. `beside` is
 * the pid of opts->beside, or 0. */
int process_request_open(const struct ml_process_opts *opts, int beside);
/* Reads what process_request_open wrote; what is read lives until the shim ends. */
bool process_request_read(struct process_request *request, int fd);

/* Sends those that are not -1, or returns false and errno. They stay open here. */
bool process_fds_send(int socket, const int fds[PROCESS_FD_COUNT]);
/* Waits for them; -1 where there is none. False when the host is gone. */
bool process_fds_receive(int socket, int fds[PROCESS_FD_COUNT]);

bool process_fds_send_terminal(int socket, int terminal);
/* Does not wait. The descriptor; or -1 and errno: EAGAIN when it has not come yet, EPIPE when it
 * never will. Anything else that others may have sent instead is closed. */
int process_fds_receive_terminal(int socket);

/* ---- process_exec.c ---- */

/* Makes the report one of a failure, with this message. */
void process_report_failure(struct process_report *report, const char *format, ...) ML_PRINTF(2, 3);
/* errno in words, as Go writes them: "no such file or directory". Valid until the next call. */
const char *process_errno_text(void);

/* Becomes the leader of a session with this input and output, and executes the command. If that
 * fails, a report of it goes to `failed`, which a successful exec closes. */
ML_NORETURN void process_exec(const struct process_request *request,
                              const struct process_stdio *stdio, int failed);

/* ---- process_container.c ---- */

/* Starts a container from its shim, whose child it becomes. Its init reports over the pipe
 * `reports` whether it has started or failed, and then how the command has ended. -1 and errno. */
pid_t process_container_start(const struct process_request *request,
                              const struct process_stdio *stdio, const int reports[2]);
/* Starts a command in the container of the process `request->beside`; the caller's child as well.
 * A failure goes to `reports`, which a successful start closes. -1: it failed. */
pid_t process_container_join(const struct process_request *request,
                             const struct process_stdio *stdio, const int reports[2]);

/* This machine lets its user have containers; `folder` is an empty one for the attempt. If not, the
 * report says why. */
ML_NODISCARD bool process_container_try(const char *folder, struct process_report *report);

/* ---- process_root.c ---- */

/* Makes the root of a container and enters it. The caller is in user, mount and pid namespaces of
 * its own. A failure is in `report`. With `has_terminal` the first terminal that is opened in it is
 * its console as well. Linux 5.12. */
ML_NODISCARD bool process_root_enter(const struct ml_process_container *container,
                                     bool has_terminal, struct process_report *report);

/* ---- process_supervisor.c ---- */

/* Never returns. `socket` is the host's other end. */
ML_NORETURN void process_supervisor(int socket);
