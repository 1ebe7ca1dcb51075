/* L4 state. What one member of a shard group may act on: a key that is its own in each view which
 * may be in force for it, and that no other member claims. Pure. */
#pragma once

#include "state/shard_group.h"

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
