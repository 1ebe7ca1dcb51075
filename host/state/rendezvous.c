#include "state/rendezvous.h"

#define KEY_SALT UINT64_C(0x9e3779b97f4a7c15)

/* The finalizer of splitmix64: each bit of the input changes half of the output's. */
static uint64_t mix(uint64_t value)
{
    value ^= value >> 30;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    value ^= value >> 27;
    value *= UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

uint64_t rendezvous_key(struct ml_str controller, struct ml_str object)
{
    return mix(mix(ml_str_hash(controller) + KEY_SALT) ^ ml_str_hash(object));
}

uint64_t rendezvous_owner(uint64_t key, const uint64_t *members, size_t count)
{
    uint64_t owner = 0, highest = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t weight = mix(key ^ mix(members[i] + KEY_SALT));
        if (!owner || weight > highest || (weight == highest && members[i] < owner)) {
            owner = members[i];
            highest = weight;
        }
    }
    return owner;
}
