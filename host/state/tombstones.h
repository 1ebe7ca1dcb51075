/* L4 state. The last objects that went, so that an event of one that comes late (repeated or held
 * up on its way) does not bring it back. Remembers the last 256; a server repeats nothing, so what
 * is older than that is no concern. */
#pragma once

#include "base/map.h"

#define TOMBSTONES_MAX 256

struct tombstones {
    struct tombstone *ring[TOMBSTONES_MAX];
    size_t next;
    struct ml_map by_uid;
};

void tombstones_fini(struct tombstones *tombstones);
/* The object with this uid was gone at version `rv`; both copied. */
void tombstones_put(struct tombstones *tombstones, struct ml_str uid, struct ml_str rv);
/* Is version `rv` of it from before its end? */
bool tombstones_has(const struct tombstones *tombstones, struct ml_str uid, struct ml_str rv);
