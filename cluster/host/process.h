/* cluster. Local processes: started without a shell, their output delivered as it comes. At the end
 * nothing of them is left, including daemons that they started; they do not outlive this process
 * either, however it ends.
 *
 * The host only sends requests: a supervisor, forked once, forks a shim for each process. The shim
 * is the parent of the process and adopts its orphans; it kills them all when the process has
 * ended, or when the host's end of its socket is closed. So the host has a single child to reap.
 * Start the supervisor early: it keeps a copy of the host's memory of that moment. */
#pragma once

#include "base/err.h"
#include "net/loop.h"

#define ML_PROCESS_COUNT_MAX 512 /* processes of one, when nothing else is said */
#define ML_PROCESS_SAYS_MAX  256

/* Bytes of input that may wait in the host, and how many are left when drained() is called. */
#define ML_PROCESS_INPUT_MAX  ((size_t)4 * 1024 * 1024)
#define ML_PROCESS_INPUT_LOW  ((size_t)64 * 1024)
#define ML_PROCESS_INPUT_FULL SIZE_MAX /* more would have to wait: nothing was taken */

struct ml_processes;
struct ml_process;

/* Forks the supervisor. ML_EIO. */
ML_NODISCARD int ml_processes_new(struct ml_loop *loop, struct ml_processes **out,
                                  struct ml_err *err);
/* Free all processes first; waits until the last of them is dead. NULL is fine. */
void ml_processes_free(struct ml_processes *processes);
/* Kills all processes and waits for that, up to five seconds; frees nothing. For the end of the
 * program, at any time. */
void ml_processes_end(struct ml_processes *processes);

/* Makes a container in `folder`, which exists and is empty, and waits for it, some milliseconds. 0:
 * the system allows containers to this user. ML_EIO, with the reason: it does not. */
ML_NODISCARD int ml_processes_try_container(const char *folder, struct ml_err *err);

struct ml_process_end {
    int code;      /* exit code, 128 + signal when one ended it; 128 when it did not start */
    int signo;     /* the signal that ended it, or 0 */
    bool started;  /* false: the command could not be run, see message */
    bool too_many; /* killed because it had more processes than allowed */
    char message[ML_PROCESS_SAYS_MAX]; /* "" or why it did not start or was killed */
};

/* A volume or a folder at a path of a container, beside the machine's tools. */
struct ml_process_mount {
    const char *source;  /* a folder or a file of the machine; NULL: a folder is made, no more */
    const char *subpath; /* what of the source, made if it is missing; links that lead out of the
                            source are refused. NULL: all of it */
    const char *target;  /* absolute, without "." and ".."; made if it is missing; not "/" */
    bool read_only;
};

/* A process with namespaces and a root of its own: see process_root.c. */
struct ml_process_container {
    const char *root;     /* an existing folder, where the root is mounted; only it sees it there */
    const char *hostname; /* at most 64 bytes */
    uint32_t user;        /* the number that the host's user has inside */
    uint32_t group;
    bool read_only;                        /* but for its mounts */
    const struct ml_process_mount *mounts; /* parents come first */
    size_t mount_count;
};

/* A terminal of the process's own; of the container's, in one. The size may be 0: unknown yet. */
struct ml_process_terminal {
    uint16_t rows;
    uint16_t columns;
};

struct ml_process_opts {
    const char *const *argv; /* ends with NULL. A name without '/' is looked up in env's PATH */
    const char *const *env;  /* "NAME=value", ends with NULL; there are no others */
    const char *directory;   /* where it starts; NULL: the host's */
    uint32_t count_max;      /* limit of processes, its descendants included; 0: the default */
    const struct ml_process_container *container; /* NULL: it sees what the host sees */
    const struct ml_process *beside; /* in the container of this one, which has started; or NULL */
    bool has_network;                /* a container's: it is in a network of its own */
    int network;     /* from ml_pod_network_add; only looked at in ml_process_start */
    bool has_memory; /* a container's: it is made where folders are in memory */
    int memory;      /* from ml_memory_folders_new, with the same network; as above */
    bool has_input;  /* ml_process_write writes its standard input, which is empty otherwise */
    const struct ml_process_terminal *terminal; /* for input, output and error; NULL: it has none */

    /* Once it runs; not when it could not be started. May be NULL. Nothing may be freed here. */
    void (*started)(void *context);
    /* Standard output and error, in pieces as they come. */
    void (*output)(void *context, struct ml_str bytes);
    /* Standard error alone; what comes from one pipe says nothing about when it came from the
     * other. NULL, or with a terminal: it comes to output(). */
    void (*errors)(void *context, struct ml_str bytes);
    /* Less than ML_PROCESS_INPUT_LOW waits again, after ml_process_write has returned as much or
     * more. From the loop; may be NULL. Nothing may be freed here. */
    void (*drained)(void *context);
    /* Once, after the last output: nothing of it runs any more. The process may be freed here, but
     * not in output() and errors(). */
    void (*ended)(void *context, const struct ml_process_end *end);
    void *context;
};

/* Returns at once; whether the command could be started comes from the loop, in `ended`. Strings
 * are copied. ML_EIO: no descriptors, or the supervisor is gone. */
ML_NODISCARD int ml_process_start(struct ml_processes *processes,
                                  const struct ml_process_opts *opts, struct ml_process **out,
                                  struct ml_err *err);
/* Kills what still runs, without waiting; ended() is not called. NULL is fine. */
void ml_process_free(struct ml_process *process);

/* Signals its process group, which a daemon leaves. Does nothing once it has ended. */
void ml_process_signal(struct ml_process *process, int signo);
/* Sends SIGTERM, and kills everything after `grace_ns`, at once if that is 0. On a second call the
 * earlier deadline counts. */
void ml_process_stop(struct ml_process *process, int64_t grace_ns);

/* While paused, output stays in the pipe and writers block; ended() comes after it was read. */
void ml_process_pause(struct ml_process *process, bool paused);

/* Writes to the standard input. Never blocks: returns how many bytes wait in the host then, or
 * ML_PROCESS_INPUT_FULL. If the process has ended or closed its input, the bytes are dropped: 0. */
size_t ml_process_write(struct ml_process *process, struct ml_str bytes);
/* The process reads the end of its input behind what was written. A terminal has none: nothing
 * happens, as with runtimes of containers. */
void ml_process_end_input(struct ml_process *process);
/* Gives the terminal another size, and the process SIGWINCH. Only with a terminal. */
void ml_process_resize(struct ml_process *process, uint16_t columns, uint16_t rows);

/* Of a container: of its init. 0 until it runs; for display only. */
int ml_process_pid(const struct ml_process *process);
