/* L4 state. The other members of a shard group as one member has seen them, on its own clock: a
 * Lease is dead when it has not changed for its duration since it was first seen as it is. Pure. */
#pragma once

#include "base/err.h"
#include "state/shard_lease.h"

#define SHARD_PEERS_MAX 256 /* Leases of the group, the dead included */

struct shard_peer {
    struct shard_lease lease;
    int64_t since_ns; /* when it was first seen as it is */
    bool present;     /* in the last list */
    bool dead;        /* as of the last list */
};

struct shard_group {
    uint64_t self; /* is never among the peers */
    const char *name;
    int64_t duration_ns; /* of a Lease that names none */
    struct shard_peer *peers;
    size_t count;
};

void shard_group_init(struct shard_group *group, const char *name, uint64_t self,
                      int64_t duration_ns);
void shard_group_fini(struct shard_group *group);

/* Takes over a LeaseList, the answer of a consistent read that was asked for at `asked_ns` and was
 * there at `now_ns`. Fills `out_self` when our own Lease is in it (to be ended; id 0: it is not).
 *
 * A peer is dead when this list, asked for a whole duration after its Lease was first seen as it
 * is, shows it unchanged. One whose Lease is gone while it claimed keys is kept until then: it may
 * not know yet. ML_EINVALID when the list cannot be read, ML_ELIMIT for too many; nothing has
 * changed then. */
ML_NODISCARD int shard_group_observe(struct shard_group *group, struct ml_str list,
                                     int64_t asked_ns, int64_t now_ns, struct shard_lease *out_self,
                                     struct ml_err *err);

/* Does this Lease, as a watch tells it, say something new: a member unknown so far, another view,
 * or that it leaves? */
bool shard_group_is_news(const struct shard_group *group, const struct shard_lease *lease);

/* Counts for what it says: it has neither left nor died. */
bool shard_peer_counts(const struct shard_peer *peer);

/* All that count, and ourselves. */
void shard_group_alive(const struct shard_group *group, struct shard_set *out);

/* One whose Lease is still there though it died, or left at least `grace_ns` ago; or NULL. Who left
 * is remembered for a while, so that all see that it did; who died would be waited for by each that
 * joins later. */
const struct shard_peer *shard_group_remains(const struct shard_group *group, int64_t now_ns,
                                             int64_t grace_ns);
