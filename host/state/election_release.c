/* Giving the Lease back, so that the next candidate need not wait (client-go, release). */
#include "codec/rfc3339.h"
#include "state/election_internal.h"

void election_on_released(void *context)
{
    struct ml_election *self = context;
    election_idle(self);
    ml_timer_stop(&self->patience);
    self->state = ELECTION_OVER;
    void (*released)(void *context) = self->released;
    self->released = NULL;
    if (released)
        released(self->released_context);
}

static void give_back(struct ml_election *self);

static void on_seen_again(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    struct ml_err bad = ML_ERR_INIT;
    self->call = NULL;
    if (!err && election_observe(self, body, &bad) < 0)
        err = &bad;
    if (err)
        election_failed(self, err);
    else if (election_is_mine(self))
        give_back(self);
    else
        ml_task_defer(&self->released_task, self->opts.loop);
}

static void on_given_back(void *context, struct ml_str body, const struct ml_err *err)
{
    struct ml_election *self = context;
    (void)body;
    self->call = NULL;
    if (!err) {
        ml_info(self->opts.log, "election", "gave the lease back", ML_S("lease", self->opts.name));
        ml_task_defer(&self->released_task, self->opts.loop);
    } else if (err->kind == ML_ECONFLICT) { /* a renewal under way was faster */
        election_send(self, ML_VERB_GET, ML_STR(""), on_seen_again);
    } else {
        election_failed(self, err);
    }
}

static void give_back(struct ml_election *self)
{
    char now[ML_RFC3339_MICRO_LEN + 1];
    ml_rfc3339_format_micro(ml_clock_wall(self->clock), now);
    const struct lease_claim content = {
        .holder = "",
        .duration_s = 1,
        .acquired = now,
        .renewed = now,
        .transitions = self->record.transitions,
    };
    ML_AUTO_FREE char *body = lease_claim_json(&content, ml_str_of(self->record.metadata));
    election_send(self, ML_VERB_UPDATE, ml_str_of(body), on_given_back);
}

void ml_election_release(struct ml_election *self, int64_t patience_ns, void (*done)(void *context),
                         void *context)
{
    bool held = ml_election_leads(self);
    ml_assert(self->state != ELECTION_RELEASING);
    election_idle(self);
    self->released = done;
    self->released_context = context;
    ml_metric_set(self->master_status, 0);
    if (!held || !election_is_mine(self)) {
        self->state = ELECTION_OVER;
        ml_task_defer(&self->released_task, self->opts.loop);
        return;
    }
    self->state = ELECTION_RELEASING;
    ml_timer_start(&self->patience, patience_ns);
    give_back(self);
}
