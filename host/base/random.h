/* L0 base. The random interface: jitter and identifiers come from here, so that the same seed
 * repeats a run. Its numbers are not for secrets: those come from codec/crypto.h, which asks it
 * whether the run is one that a seed repeats. */
#pragma once

#include "base/base.h"

struct ml_random {
    uint64_t state;
    bool is_seeded; /* a seed repeats it: in tests */
};

void ml_random_init(struct ml_random *random, uint64_t seed);
void ml_random_init_real(struct ml_random *random); /* seeded by the kernel */
/* One that draws by itself: seeded by `parent`, and repeated where that is. */
void ml_random_init_child(struct ml_random *random, struct ml_random *parent);

uint64_t ml_random_u64(struct ml_random *random);
int64_t ml_random_between(struct ml_random *random, int64_t low, int64_t high); /* [low, high) */

#define ML_UUID_LEN 36
void ml_random_uuid(struct ml_random *random, char out[ML_UUID_LEN + 1]); /* version 4 */
/* A version 4 UUID of 122 of these 128 bits. */
void ml_uuid_format(uint64_t a, uint64_t b, char out[ML_UUID_LEN + 1]);
