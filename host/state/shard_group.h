/* L4 state, private to a member of a shard group. The rules of sharding as pure functions, without
 * clock and requests. docs/decisions/0006 says why two members never act on one key. */
#pragma once

#include "state/lease.h"

/* ---- rendezvous hashing ---- */

/* Rendezvous hashing (highest random weight; Thaler and Ravishankar, 1998): which member a key
 * belongs to. Members that know the same members agree without asking; a member that joins or
 * leaves moves only the keys that it gets or had. Replicas of different versions must agree on the
 * numbers: they never change. */

/* The key of an object, "namespace/name", for one controller. */
uint64_t rendezvous_key(struct ml_str controller, struct ml_str object);

/* The member with the highest weight for `key`; 0 when there is none. Members are not 0. */
uint64_t rendezvous_owner(uint64_t key, const uint64_t *members, size_t count);

/* The id of a member: unique for each start of a process, as its identity is, among some hundreds.
 * If a Lease of this name exists nevertheless, it belongs to another member and is not touched. */
uint64_t shard_member_id(const char *identity);

/* ---- a set of members ---- */

#define SHARD_MEMBERS_MAX 64
#define SHARD_ID_LEN      16

/* A set of members, as it stands in an annotation: ascending, without 0, and zeros behind the last.
 * Start with {0}. */
struct shard_set {
    size_t count;
    uint64_t ids[SHARD_MEMBERS_MAX];
};

/* When the set is full, the smallest ids stay. */
void shard_set_add(struct shard_set *set, uint64_t id);
bool shard_set_eq(const struct shard_set *a, const struct shard_set *b);

/* "0123456789abcdef,…". The caller frees it. */
char *shard_set_text(const struct shard_set *set);
/* False, with `out` untouched, for anything that shard_set_text does not write. */
ML_NODISCARD bool shard_set_parse(struct ml_str text, struct shard_set *out);

ML_NODISCARD bool shard_id_parse(struct ml_str text, uint64_t *out);

/* ---- the Lease of a member ---- */

/* The Lease of one member, and its text. Others wrote it: nothing in it is trusted.
 *
 *   metadata.name                                GROUP-ID
 *   metadata.labels[moonloop.dev/shard-group]    GROUP
 *   metadata.annotations[moonloop.dev/shard-view] its view; see shard.h
 *   spec.holderIdentity                          the process; none: the member has left */

#define SHARD_LABEL      "moonloop.dev/shard-group"
#define SHARD_ANNOTATION "moonloop.dev/shard-view"

struct shard_lease {
    uint64_t id;
    char *uid, *rv;        /* never NULL once read */
    char *holder;          /* "": it has left */
    struct shard_set view; /* itself alone when it cannot be read: it may claim anything */
    int64_t duration_ns;   /* 0 when it is absent or makes no sense */
};

/* False when `object` is not a Lease of a member of `group`. End `out` in either case. */
ML_NODISCARD bool shard_lease_read(struct ml_str object, const char *group,
                                   struct shard_lease *out);
void shard_lease_fini(struct shard_lease *lease);

/* "GROUP-ID". The caller frees it. */
char *shard_lease_name(const char *group, uint64_t id);

struct shard_lease_text {
    const char *group, *ns;
    uint64_t id;
    const char *uid, *rv; /* NULL: to be created */
    const struct shard_set *view;
    struct lease_claim claim; /* holder "": it leaves */
};

char *shard_lease_json(const struct shard_lease_text *text); /* the caller frees it */

/* ---- the group ---- */

#define SHARD_PEERS_MAX 256 /* Leases of the group, the dead included */

struct shard_peer {
    struct shard_lease lease;
    int64_t since_ns; /* when its Lease was last seen to change */
    bool present;     /* in the last list */
    bool dead;        /* as of the last list */
};

/* The other members of a shard group as one member sees them, on its own clock: a member is dead
 * when its Lease has not changed for the Lease's duration. */
struct shard_group {
    uint64_t self; /* is never among the peers */
    const char *name;
    int64_t duration_ns; /* for a Lease without a duration */
    struct shard_peer *peers;
    size_t count;
};

void shard_group_init(struct shard_group *group, const char *name, uint64_t self,
                      int64_t duration_ns);
void shard_group_fini(struct shard_group *group);

/* Reads a LeaseList, the answer to a consistent read that was sent at `asked_ns` and received at
 * `now_ns`. Fills `out_self` when our own Lease is in it (to be ended; id 0: it is not).
 *
 * A peer is dead when this list, sent a whole duration after its Lease was seen to change, shows it
 * unchanged. A peer whose Lease was deleted while it claimed keys is kept until then: it may not
 * know of the deletion yet. ML_EINVALID when the list cannot be read, ML_ELIMIT for too many
 * Leases; nothing has changed then. */
ML_NODISCARD int shard_group_observe(struct shard_group *group, struct ml_str list,
                                     int64_t asked_ns, int64_t now_ns, struct shard_lease *out_self,
                                     struct ml_err *err);

/* Does this Lease, received by the watch, change anything: an unknown member, another view, or a
 * member that leaves? */
bool shard_group_is_news(const struct shard_group *group, const struct shard_lease *lease);

/* All members, this one included. */
void shard_group_alive(const struct shard_group *group, struct shard_set *out);

/* A peer whose Lease is to be deleted: it died, or left at least `grace_ns` ago; or NULL. The Lease
 * of a member that left stays for a while, so that all see that it left. The Lease of a dead one
 * would make each member that joins later wait for it. */
const struct shard_peer *shard_group_remains(const struct shard_group *group, int64_t now_ns,
                                             int64_t grace_ns);

/* ---- the keys that a member may act on ---- */

#define SHARD_VIEWS_MAX 3

struct shard_claim {
    uint64_t member;
    struct shard_set view;
};

/* The keys that one member may act on: they are its own in each view that may be in force, and no
 * other member claims them. */
struct shard_acting {
    uint64_t self;
    struct shard_set views[SHARD_VIEWS_MAX];
    size_t view_count;          /* 0: acts on nothing */
    struct shard_claim *claims; /* of others whose view differs from ours */
    size_t claim_count;
};

/* End `out`. `views`: all of them count; equal ones once. */
void shard_acting_init(struct shard_acting *out, const struct shard_group *group,
                       const struct shard_set *const *views, size_t view_count);
void shard_acting_fini(struct shard_acting *acting);

bool shard_acting_acts(const struct shard_acting *acting, uint64_t key);
