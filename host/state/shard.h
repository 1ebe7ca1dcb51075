/* L4 state. Sharding: one member of a group of replicas that share the keys of all controllers by
 * rendezvous hashing. Each member holds its own Lease. docs/decisions/0006 explains why no two
 * members ever act on the same key.
 *
 *   start ──> joining ──> member ──> lost
 *                │           └─────> left
 *                └─────────────────> left
 *
 * The rules, in short:
 * - The annotation of its Lease lists the members that this member knows: its view. A member claims
 *   the keys that its view assigns to it.
 * - Before a member publishes a view that takes a key away from it, its work on that key has ended.
 * - It begins to act on a key when its view was written to the Lease and a list that was requested
 *   after that shows no other member that claims the key. Of two members that claim a key, the
 *   later one sees the earlier.
 * - A member whose renewals the others did not see for the Lease's duration is dead to them. A
 *   member that cannot renew stops earlier, at the renew deadline counted from when it sent its
 *   last successful renewal, and never resumes: it is lost. A renewal that succeeds after that does
 *   not count. */
#pragma once

#include "state/lease.h"

struct ml_shard;

struct ml_shard_handler {
    /* The set of its keys has changed: ml_shard_gained says which keys are new. */
    void (*changed)(void *context);
    /* True when no work is under way on keys that it does not act on any more. `cut`: the wait is
     * over; end work now that has no write under way. Called again after ml_shard_settled, and
     * every second. */
    bool (*idle)(void *context, bool cut);
    /* It is no longer a member, or cannot know whether it is; the fence is closed. Comes at most
     * once, as the last call. The shard must not be freed inside. */
    void (*lost)(void *context, const struct ml_err *err);
};

/* Metrics: moonloop_shard_members. */
struct ml_shard *ml_shard_new(const struct ml_lease_opts *opts,
                              const struct ml_shard_handler *handler, void *context);
/* Does not release its Lease: to the others it looks as if the process had died. NULL is fine. */
void ml_shard_free(struct ml_shard *shard);
void ml_shard_start(struct ml_shard *shard);

/* Some work has ended; the shard may be waiting for it. */
void ml_shard_settled(struct ml_shard *shard);

/* Leaves the group, so that the others need not wait. Call it when all work has ended. The fence is
 * closed from now on. `done` is called once, later from the loop, after at most `patience_ns`; the
 * handlers are not called any more. */
void ml_shard_leave(struct ml_shard *shard, int64_t patience_ns, void (*done)(void *context),
                    void *context);

/* May this member begin work on the object for the controller, now? */
bool ml_shard_acts(const struct ml_shard *shard, struct ml_str controller, struct ml_str object);
/* To be called inside `changed`: does it act on the key now, and did not before? */
bool ml_shard_gained(const struct ml_shard *shard, struct ml_str controller, struct ml_str object);

/* An ml_client_fence (`context` is the shard): 0 while no other member can consider this one dead,
 * else ML_ECANCELED. Events always pass. */
int ml_shard_fence(void *context, const char *method, const char *path, struct ml_err *err);
