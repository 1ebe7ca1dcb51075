/* How long it leads. Time runs from when the renewal was sent: whoever else asks waits for the
 * whole duration of the Lease from some later moment. */
#include "state/election_internal.h"

/* A deadline that is noticed so much too late passed while the process slept. */
#define SLEPT_NS ML_NS_PER_S

void election_lose(struct ml_election *self, const struct ml_err *why)
{
    struct ml_err err = *why;
    ml_err_wrap(&err, "lost the lease %s/%s", self->opts.ns, self->opts.name);
    election_idle(self);
    self->state = ELECTION_OVER;
    ml_metric_set(self->master_status, 0);
    self->opts.handler->lost(self->opts.context, &err);
}

/* A write was granted: others wait for at least lease_ns from when the server had it, which was
 * after we sent it. */
void election_granted(struct ml_election *self)
{
    int64_t until_ns = self->sent_ns + self->opts.times.renew_ns;
    bool first = self->state == ELECTION_WAITING;
    if (until_ns <= election_now(self)) { /* slept meanwhile: ask again */
        if (election_holds(self))
            self->state = ELECTION_DOUBTING;
        election_ask(self);
        return;
    }
    if (self->state == ELECTION_DOUBTING)
        ml_warn(self->opts.log, "election", "slept, and still holds the lease",
                ML_S("lease", self->opts.name));
    else if (self->trouble.kind && !first)
        ml_info(self->opts.log, "election", "the lease is renewed again",
                ML_S("lease", self->opts.name));
    self->trouble = ML_ERR_INIT;
    self->until_ns = until_ns;
    self->state = ELECTION_LEADING;
    ml_timer_start(&self->deadline, until_ns - election_now(self));
    election_schedule(self);
    if (!first)
        return;
    lease_watch_stop(&self->watch);
    ml_metric_set(self->master_status, 1);
    ml_info(self->opts.log, "election", "leading", ML_S("lease", self->opts.name),
            ML_S("identity", self->opts.identity), ML_I("transitions", self->record.transitions));
    self->opts.handler->led(self->opts.context);
}

void election_on_deadline(void *context)
{
    struct ml_election *self = context;
    if (election_now(self) - self->until_ns > SLEPT_NS) {
        ml_warn(self->opts.log, "election",
                "slept past the renew deadline; asking whether the lease is still ours",
                ML_S("lease", self->opts.name));
        election_idle(self);
        self->state = ELECTION_DOUBTING;
        election_ask(self);
        return;
    }
    struct ml_err err = self->trouble;
    if (!err.kind)
        ml_err_set(&err, ML_ETIMEOUT, "no answer yet");
    ml_err_wrap(&err, "not renewed for %g s",
                (double)self->opts.times.renew_ns / (double)ML_NS_PER_S);
    election_lose(self, &err);
}

bool ml_election_leads(const struct ml_election *self)
{
    return self->state == ELECTION_LEADING && election_now(self) < self->until_ns;
}

int ml_election_fence(void *context, const char *method, const char *path, struct ml_err *err)
{
    const struct ml_election *self = context;
    if (ml_election_leads(self) || ml_str_starts(ml_str_of(path), "/apis/events.k8s.io/"))
        return 0;
    return ml_err_set(err, ML_ECANCELED, "%s %s was not sent: this replica does not hold %s/%s",
                      method, path, self->opts.ns, self->opts.name);
}
