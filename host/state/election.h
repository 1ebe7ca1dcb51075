/* L4 state. Leader election: one candidate for a Lease (coordination.k8s.io/v1), by the rules of
 * client-go's tools/leaderelection, so that it can share a Lease with any other client.
 *
 *   start ──> waiting ──> leading ──> lost      the holder: the one that renews the Lease
 *                │           └──────> released
 *                └──────────────────> released
 *
 * Times in the Lease are never compared with the clock here: a Lease has expired when it has not
 * changed for its own duration since this process saw it change, on the monotonic clock that
 * counts suspension. Where it is stricter than client-go:
 * - It leads until `renew_ns` after it *sent* its last successful renewal, and never longer,
 *   whatever its timers do: see ml_election_fence.
 * - A Lease that was deleted while another holder's time runs is not acquired before that time is
 *   over: the holder may not know of the deletion yet.
 * - A holder that sees another name in the Lease stops at once.
 * - A process that was suspended past its deadline (SIGSTOP, a suspended machine) asks the server
 *   once whether it still holds the Lease; the fence is closed until the answer. */
#pragma once

#include "state/lease.h"

struct ml_election;

struct ml_election_handler {
    void (*led)(void *context); /* it has become the leader; at most once */
    /* It does not lead any more, or cannot know whether it does; the fence is closed. Comes at most
     * once, as the last call. The election must not be freed inside. */
    void (*lost)(void *context, const struct ml_err *err);
};

/* Metrics: leader_election_master_status, leader_election_slowpath_total. */
struct ml_election *ml_election_new(const struct ml_lease_opts *opts,
                                    const struct ml_election_handler *handler, void *context);
/* Does not release the Lease: to other candidates it looks as if the process had died. NULL is
 * fine. */
void ml_election_free(struct ml_election *election);
void ml_election_start(struct ml_election *election);

/* Releases the Lease, if it holds it, so that the next candidate need not wait. Call it when all
 * work has ended. The fence is closed from now on. `done` is called once, later
 * from the loop, after at most `patience_ns`; `led` and `lost` are not called any more. */
void ml_election_release(struct ml_election *election, int64_t patience_ns,
                         void (*done)(void *context), void *context);

bool ml_election_leads(const struct ml_election *election);

/* An ml_client_fence (`context` is the election): 0 while no other process can hold the Lease, else
 * ML_ECANCELED. Events always pass. */
int ml_election_fence(void *context, const char *method, const char *path, struct ml_err *err);
