/* Random numbers that a seed repeats, and identifiers made of them. */
#include "base/random.h"

#include <stdio.h>
#include <sys/random.h>

void ml_random_init(struct ml_random *random, uint64_t seed)
{
    *random = (struct ml_random){.state = seed, .is_seeded = true};
}

void ml_random_init_real(struct ml_random *random)
{
    ssize_t got = getrandom(&random->state, sizeof random->state, 0);
    ml_assert(got == (ssize_t)sizeof random->state);
    random->is_seeded = false;
}

void ml_random_init_child(struct ml_random *random, struct ml_random *parent)
{
    *random = (struct ml_random){.state = ml_random_u64(parent), .is_seeded = parent->is_seeded};
}

/* SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
uint64_t ml_random_u64(struct ml_random *random)
{
    uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t ml_random_between(struct ml_random *random, int64_t low, int64_t high)
{
    if (high <= low)
        return low;
    return low + (int64_t)(ml_random_u64(random) % (uint64_t)(high - low));
}

void ml_uuid_format(uint64_t a, uint64_t b, char out[ML_UUID_LEN + 1])
{
    snprintf(out, ML_UUID_LEN + 1, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
             (unsigned)(0x8000 | (b >> 48 & 0x3fff)),
             (unsigned long long)(b & UINT64_C(0xffffffffffff)));
}

void ml_random_uuid(struct ml_random *random, char out[ML_UUID_LEN + 1])
{
    uint64_t a = ml_random_u64(random);
    uint64_t b = ml_random_u64(random);
    ml_uuid_format(a, b, out);
}
