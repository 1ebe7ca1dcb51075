#include "state/election_internal.h"

void election_idle(struct ml_election *self)
{
    if (self->call)
        ml_client_cancel(ml_take(&self->call));
    ml_timer_stop(&self->stuck);
    ml_timer_stop(&self->next);
    ml_timer_stop(&self->deadline);
    lease_watch_stop(&self->watch);
}

struct ml_election *ml_election_new(const struct ml_election_opts *opts)
{
    struct ml_election *self = ml_new(struct ml_election);
    self->opts = *opts;
    self->opts.ns = ml_strdup(opts->ns);
    self->opts.name = ml_strdup(opts->name);
    self->opts.identity = ml_strdup(opts->identity);
    self->clock = ml_loop_clock(opts->loop);
    self->trouble = ML_ERR_INIT;
    ml_timer_init(&self->stuck, opts->loop, election_on_stuck, self);
    ml_timer_init(&self->next, opts->loop, election_attempt, self);
    ml_timer_init(&self->deadline, opts->loop, election_on_deadline, self);
    ml_timer_init(&self->patience, opts->loop, election_on_released, self);
    ml_task_init(&self->released_task, election_on_released, self);
    ML_AUTO_FREE char *selector = ml_asprintf("metadata.name=%s", opts->name);
    lease_watch_init(&self->watch, opts->client, opts->ns, "fieldSelector", selector,
                     election_on_seen, self);
    struct ml_metric_family *status = ml_metrics_gauge(
        opts->metrics, "leader_election_master_status",
        "Whether this replica leads: 1 when it does, by the name of the Lease.",
        ml_metric_labels("name"));
    struct ml_metric_family *slow = ml_metrics_counter(
        opts->metrics, "leader_election_slowpath_total",
        "Renewals of a Lease that had to read it first, by the name of the Lease.",
        ml_metric_labels("name"));
    self->master_status = ml_metric_with(status, ml_metric_labels(self->opts.name));
    self->slow_path = ml_metric_with(slow, ml_metric_labels(self->opts.name));
    return self;
}

void ml_election_free(struct ml_election *self)
{
    if (!self)
        return;
    election_idle(self);
    ml_timer_stop(&self->patience);
    ml_task_cancel(&self->released_task);
    lease_watch_fini(&self->watch);
    lease_record_fini(&self->record);
    free(self->told);
    free((char *)self->opts.ns);
    free((char *)self->opts.name);
    free((char *)self->opts.identity);
    free(self);
}

void ml_election_start(struct ml_election *self)
{
    ml_assert(self->state == ELECTION_NEW);
    self->state = ELECTION_WAITING;
    ml_info(self->opts.log, "election", "asking for the lease", ML_S("namespace", self->opts.ns),
            ML_S("lease", self->opts.name), ML_S("identity", self->opts.identity));
    election_attempt(self);
}
