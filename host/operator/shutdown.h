/* L6 operator. The steps of a shutdown, each within its share of the time. A step begins when the
 * one before is done, or at the latest when its own share begins: so Events are sent and the Lease
 * is given back even if reconciles hang.
 *
 *   step       until       what happens in it
 *   WORK       80 %        no new reconcile begins; running ones go on, and may write
 *   BOUNDARY   88 %        no write is sent any more; those that were sent are answered
 *   EVENTS     96 %        recorded Events are sent
 *   LEASE      100 %       the Lease is given back; left to expire when a reconcile did not end
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
    /* Begins the step. ml_shutdown_done is called when it is done; never inside. */
    void (*begin)(void *context, enum ml_shutdown_step step);
    /* Called last, once, from the loop. `clean`: all reconciles had ended. */
    void (*over)(void *context, bool clean);
};

/* Embed it; all fields are private. */
struct ml_shutdown {
    struct ml_loop *loop;
    const struct ml_shutdown_handler *handler;
    void *context;
    enum ml_shutdown_step step;
    int64_t begun_ns;
    int64_t all_ns;
    bool running;
    bool beginning; /* a step: `begin` is on the stack */
    bool worked;    /* all reconciles have ended */
    struct ml_timer late;
};

void ml_shutdown_init(struct ml_shutdown *shutdown, struct ml_loop *loop,
                      const struct ml_shutdown_handler *handler, void *context);
void ml_shutdown_fini(struct ml_shutdown *shutdown); /* nothing is called any more */

/* Begins with WORK; all of it takes at most `all_ns`. */
void ml_shutdown_start(struct ml_shutdown *shutdown, int64_t all_ns);
/* The step is done. The end of WORK is the end of BOUNDARY as well. No effect when the shutdown is
 * in another step. */
void ml_shutdown_done(struct ml_shutdown *shutdown, enum ml_shutdown_step step);
void ml_shutdown_skip(struct ml_shutdown *shutdown); /* ends in the next round, not clean */
