/* L4 state. Sharding: one member of a group of replicas that share the keys of all controllers by
 * rendezvous hashing. Each member holds a Lease of its own; docs/decisions/0006 has the argument
 * why no key ever has two who act on it.
 *
 *   start ──> joining ──> member ──> lost
 *                │           └─────> left
 *                └─────────────────> left
 *
 * The rules, in short:
 * - In the annotation of its Lease a member says among whom it acts: its view. Whom a key belongs
 * to in that view, it belongs to for this member: a claim.
 * - Before a member publishes a view in which it has a key no more, its work on the key has ended.
 * - It begins to act on a key after its claim was granted and a list, asked for after that, shows
 *   nobody else who claims it. Of two who claim a key, the later one sees the earlier.
 * - Who has not been seen to renew for the Lease's duration counts no more; a member that could not
 *   renew stops before, at the renew deadline after it sent the last renewal that was granted, and
 *   never goes on: it is lost. A renewal that is granted after that is none. */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "kube/client.h"
#include "state/lease.h"

struct ml_shard;

struct ml_shard_handler {
    /* What it acts on has changed: ml_shard_gained says which keys are new. */
    void (*changed)(void *context);
    /* True when no work is under way on keys that it does not act on (any more). `cut`: patience
     * is over; what is under way and writes nothing at this moment is to be ended now. Asked again
     * after ml_shard_settled, and every second. */
    bool (*idle)(void *context, bool cut);
    /* It was a member and is so no more, or cannot know; the fence is closed. At most once, and
     * the last. The shard must not be freed inside. */
    void (*lost)(void *context, const struct ml_err *err);
};

/* `client` is to be on a connection of its own, without a fence. Strings are copied, all else is
 * borrowed. */
struct ml_shard_opts {
    struct ml_client *client;
    struct ml_loop *loop;
    struct ml_random *random;
    struct ml_log *log;
    struct ml_metrics *metrics; /* moonloop_shard_members */
    const char *ns, *group;
    const char *identity; /* unique for each start of a process */
    struct ml_lease_times times;
    const struct ml_shard_handler *handler;
    void *context;
};

struct ml_shard *ml_shard_new(const struct ml_shard_opts *opts);
/* Gives nothing back: for others it is as if the process had died. NULL is fine. */
void ml_shard_free(struct ml_shard *shard);
void ml_shard_start(struct ml_shard *shard);

/* Work has ended: one that the shard may wait for. */
void ml_shard_settled(struct ml_shard *shard);

/* Leaves, so that the others need not wait: once all work has ended. The fence is closed from now
 * on. `done` comes later, once, after at most `patience_ns`; no handler comes any more. */
void ml_shard_leave(struct ml_shard *shard, int64_t patience_ns, void (*done)(void *context),
                    void *context);

/* May this member begin work on the object for the controller, now? */
bool ml_shard_acts(const struct ml_shard *shard, struct ml_str controller, struct ml_str object);
/* Inside `changed`: it acts on it now, and did not before. */
bool ml_shard_gained(const struct ml_shard *shard, struct ml_str controller, struct ml_str object);

/* An ml_client_fence (`context` is the shard): 0 while nobody can count this member as dead, else
 * ML_ECANCELED. Events pass at any time. */
int ml_shard_fence(void *context, const char *method, const char *path, struct ml_err *err);
