/* L4 state, private to a member of a shard group. The rules of sharding as pure functions, without
 * clock and requests. docs/decisions/0006 says why no key ever has two members who act on it. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* ---- rendezvous hashing ---- */

/* Rendezvous hashing (highest random weight; Thaler and Ravishankar, 1998): who of some
 * members a key belongs to. All who know the same members agree, without asking; a member that
 * comes or goes moves only the keys that it gets or had. The numbers are part of what
 * replicas of different versions must agree on: they never change. */

/* The key of an object, "namespace/name", for one controller. */
uint64_t rendezvous_key(struct ml_str controller, struct ml_str object);

/* The member with the highest weight for `key`; 0 when there is none. Members are not 0. */
uint64_t rendezvous_owner(uint64_t key, const uint64_t *members, size_t count);

/* ---- a set of members ---- */

/* A set of members of a shard group, as it stands in an annotation. */

#define SHARD_MEMBERS_MAX 64
#define SHARD_ID_LEN      16

/* Ascending, without 0. Start with {0}. */
struct shard_set {
    size_t count;
    uint64_t ids[SHARD_MEMBERS_MAX];
};

/* Of more than fit, the smallest stay. */
void shard_set_add(struct shard_set *set, uint64_t id);
bool shard_set_has(const struct shard_set *set, uint64_t id);
bool shard_set_eq(const struct shard_set *a, const struct shard_set *b);

/* "0123456789abcdef,…". The caller frees it. */
char *shard_set_text(const struct shard_set *set);
/* False, with `out` untouched, for anything that shard_set_text does not write. */
ML_NODISCARD bool shard_set_parse(struct ml_str text, struct shard_set *out);

void shard_id_format(uint64_t id, char out[SHARD_ID_LEN + 1]);
ML_NODISCARD bool shard_id_parse(struct ml_str text, uint64_t *out);

/* ---- the Lease of a member ---- */

/* The Lease of one member of a shard group: what it says, and its text. Whatever stands
 * in it was written by others.
 *
 *   metadata.name                                GROUP-ID
 *   metadata.labels[moonloop.dev/shard-group]    GROUP
 *   metadata.annotations[moonloop.dev/shard-view] the members it acts among; see shard.h
 *   spec.holderIdentity                          the process; none: the member has left */

#define SHARD_LABEL      "moonloop.dev/shard-group"
#define SHARD_ANNOTATION "moonloop.dev/shard-view"

struct shard_lease {
    uint64_t id;
    char *uid, *rv; /* never NULL once read */
    char *holder;   /* "": it has left */
    bool opaque;    /* its view cannot be read: it may claim anything */
    struct shard_set view;
    int64_t duration_ns; /* 0 when it is absent or makes no sense */
};

/* False when `object` is no Lease of a member of `group`. `out` is to be ended either way. */
ML_NODISCARD bool shard_lease_read(struct ml_str object, const char *group,
                                   struct shard_lease *out);
void shard_lease_fini(struct shard_lease *lease);

/* "GROUP-ID". The caller frees it. */
char *shard_lease_name(const char *group, uint64_t id);

struct shard_lease_text {
    const char *group, *ns;
    uint64_t id;
    const char *uid, *rv; /* NULL: to be created */
    const char *holder;   /* "": it leaves */
    const struct shard_set *view;
    int64_t duration_s;
    const char *acquired, *renewed; /* MicroTime */
};

char *shard_lease_json(const struct shard_lease_text *text); /* the caller frees it */

/* ---- the group ---- */

/* The other members of a shard group as one member has seen them, on its own clock: a
 * Lease is dead when it has not changed for its duration since it was first seen as it is. */

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

/* ---- what a member may act on ---- */

/* What one member of a shard group may act on: a key that is its own in each view which
 * may be in force for it, and that no other member claims. */

#define SHARD_VIEWS_MAX 3

struct shard_claim {
    uint64_t member;
    bool everything;
    struct shard_set view;
};

struct shard_acting {
    uint64_t self;
    struct shard_set views[SHARD_VIEWS_MAX];
    size_t view_count;          /* 0: acts on nothing */
    struct shard_claim *claims; /* of others whose view differs from ours */
    size_t claim_count;
};

/* `out` is to be ended. `views`: all of them count; equal ones once. */
void shard_acting_init(struct shard_acting *out, const struct shard_group *group,
                       const struct shard_set *const *views, size_t view_count);
void shard_acting_fini(struct shard_acting *acting);

bool shard_acting_acts(const struct shard_acting *acting, uint64_t key);
bool shard_acting_eq(const struct shard_acting *a, const struct shard_acting *b);
