/* L2 net. Runs a helper program to its end and returns its output. No shell, standard input empty,
 * output and errors kept apart and bounded, killed when it takes too long, always reaped. For
 * programs that keep running or start daemons, there is cluster/host/process.h. */
#pragma once

#include "base/err.h"
#include "net/loop.h"

struct ml_child;

struct ml_child_end {
    int code;             /* exit code, 128 + signal when one ended it */
    int signo;            /* that ended it, or 0 */
    bool timed_out;       /* killed after `timeout_ns` */
    bool too_long;        /* killed after more than `output_max` bytes */
    struct ml_str output; /* all it wrote to standard output; valid during ended() */
    struct ml_str errors; /* the first `errors_max` bytes of standard error, the same */
};

struct ml_child_opts {
    const char *const *argv; /* ends with NULL. A name without '/' is looked up in our PATH */
    const char *const *env;  /* "NAME=value", ends with NULL; there are no others */
    size_t output_max;       /* bytes */
    size_t errors_max;       /* bytes; the rest is dropped */
    int64_t timeout_ns;
    /* Once, from the loop, when the program has ended, even if it left processes in the
     * background. The child may be freed here. */
    void (*ended)(void *context, const struct ml_child_end *end);
    void *context;
};

/* Strings are used during the call only. ML_ENOT_FOUND: no such program, or one that cannot be
 * run; ML_EIO: no descriptors or processes left. */
ML_NODISCARD int ml_child_start(struct ml_loop *loop, const struct ml_child_opts *opts,
                                struct ml_child **out, struct ml_err *err);
/* Kills a running program with its process group, and reaps it; ended() is not called. NULL is
 * fine. */
void ml_child_free(struct ml_child *child);
