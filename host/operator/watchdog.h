/* L6 operator. Reports a blocked event loop: a hang in our C code or in a library, in Lua's
 * collector or compiler, which no hook interrupts. A process whose only thread hangs cannot report
 * it, and its probes time out without a reason. So a second thread checks whether a timer of the
 * loop still fires. When it has not for ten seconds, the thread writes a log line, and answers
 * probes with 503 until the loop runs again. It ends nothing: the kubelet decides that.
 *
 * The thread nearly always sleeps. It uses only the counter and its descriptors of the host,
 * takes no lock and does not allocate (the loop may hang with the allocator's lock held), and gets
 * no signals. docs/decisions/0008. */
#pragma once

#include "base/log.h"
#include "net/loop.h"

struct ml_watchdog;

struct ml_watchdog_opts {
    struct ml_loop *loop;
    const struct ml_log *log; /* descriptor and format are copied */
    int listener;             /* of the probes; duplicated; or -1 */
    int64_t tick_ns;          /* how often the loop has to run; 0: a second */
    int ticks_max;            /* so many missed ticks: it is blocked; 0: ten */
};

/* To be called by the thread that runs the loop, before it does; ticks are counted from the loop's
 * first turn. ML_EIO: the thread cannot be started. */
ML_NODISCARD int ml_watchdog_new(const struct ml_watchdog_opts *opts, struct ml_watchdog **out,
                                 struct ml_err *err);
/* Before the listener is closed. NULL is fine. */
void ml_watchdog_free(struct ml_watchdog *watchdog);
