/* L4 state. Inside of the election: one file for each thing it does, joined here. Private to
 * election*.c.
 *
 *   election.c          its life
 *   election_attempt.c  asking for the Lease and renewing it
 *   election_term.c     how long it leads: grant, deadline, fence, loss
 *   election_release.c  giving the Lease back */
#pragma once

#include "net/loop.h"
#include "state/election.h"
#include "state/lease_record.h"
#include "state/lease_watch.h"

enum election_state {
    ELECTION_NEW,
    ELECTION_WAITING,
    ELECTION_LEADING,
    ELECTION_DOUBTING, /* slept past the deadline: fence closed, one attempt */
    ELECTION_RELEASING,
    ELECTION_OVER,
};

struct ml_election {
    struct ml_election_opts opts; /* strings owned */
    struct ml_clock *clock;
    enum election_state state;

    /* The Lease as it was seen last. */
    struct lease_record record;
    int64_t observed_ns; /* monotonic: when its spec was first seen as it is */
    char *told;          /* the holder that the log has named */

    /* The attempt under way. */
    struct ml_client_call *call;
    int64_t begun_ns;
    int64_t sent_ns; /* the write */
    struct ml_timer stuck;
    struct ml_timer next;  /* attempt */
    struct ml_err trouble; /* as logged last; none since the last success */

    int64_t until_ns; /* leads until then */
    struct ml_timer deadline;
    struct lease_watch watch;

    void (*released)(void *context);
    void *released_context;
    struct ml_task released_task;
    struct ml_timer patience;

    struct ml_metric *master_status;
    struct ml_metric *slow_path;
};

static inline int64_t election_now(const struct ml_election *self)
{
    return ml_clock_monotonic(self->clock);
}

static inline bool election_is_mine(const struct ml_election *self)
{
    return self->record.holder && strcmp(self->record.holder, self->opts.identity) == 0;
}

static inline bool election_holds(const struct ml_election *self)
{
    return self->state == ELECTION_LEADING || self->state == ELECTION_DOUBTING;
}

/* Takes back all timers and requests. */
void election_idle(struct ml_election *self);

/* election_attempt.c. An attempt begins, by the timer `next` or at once. */
void election_attempt(void *context);
/* Reads the Lease, and goes on from what it says. */
void election_ask(struct ml_election *self);
void election_send(struct ml_election *self, enum ml_verb verb, struct ml_str body,
                   ml_client_done *done);
/* Takes over what `lease`, an object, says. ML_EINVALID when it cannot be read. */
ML_NODISCARD int election_observe(struct ml_election *self, struct ml_str lease,
                                  struct ml_err *err);
/* An attempt ended so; what follows hangs on the state. */
void election_failed(struct ml_election *self, const struct ml_err *err);
/* An attempt ended well: when the next one begins. */
void election_schedule(struct ml_election *self);
void election_on_stuck(void *context);
void election_on_seen(void *context, struct ml_str lease);

/* election_term.c. A write that names us was granted. */
void election_granted(struct ml_election *self);
void election_lose(struct ml_election *self, const struct ml_err *why);
void election_on_deadline(void *context);

/* election_release.c. It is given back, or will not be. */
void election_on_released(void *context);
