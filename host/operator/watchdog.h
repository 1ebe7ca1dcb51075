/* L6 operator. Tells when the event loop stands still: inside C code of ours or of a library, in a
 * collector or compiler that no hook interrupts. A process whose only thread hangs cannot say so,
 * and its probes time out without a reason. So a second thread looks whether a timer of the loop
 * still fires. When it has not for ten seconds, the thread writes a log line, and answers what
 * comes to the port of the probes with 503 until the loop turns again. It ends nothing: that is
 * for the kubelet to decide.
 *
 * The thread waits nearly always. It touches nothing of the host but the counter and the
 * descriptors that it got, takes no lock and no memory (the loop may hang with the allocator's
 * lock held), and gets no signals. docs/decisions/0008. */
#pragma once

#include "base/log.h"
#include "net/loop.h"

struct ml_watchdog;

struct ml_watchdog_opts {
    struct ml_loop *loop;
    const struct ml_log *log; /* descriptor and format are copied */
    int listener;             /* of the probes, or -1 */
    int64_t tick_ns;          /* the loop is to turn at least so often; 0: a second */
    int ticks_max;            /* so many without a turn: it stands still; 0: ten */
};

/* To be called where the loop is run, and before it runs; what ticks are counted from is its
 * first turn. ML_EIO: no thread is to be had. */
ML_NODISCARD int ml_watchdog_new(const struct ml_watchdog_opts *opts, struct ml_watchdog **out,
                                 struct ml_err *err);
/* Before the listener is closed. NULL is fine. */
void ml_watchdog_free(struct ml_watchdog *watchdog);
