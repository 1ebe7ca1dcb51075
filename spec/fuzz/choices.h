/* The choices of a fuzzer's input: one byte a choice. Behind its end the first choice is taken each
 * time, or, when the input asks for it, what a generator seeded with all of the input draws: so
 * that a few bytes are enough for a large program, and it is the same each time. */
#pragma once

#include "base/base.h"

struct choices {
    const uint8_t *at, *end;
    uint64_t state; /* 0: no more than the bytes */
};

/* FNV-1a; never 0. */
static inline uint64_t choices_seed(const uint8_t *data, size_t size)
{
    uint64_t seed = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        seed = (seed ^ data[i]) * UINT64_C(1099511628211);
    return seed | 1;
}

/* `seed` 0: the bytes are all there is. */
static inline void choices_init(struct choices *choices, const uint8_t *data, size_t size,
                                uint64_t seed)
{
    *choices = (struct choices){data, data ? data + size : data, seed};
}

/* xorshift64*. */
static inline uint64_t choices_draw(struct choices *choices)
{
    choices->state ^= choices->state >> 12;
    choices->state ^= choices->state << 25;
    choices->state ^= choices->state >> 27;
    return choices->state * UINT64_C(2685821657736338717) >> 32;
}

/* 0 … count - 1; of more than 256 it takes two bytes. */
static inline size_t choose(struct choices *choices, size_t count)
{
    size_t drawn = 0;
    for (int byte = 0; byte < (count > 256 ? 2 : 1); byte++) {
        if (choices->at < choices->end)
            drawn = drawn << 8 | *choices->at++;
        else if (choices->state)
            drawn = drawn << 8 | (choices_draw(choices) & 0xFF);
    }
    return drawn % count;
}

/* True in so many of a hundred cases; without a further choice it is false. */
static inline bool chance(struct choices *choices, size_t percent)
{
    return choose(choices, 100) >= 100 - percent;
}
