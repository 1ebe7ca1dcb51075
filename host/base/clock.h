/* L0 base. The clock interface: all other code reads the time here, never from the libc. One struct
 * of functions; the real one reads the kernel's clocks, a test advances the fake one. */
#pragma once

#include "base/base.h"

struct ml_clock {
    int64_t (*monotonic_ns)(struct ml_clock *clock); /* counts through suspend; for delays */
    int64_t (*wall_ns)(struct ml_clock *clock);      /* since 1970-01-01T00:00:00Z; may jump */
};

/* CLOCK_BOOTTIME and CLOCK_REALTIME. Static, never freed. */
struct ml_clock *ml_clock_real(void);

/* Stands still until it is advanced. Embed or place it anywhere; needs no end. */
struct ml_clock_fake {
    struct ml_clock clock;
    int64_t monotonic_ns;
    int64_t wall_ns;
};

void ml_clock_fake_init(struct ml_clock_fake *fake, int64_t wall_ns);
void ml_clock_fake_advance(struct ml_clock_fake *fake, int64_t delta_ns); /* both times */

static inline int64_t ml_clock_monotonic(struct ml_clock *clock)
{
    return clock->monotonic_ns(clock);
}

static inline int64_t ml_clock_wall(struct ml_clock *clock)
{
    return clock->wall_ns(clock);
}

#define ML_SECONDS_MAX INT64_C(9000000000) /* 285 years: in ns it still fits */

/* Seconds in ns, rounded up. False, with nothing written, for a value below 0, above
 * ML_SECONDS_MAX or not a number. */
bool ml_seconds_to_ns(double seconds, int64_t *out_ns);

/* to - from in ns, limited to the range of int64_t. */
static inline int64_t ml_ns_between(int64_t from, int64_t to)
{
    int64_t between;
    if (__builtin_sub_overflow(to, from, &between))
        return to < from ? INT64_MIN : INT64_MAX;
    return between;
}
