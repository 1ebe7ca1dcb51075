/* L4 state. Who runs code of a script next. The thread is one, and a slice of script code may take
 * the CPU for as long as its limit allows; so slices are turns, given by the loop:
 *
 *   - each payer (a controller, a source that loads) has a share of the wall time (base/meter.h);
 *     its turns wait until what it owes is made good;
 *   - turns of script code that together took 10 ms end a round: the loop turns, and what became
 *     due meanwhile, or came from a peer, takes its place before another one begins;
 *   - payers take turns one by one. Those whose slices are short go before those whose are long or
 *     not known yet, up to three quarters of the time: so who needs little waits for at most one
 *     slice, whatever the others do. A slice that turns out long counts as one,
 *     whoever took it;
 *   - after a long slice the next long one waits for as long as that took, if anybody whose slices
 *     are short was at work within 250 ms: what it asked the API server for comes in between. */
#pragma once

#include "base/budget.h"
#include "base/metrics.h"
#include "net/loop.h"

struct ml_turns;

/* `metered` false: CPU time does not count, and all turns come in the order of asking. For virtual
 * time, in which the same calls have to give the same world. */
struct ml_turns *ml_turns_new(struct ml_loop *loop, bool metered);
bool ml_turns_metered(const struct ml_turns *turns);
void ml_turns_free(struct ml_turns *turns); /* no payer may be left; NULL is fine */

/* Lives in its user's struct. */
struct ml_payer {
    struct ml_turns *turns;
    struct ml_meter meter;
    int64_t slice_ns;       /* what its longest slices take, forgotten slowly */
    struct ml_list waiting; /* turns, in the order of asking */
    struct ml_list node;    /* among the payers that have a turn to take */
    struct ml_timer paid;   /* runs while it owes */
    void (*idle)(void *context);
    void *context;
    struct ml_metric *seconds, *throttled; /* CPU time; times that it began to owe; or NULL */
};

/* `idle` is called from the loop when no turn of it waits any more and it owes nothing: something
 * new may begin. */
void ml_payer_init(struct ml_payer *payer, struct ml_turns *turns, void (*idle)(void *context),
                   void *context);
void ml_payer_fini(struct ml_payer *payer); /* its turns must be over or canceled */
bool ml_payer_idle(const struct ml_payer *payer);

/* A slice of its code took so long. NULL: nobody pays. */
void ml_payer_charge(struct ml_payer *payer, int64_t cpu_ns);

/* May a slice run here and now, out of turn? For the answer to a call, whose body has to be copied
 * otherwise; and for functions that are asked at a change, which take at most `slice_max_ns`. NULL
 * may. */
bool ml_payer_may_go_on(const struct ml_payer *payer);
bool ml_payer_may_ask(const struct ml_payer *payer, int64_t slice_max_ns);

struct ml_turn {
    struct ml_list node;
    void (*run)(void *context);
    void *context;
};

void ml_turn_init(struct ml_turn *turn, void (*run)(void *context), void *context);
/* run() comes once, from the loop, never inside this call. Not while it waits already. */
void ml_turn_wait(struct ml_turn *turn, struct ml_payer *payer);
bool ml_turn_waits(const struct ml_turn *turn);
void ml_turn_cancel(struct ml_turn *turn); /* run() comes no more */
