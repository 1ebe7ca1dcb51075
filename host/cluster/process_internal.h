/* cluster. The protocol between the host (process.c) and the processes that it forks
 * (process_warden.c, process_keeper.c). */
#pragma once

#include <sys/types.h>

#include "cluster/process.h"

struct evbuffer;
struct event;

/* Host to warden. The request is that of process_request.h. The last three may be missing. */
enum {
    PROCESS_FD_REQUEST,
    PROCESS_FD_CONTROL,
    PROCESS_FD_OUTPUT, /* a pipe; with a terminal a socket, over which its upper end comes */
    PROCESS_FD_ERRORS, /* a pipe; missing: errors go to output */
    PROCESS_FD_INPUT,  /* a pipe; missing: input is empty, or the terminal */
    PROCESS_FD_NETWORK,
    PROCESS_FD_COUNT
};

/* What a process is started with, of the above. */
struct process_stdio {
    int input;
    int output;
    int errors;
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

/* process_submit.c. Sends a request over the socket `warden`, and returns the host's ends of what
 * connects the two, which do not block; -1 where there is none. False and errno: it was not. */
bool process_submit(int warden, const struct ml_process_opts *opts, int ours[PROCESS_FD_COUNT]);

/* ---- process_fds.c: descriptors on their way, from the host to its warden, and the terminal that
 * a started process has opened, back to the host ---- */

/* Sends those that are not -1, or returns false and errno. They stay open here. */
bool process_fds_send(int socket, const int fds[PROCESS_FD_COUNT]);
/* Waits for them; -1 where there is none. False when the host is gone. */
bool process_fds_receive(int socket, int fds[PROCESS_FD_COUNT]);

bool process_fds_send_terminal(int socket, int terminal);
/* Does not wait. The descriptor; or -1 and errno: EAGAIN when it has not come yet, EPIPE when it
 * never will. What others may have sent instead of the upper end of a terminal is closed. */
int process_fds_receive_terminal(int socket);

/* ---- process_input.c: what the host writes to the standard input of a process ---- */

struct process_input {
    struct ml_loop *loop;
    int fd;                 /* -1: not there yet, or closed */
    struct event *writable; /* waits, when something waits in the host */
    struct evbuffer *bytes; /* that wait; NULL: nothing is taken any more */
    bool is_ending;         /* closed once nothing waits */
    bool is_told;           /* the writer was told that much waits */
    void (*drained)(void *context);
    void *context;
};

void process_input_init(struct process_input *input, struct ml_loop *loop,
                        void (*drained)(void *context), void *context);
void process_input_fini(struct process_input *input); /* closes; drained() is not called */

/* From now on `fd` takes what is written; owned, and does not block. */
void process_input_connect(struct process_input *input, int fd);
/* As ml_process_write. */
size_t process_input_write(struct process_input *input, struct ml_str bytes);
void process_input_end(struct process_input *input);
/* Nobody reads any more: drops what waits. */
void process_input_break(struct process_input *input);
