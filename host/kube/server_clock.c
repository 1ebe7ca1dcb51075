/* How far our clock is from the API server's: bounds from each answer, told when they differ for
 * certain and when they certainly do not any more. Fed by client.c. */
#include "kube/server_clock.h"

void ml_server_clock_init(struct ml_server_clock *self, struct ml_clock *own, struct ml_log *log,
                          struct ml_metrics *metrics)
{
    *self = (struct ml_server_clock){.own = own, .log = log};
    if (metrics)
        self->metric = ml_metric_only(
            ml_metrics_gauge(metrics, "moonloop_clock_skew_seconds",
                             "By how much the clock of this machine is at least ahead of the API "
                             "server's; below 0: behind it.",
                             NULL));
}

static double seconds_of(int64_t ns)
{
    return (double)ns / (double)ML_NS_PER_S;
}

static void begin_skew(struct ml_server_clock *self)
{
    self->skewed = true;
    if (self->log)
        ml_warn(self->log, "client", "the clock of this machine differs from the API server's",
                ML_F("seconds", seconds_of(self->ahead_ns)));
}

static void end_skew(struct ml_server_clock *self)
{
    self->skewed = false;
    if (self->log)
        ml_info(self->log, "client",
                "the clock of this machine agrees with the API server's again");
}

/* time(2) tells the second of the kernel's last tick, at 100 Hz or more: for so long after a second
 * began, servers that use it, as libevent's does, date their answers by the second before. */
#define TICK_NS (10 * ML_NS_PER_MS)

/* Measured from now on backwards, by the clock that nobody sets: the wall clock may have been set
 * while the request was under way, and only what it says now counts. */
void ml_server_clock_note(struct ml_server_clock *self, int64_t took_ns, int64_t date_s)
{
    if (date_s <= 0 || date_s > INT64_MAX / ML_NS_PER_S - 1)
        return;
    int64_t now_ns = ml_clock_wall(self->own), date_ns = date_s * ML_NS_PER_S;
    int64_t least_ns = now_ns - took_ns - (date_ns + ML_NS_PER_S + TICK_NS);
    int64_t most_ns = now_ns - date_ns;
    self->ahead_ns = least_ns > 0 ? least_ns : ML_MIN(most_ns, 0);
    if (self->metric)
        ml_metric_set(self->metric, seconds_of(self->ahead_ns));
    bool differs = least_ns > ML_CLOCK_SKEW_MAX_NS || most_ns < -ML_CLOCK_SKEW_MAX_NS;
    bool agrees = most_ns <= ML_CLOCK_SKEW_MAX_NS && least_ns >= -ML_CLOCK_SKEW_MAX_NS;
    if (differs && !self->skewed)
        begin_skew(self);
    else if (agrees && self->skewed)
        end_skew(self);
}

int64_t ml_server_clock_wall(const struct ml_server_clock *self)
{
    return ml_clock_wall(self->own) - (self->skewed ? self->ahead_ns : 0);
}

void ml_server_clock_describe(const struct ml_server_clock *self, struct ml_buf *out)
{
    if (!self->skewed)
        return;
    ml_buf_printf(out, "note: the clock of this machine is %.1f s %s the API server's\n",
                  seconds_of(self->ahead_ns < 0 ? -self->ahead_ns : self->ahead_ns),
                  self->ahead_ns < 0 ? "behind" : "ahead of");
}
