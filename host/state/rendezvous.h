/* L4 state. Rendezvous hashing (highest random weight; Thaler and Ravishankar, 1998): who of some
 * members a key belongs to. All who know the same members agree, without asking; a member that
 * comes or goes moves only the keys that it gets or had. Pure. The numbers are part of what
 * replicas of different versions must agree on: they never change. */
#pragma once

#include "base/str.h"

/* The key of an object, "namespace/name", for one controller. */
uint64_t rendezvous_key(struct ml_str controller, struct ml_str object);

/* The member with the highest weight for `key`; 0 when there is none. Members are not 0. */
uint64_t rendezvous_owner(uint64_t key, const uint64_t *members, size_t count);
