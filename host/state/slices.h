/* L4 state. Decides whose script code runs next. There is one thread, and a slice of script code
 * may take the CPU for as long as its limit allows; so each slice waits until the loop runs it:
 *
 *   - each CPU account (of a controller, of a source that loads) has a share of the wall time
 *     (base/budget.h); its slices wait while it owes CPU time;
 *   - after 10 ms of script code a round ends: the loop handles due timers and input from
 *     peers before the next round begins;
 *   - the accounts alternate, one slice each. Quick accounts, whose slices are short, go before
 *     slow ones, whose slices are long or not known yet, for up to three quarters of the time. So a
 *     quick account waits for at most one slice, whatever the others do. A long slice always counts
 *     as slow, whichever account it belongs to;
 *   - after a long slice the next long one waits for the same time, if a quick account ran a slice
 *     within the last 250 ms: answers of the API server are handled in between. */
#pragma once

#include "base/budget.h"
#include "base/metrics.h"
#include "net/loop.h"

struct ml_slices;

/* `metered` false: CPU time does not count, and all slices run in the order of the calls. For
 * virtual time, where the same calls must have the same result. */
struct ml_slices *ml_slices_new(struct ml_loop *loop, bool metered);
bool ml_slices_metered(const struct ml_slices *slices);
void ml_slices_free(struct ml_slices *slices); /* no account may be left; NULL is fine */

/* Lives in its user's struct. */
struct ml_cpu_account {
    struct ml_slices *slices;
    struct ml_meter meter;
    int64_t slice_ns;       /* how long its longest slices take; decays slowly */
    struct ml_list waiting; /* slices, in the order of asking */
    struct ml_list node;    /* among the accounts with a waiting slice */
    struct ml_timer paid;   /* runs while it owes CPU time */
    void (*idle)(void *context);
    void *context;
    struct ml_metric *seconds, *throttled; /* CPU time; times that it began to owe; or NULL */
};

/* `idle` is called from the loop when it has no waiting slice and owes nothing: new work may begin.
 */
void ml_cpu_account_init(struct ml_cpu_account *account, struct ml_slices *slices,
                         void (*idle)(void *context), void *context);
/* Slices of others that wait in it never run: their users notice by a deadline of their own. */
void ml_cpu_account_drop_slices(struct ml_cpu_account *account);
void ml_cpu_account_fini(struct ml_cpu_account *account); /* its slices must be over or canceled */
bool ml_cpu_account_idle(const struct ml_cpu_account *account);

/* A slice of its code took `cpu_ns`. NULL: nobody is charged. */
void ml_cpu_account_charge(struct ml_cpu_account *account, int64_t cpu_ns);

/* May code run now, without waiting for a slice? may_go_on: for the answer to a call, whose body
 * would have to be copied otherwise. may_ask: for functions that are called at a change and take at
 * most `slice_max_ns`. True for NULL. */
bool ml_cpu_account_may_go_on(const struct ml_cpu_account *account);
bool ml_cpu_account_may_ask(const struct ml_cpu_account *account, int64_t slice_max_ns);

struct ml_slice {
    struct ml_list node;
    void (*run)(void *context);
    void *context;
};

void ml_slice_init(struct ml_slice *slice, void (*run)(void *context), void *context);
/* run() is called once, from the loop, never inside this call. Must not be called for a slice that
 * waits already. */
void ml_slice_wait(struct ml_slice *slice, struct ml_cpu_account *account);
bool ml_slice_waits(const struct ml_slice *slice);
void ml_slice_cancel(struct ml_slice *slice); /* run() is not called any more */
