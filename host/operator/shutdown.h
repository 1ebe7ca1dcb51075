/* L6 operator. The end of an operator, step by step and within its time. Each step begins when the one
 * before is over, or at the latest when its own share of the time begins: so that work which hangs
 * does not take the Events and the Lease with it.
 *
 *   step       until       what happens in it
 *   WORK       80 %        nothing new is begun; reconciles under way go on, and may write
 *   BOUNDARY   88 %        no write leaves any more; those that have left are answered
 *   EVENTS     96 %        what was recorded is sent
 *   LEASE      100 %       given back; left out, so that it expires, when work did not end
 */
#pragma once

#include "net/loop.h"

enum ml_shutdown_step {
    ML_SHUTDOWN_WORK,
    ML_SHUTDOWN_BOUNDARY,
    ML_SHUTDOWN_EVENTS,
    ML_SHUTDOWN_LEASE,
    ML_SHUTDOWN_STEPS,
};

struct ml_shutdown_handler {
    /* What the step is for is to be begun; ml_shutdown_done tells of its end, then or later. */
    void (*begin)(void *context, enum ml_shutdown_step step);
    /* The last, once. `clean`: all work had ended. */
    void (*over)(void *context, bool clean);
};

/* Embed it; all is private. */
struct ml_shutdown {
    struct ml_loop *loop;
    const struct ml_shutdown_handler *handler;
    void *context;
    enum ml_shutdown_step step;
    int64_t begun_ns;
    int64_t all_ns;
    bool running;
    bool worked; /* all work has ended */
    struct ml_timer late;
};

void ml_shutdown_init(struct ml_shutdown *shutdown, struct ml_loop *loop,
                      const struct ml_shutdown_handler *handler, void *context);
void ml_shutdown_fini(struct ml_shutdown *shutdown); /* nothing more comes */

/* Begins with WORK; all of it takes at most `all_ns`. */
void ml_shutdown_start(struct ml_shutdown *shutdown, int64_t all_ns);
/* The step is over. The end of WORK ends BOUNDARY as well, which waits for the same. Nothing when
 * that step is not under way. */
void ml_shutdown_done(struct ml_shutdown *shutdown, enum ml_shutdown_step step);
void ml_shutdown_skip(struct ml_shutdown *shutdown); /* over at once, and not clean */
