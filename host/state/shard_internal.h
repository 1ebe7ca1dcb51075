/* L4 state. Inside of a member of a shard group: one file for each thing it does, joined here.
 * Private to shard.c and shard_*.c.
 *
 *   shard.c        its life, and what it is asked
 *   shard_round.c  the requests: renew, list, sweep
 *   shard_view.c   what follows from a list: the next view, and who acts
 *   (pure: rendezvous.c, shard_set.c, shard_lease.c, shard_group.c, shard_acting.c) */
#pragma once

#include "net/loop.h"
#include "state/lease_watch.h"
#include "state/shard.h"
#include "state/shard_acting.h"

enum shard_state { SHARD_NEW, SHARD_JOINING, SHARD_MEMBER, SHARD_LEAVING, SHARD_OVER };

struct ml_shard {
    struct ml_shard_opts opts; /* strings owned */
    struct ml_clock *clock;
    enum shard_state state;
    uint64_t id;
    char *name;     /* of the Lease */
    char *acquired; /* when it joined, for people */

    struct shard_group group;
    struct shard_acting acting, before;

    /* Views, from the oldest to the newest; all the same when nothing changes. */
    struct shard_set confirmed; /* granted before the last list was asked for */
    struct shard_set published; /* granted */
    struct shard_set next;      /* wanted: work is given up for it */
    bool draining;              /* that work has not ended yet */
    bool publishing;            /* it was sent: from then on it is what others may see */
    int64_t draining_since_ns;
    struct ml_timer drain; /* asks again */

    /* The round under way. */
    struct ml_client_call *call, *sweeping;
    int64_t begun_ns, asked_ns;
    int64_t sent_ns;       /* the renewal */
    char *uid, *rv;        /* of our Lease; rv NULL: unknown, a list tells */
    bool renews;           /* this round has not renewed yet */
    bool disputed;         /* this round has met a conflict */
    bool news;             /* a watch told something: list once more */
    struct ml_timer stuck; /* no answer */
    struct ml_timer next_round;
    struct ml_timer hint;
    struct ml_err trouble; /* as logged last; none since the last success */
    struct lease_watch watch;

    int64_t until_ns; /* the fence is open until then */
    struct ml_timer deadline;

    void (*left)(void *context);
    void *left_context;
    struct ml_task left_task;
    struct ml_timer patience;

    struct ml_metric *members;
};

static inline int64_t shard_now(const struct ml_shard *self)
{
    return ml_clock_monotonic(self->clock);
}

/* Takes back all timers and requests. */
void shard_idle(struct ml_shard *self);
void shard_lose(struct ml_shard *self, const struct ml_err *why);
void shard_on_deadline(void *context);

/* shard_round.c. A round begins: the Lease is renewed, then all are listed. */
void shard_begin_round(void *context);
/* Only lists. */
void shard_look(void *context);
/* Renews with the view that is due, when no request is under way. */
void shard_renew(struct ml_shard *self);
void shard_on_stuck(void *context);
void shard_on_seen(void *context, struct ml_str lease);

/* shard_view.c. A list was had. */
void shard_judge(struct ml_shard *self);
/* A renewal was granted, with the view of shard_outgoing. */
void shard_granted_view(struct ml_shard *self);
const struct shard_set *shard_outgoing(const struct ml_shard *self);
/* The next view waits for nothing but being sent. */
bool shard_is_due(const struct ml_shard *self);
void shard_on_drain(void *context);
