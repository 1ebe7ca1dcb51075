/* Moves from step to step of a shutdown, by a timer when one takes too long. operator.c carries the
 * steps out. */
#include "operator/shutdown.h"

/* The share of the time at which each step ends, in percent. */
static const int64_t ends_percent[ML_SHUTDOWN_STEPS] = {80, 88, 96, 100};

static int64_t shutdown_now_ns(const struct ml_shutdown *self)
{
    return ml_clock_monotonic(ml_loop_clock(self->loop));
}

static void shutdown_finish(struct ml_shutdown *self)
{
    ml_timer_stop(&self->late);
    self->running = false;
    self->handler->over(self->context, self->worked);
}

static void shutdown_enter(struct ml_shutdown *self, enum ml_shutdown_step step)
{
    self->step = step;
    if (step == ML_SHUTDOWN_STEPS || (step == ML_SHUTDOWN_LEASE && !self->worked)) {
        shutdown_finish(self);
        return;
    }
    int64_t ends_ns = self->begun_ns + self->all_ns * ends_percent[step] / 100;
    ml_timer_start(&self->late, ends_ns - shutdown_now_ns(self));
    self->beginning = true;
    self->handler->begin(self->context, step);
    self->beginning = false;
}

static void shutdown_on_late(void *context)
{
    struct ml_shutdown *self = context;
    shutdown_enter(self, self->step + 1);
}

void ml_shutdown_init(struct ml_shutdown *self, struct ml_loop *loop,
                      const struct ml_shutdown_handler *handler, void *context)
{
    *self = (struct ml_shutdown){.loop = loop, .handler = handler, .context = context};
    ml_timer_init(&self->late, loop, shutdown_on_late, self);
}

void ml_shutdown_fini(struct ml_shutdown *self)
{
    ml_timer_stop(&self->late);
    self->running = false;
}

void ml_shutdown_start(struct ml_shutdown *self, int64_t all_ns)
{
    self->running = true;
    self->begun_ns = shutdown_now_ns(self);
    self->all_ns = all_ns;
    shutdown_enter(self, ML_SHUTDOWN_WORK);
}

void ml_shutdown_done(struct ml_shutdown *self, enum ml_shutdown_step step)
{
    ml_assert(!self->beginning);
    if (!self->running)
        return;
    if (step <= ML_SHUTDOWN_BOUNDARY && self->step <= ML_SHUTDOWN_BOUNDARY) {
        self->worked = true;
        shutdown_enter(self, ML_SHUTDOWN_EVENTS);
    } else if (step == self->step) {
        shutdown_enter(self, step + 1);
    }
}

void ml_shutdown_skip(struct ml_shutdown *self)
{
    if (!self->running)
        return;
    self->worked = false;
    self->step = ML_SHUTDOWN_LEASE; /* the last: it is late at once */
    ml_timer_start(&self->late, 0);
}
