#include "operator/wall_watch.h"

#define LOOK_NS  (10 * ML_NS_PER_S)
#define WRONG_NS (500 * ML_NS_PER_MS)

static int64_t ahead(const struct ml_wall_watch *watch)
{
    struct ml_clock *clock = ml_loop_clock(watch->timer.loop);
    return ml_clock_wall(clock) - ml_clock_monotonic(clock);
}

static void look(void *context)
{
    struct ml_wall_watch *watch = context;
    int64_t delta_ns = ahead(watch) - watch->ahead_ns;
    ml_timer_start(&watch->timer, LOOK_NS);
    if (delta_ns > -WRONG_NS && delta_ns < WRONG_NS)
        return;
    watch->ahead_ns += delta_ns;
    watch->jumped(watch->context, delta_ns);
}

void ml_wall_watch_start(struct ml_wall_watch *watch, struct ml_loop *loop,
                         void (*jumped)(void *context, int64_t delta_ns), void *context)
{
    ml_timer_init(&watch->timer, loop, look, watch);
    watch->jumped = jumped;
    watch->context = context;
    watch->ahead_ns = ahead(watch);
    ml_timer_start(&watch->timer, LOOK_NS);
}

void ml_wall_watch_stop(struct ml_wall_watch *watch)
{
    if (watch->timer.loop)
        ml_timer_stop(&watch->timer);
}
