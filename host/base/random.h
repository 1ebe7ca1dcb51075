/* L0 base. The random interface: jitter and identifiers come from here, so that the same seed
 * repeats a run. Not for secrets. */
#pragma once

#include "base/base.h"

struct ml_random {
    uint64_t state;
};

void ml_random_init(struct ml_random *random, uint64_t seed);
void ml_random_init_real(struct ml_random *random); /* seeded by the kernel */

uint64_t ml_random_u64(struct ml_random *random);
int64_t ml_random_between(struct ml_random *random, int64_t low, int64_t high); /* [low, high) */

#define ML_UUID_LEN 36
void ml_random_uuid(struct ml_random *random, char out[ML_UUID_LEN + 1]); /* version 4 */
