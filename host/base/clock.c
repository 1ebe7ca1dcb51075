/* The kernel's clocks, and the fake clock of tests. */
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    int r = clock_gettime(id, &now);
    ml_assert(r == 0);
    return (int64_t)now.tv_sec * ML_NS_PER_S + now.tv_nsec;
}

static int64_t real_monotonic(struct ml_clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_BOOTTIME);
}

static int64_t real_wall(struct ml_clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_REALTIME);
}

struct ml_clock *ml_clock_real(void)
{
    static struct ml_clock real = {real_monotonic, real_wall};
    return &real;
}

static int64_t fake_monotonic(struct ml_clock *clock)
{
    return ml_container_of(clock, struct ml_clock_fake, clock)->monotonic_ns;
}

static int64_t fake_wall(struct ml_clock *clock)
{
    return ml_container_of(clock, struct ml_clock_fake, clock)->wall_ns;
}

void ml_clock_fake_init(struct ml_clock_fake *fake, int64_t wall_ns)
{
    *fake = (struct ml_clock_fake){{fake_monotonic, fake_wall}, ML_NS_PER_S, wall_ns};
}

void ml_clock_fake_advance(struct ml_clock_fake *fake, int64_t delta_ns)
{
    fake->monotonic_ns += delta_ns;
    fake->wall_ns += delta_ns;
}

bool ml_seconds_to_ns(double seconds, int64_t *out_ns)
{
    if (!(seconds >= 0 && seconds <= (double)ML_SECONDS_MAX)) /* written so that NaN fails */
        return false;
    int64_t whole = (int64_t)seconds;
    double rest = (seconds - (double)whole) * (double)ML_NS_PER_S;
    int64_t rest_ns = (int64_t)rest;
    *out_ns = whole * ML_NS_PER_S + rest_ns + ((double)rest_ns < rest);
    return true;
}
