/* L2 net. Local processes: started without a shell, their output handed over as it comes, and
 * nothing left of them at the end, daemons they have started included. They do not outlive this
 * process either, however it ends.
 *
 * The host itself only sends requests: a warden, forked once, forks a keeper for each process.
 * The keeper is its parent and the new parent of what it leaves behind; it kills all of them when
 * the process has ended, or when the host's end of its socket is closed. So the host has one child
 * ever, and reaps no others. Start the warden early: it keeps the memory of that moment. */
#pragma once

#include "base/err.h"
#include "net/loop.h"

#define ML_PROCESS_COUNT_MAX 512 /* processes of one, when nothing else is said */
#define ML_PROCESS_SAYS_MAX  256

struct ml_processes;
struct ml_process;

/* Forks the warden. ML_EIO. */
ML_NODISCARD int ml_processes_new(struct ml_loop *loop, struct ml_processes **out,
                                  struct ml_err *err);
/* All processes have been freed before; waits until the last of them is dead. NULL is fine. */
void ml_processes_free(struct ml_processes *processes);

struct ml_process_end {
    int code;      /* exit code, 128 + signal when one ended it; 128 when it did not start */
    int signo;     /* that ended it, or 0 */
    bool started;  /* false: the command cannot be run, see message */
    bool too_many; /* killed because it had more processes than allowed */
    char message[ML_PROCESS_SAYS_MAX]; /* "" or why it did not start or was killed */
};

struct ml_process_opts {
    const char *const *argv; /* ends with NULL. A name without '/' is looked up in env's PATH */
    const char *const *env;  /* "NAME=value", ends with NULL; there are no others */
    const char *directory;   /* where it starts; NULL: the host's */
    uint32_t count_max;      /* of its processes and threads' processes; 0: the default */

    /* Standard output and error, in pieces as they come. */
    void (*output)(void *context, struct ml_str bytes);
    /* Once, after the last output: nothing of it runs any more. The process may be freed here, but
     * not in output(). */
    void (*ended)(void *context, const struct ml_process_end *end);
    void *context;
};

/* Its working is told later, from the loop: also that there is no such command. All strings are
 * copied. ML_EIO: no descriptors, or the warden is gone. Standard input is empty. */
ML_NODISCARD int ml_process_start(struct ml_processes *processes,
                                  const struct ml_process_opts *opts, struct ml_process **out,
                                  struct ml_err *err);
/* What still runs is killed soon; ended() does not come. NULL is fine. */
void ml_process_free(struct ml_process *process);

/* To all processes of its group; a daemon leaves that. Nothing happens once it has ended. */
void ml_process_signal(struct ml_process *process, int signo);
/* SIGTERM, and after `grace_ns` everything is killed; at once when it is 0. Asked again, the
 * earlier of the two times counts. */
void ml_process_stop(struct ml_process *process, int64_t grace_ns);

/* While paused, output stays in the pipe and writers wait; ended() waits for what is there. */
void ml_process_pause(struct ml_process *process, bool paused);

int ml_process_pid(const struct ml_process *process); /* 0 until it runs; for people to read */
