/* L6 operator. What an operator does as one of several replicas: either one of them works, the holder of
 * a Lease (state/election.h), or all share the keys (state/shard.h). It has a client of its own, on
 * a connection of its own, and tells the cluster and the scripts what is theirs to do. */
#pragma once

#include "operator/scripts.h"
#include "state/election.h"
#include "state/shard.h"

struct ml_replica;

/* Borrowed during ml_replica_new, but for the transport. */
struct ml_replica_opts {
    struct ml_transport *transport; /* on a connection of its own */
    const char *ns, *name;          /* of the Lease, or of the group */
    const char *identity;           /* of this start of the process */
    struct ml_lease_times times;
    bool shares; /* the keys; else one works */
    /* Nothing is written from now on; the process is to end. The operator must not be freed
     * inside. */
    void (*lost)(void *context, const struct ml_err *err);
    void *context;
};

/* Borrows `cluster` and `scripts`. */
struct ml_replica *ml_replica_new(struct ml_cluster *cluster, struct ml_scripts *scripts,
                                  const struct ml_replica_opts *opts);
void ml_replica_free(struct ml_replica *replica); /* after the scripts; NULL is fine */
void ml_replica_start(struct ml_replica *replica);

/* Records the Event that tells of the end, if there is something to tell. */
void ml_replica_tell_end(struct ml_replica *replica);
/* Gives its Lease back, once all work has ended. `done` comes later, once. */
void ml_replica_release(struct ml_replica *replica, int64_t patience_ns,
                        void (*done)(void *context), void *context);

/* As ml_client_fence; `context` is the replica. */
int ml_replica_fence(void *context, const char *method, const char *path, struct ml_err *err);
