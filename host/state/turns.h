/* L4 state. Decides whose script code runs next. There is one thread, and a slice of script code
 * may take the CPU for as long as its limit allows; so a slice runs in a turn, which the loop
 * gives:
 *
 *   - each payer (a controller, a source that loads) has a share of the wall time (base/budget.h);
 *     its turns wait while it owes CPU time;
 *   - after 10 ms of script code a round ends: the loop handles due timers and input from
 *     peers before the next round begins;
 *   - payers take turns one by one. Quick payers, whose slices are short, go before slow ones,
 *     whose slices are long or not known yet, for up to three quarters of the time. So a quick
 *     payer waits for at most one slice, whatever the others do. A long slice always counts as
 *     slow, whichever payer took it;
 *   - after a long slice the next long one waits for the same time, if a quick payer took a turn
 *     within the last 250 ms: answers of the API server are handled in between. */
#pragma once

#include "base/budget.h"
#include "base/metrics.h"
#include "net/loop.h"

struct ml_turns;

/* `metered` false: CPU time does not count, and all turns come in the order of the calls. For
 * virtual time, where the same calls must have the same result. */
struct ml_turns *ml_turns_new(struct ml_loop *loop, bool metered);
bool ml_turns_metered(const struct ml_turns *turns);
void ml_turns_free(struct ml_turns *turns); /* no payer may be left; NULL is fine */

/* Lives in its user's struct. */
struct ml_payer {
    struct ml_turns *turns;
    struct ml_meter meter;
    int64_t slice_ns;       /* how long its longest slices take; decays slowly */
    struct ml_list waiting; /* turns, in the order of asking */
    struct ml_list node;    /* among the payers with a waiting turn */
    struct ml_timer paid;   /* runs while it owes CPU time */
    void (*idle)(void *context);
    void *context;
    struct ml_metric *seconds, *throttled; /* CPU time; times that it began to owe; or NULL */
};

/* `idle` is called from the loop when it has no waiting turn and owes nothing: new work may begin.
 */
void ml_payer_init(struct ml_payer *payer, struct ml_turns *turns, void (*idle)(void *context),
                   void *context);
/* Turns of others that wait for it never come: their users notice by a deadline of their own. */
void ml_payer_drop_turns(struct ml_payer *payer);
void ml_payer_fini(struct ml_payer *payer); /* its turns must be over or canceled */
bool ml_payer_idle(const struct ml_payer *payer);

/* A slice of its code took `cpu_ns`. NULL: nobody is charged. */
void ml_payer_charge(struct ml_payer *payer, int64_t cpu_ns);

/* May a slice run now, without a turn? may_go_on: for the answer to a call, whose body would have
 * to be copied otherwise. may_ask: for functions that are called at a change and take at most
 * `slice_max_ns`. True for NULL. */
bool ml_payer_may_go_on(const struct ml_payer *payer);
bool ml_payer_may_ask(const struct ml_payer *payer, int64_t slice_max_ns);

struct ml_turn {
    struct ml_list node;
    void (*run)(void *context);
    void *context;
};

void ml_turn_init(struct ml_turn *turn, void (*run)(void *context), void *context);
/* run() is called once, from the loop, never inside this call. Must not be called for a turn that
 * waits already. */
void ml_turn_wait(struct ml_turn *turn, struct ml_payer *payer);
bool ml_turn_waits(const struct ml_turn *turn);
void ml_turn_cancel(struct ml_turn *turn); /* run() is not called any more */
