#include "state/rendezvous.h"
#include "state/shard_internal.h"

void shard_idle(struct ml_shard *self)
{
    if (self->call)
        ml_client_cancel(ml_take(&self->call));
    if (self->sweeping)
        ml_client_cancel(ml_take(&self->sweeping));
    ml_timer_stop(&self->stuck);
    ml_timer_stop(&self->next_round);
    ml_timer_stop(&self->hint);
    ml_timer_stop(&self->drain);
    ml_timer_stop(&self->deadline);
    lease_watch_stop(&self->watch);
}

void shard_lose(struct ml_shard *self, const struct ml_err *why)
{
    struct ml_err err = *why;
    ml_err_wrap(&err, "lost the lease %s/%s", self->opts.ns, self->name);
    shard_idle(self);
    self->state = SHARD_OVER;
    ml_metric_set(self->members, 0);
    self->opts.handler->lost(self->opts.context, &err);
}

void shard_on_deadline(void *context)
{
    struct ml_shard *self = context;
    struct ml_err err = self->trouble;
    if (!err.kind)
        ml_err_set(&err, ML_ETIMEOUT, "no answer yet");
    ml_err_wrap(&err, "not renewed for %g s",
                (double)self->opts.times.renew_ns / (double)ML_NS_PER_S);
    shard_lose(self, &err);
}

/* ---- leaving ---- */

static void on_left(void *context)
{
    struct ml_shard *self = context;
    shard_idle(self);
    ml_timer_stop(&self->patience);
    ml_task_cancel(&self->left_task);
    self->state = SHARD_OVER;
    void (*left)(void *context) = self->left;
    self->left = NULL;
    if (left)
        left(self->left_context);
}

void ml_shard_leave(struct ml_shard *self, int64_t patience_ns, void (*done)(void *context),
                    void *context)
{
    bool was_member = self->state == SHARD_MEMBER;
    bool unsure = self->call != NULL; /* a renewal may be under way */
    shard_idle(self);
    self->left = done;
    self->left_context = context;
    ml_metric_set(self->members, 0);
    if (!was_member) {
        self->state = SHARD_OVER;
        ml_task_defer(&self->left_task, self->opts.loop);
        return;
    }
    self->state = SHARD_LEAVING;
    self->news = false;
    ml_timer_start(&self->patience, patience_ns);
    if (unsure)
        free(ml_take(&self->rv));
    shard_begin_round(self);
}

/* ---- asked ---- */

static bool is_open(const struct ml_shard *self)
{
    return self->state == SHARD_MEMBER && shard_now(self) < self->until_ns;
}

bool ml_shard_acts(const struct ml_shard *self, struct ml_str controller, struct ml_str object)
{
    return is_open(self) && shard_acting_acts(&self->acting, rendezvous_key(controller, object));
}

bool ml_shard_gained(const struct ml_shard *self, struct ml_str controller, struct ml_str object)
{
    uint64_t key = rendezvous_key(controller, object);
    return shard_acting_acts(&self->acting, key) && !shard_acting_acts(&self->before, key);
}

int ml_shard_fence(void *context, const char *method, const char *path, struct ml_err *err)
{
    const struct ml_shard *self = context;
    if (is_open(self) || ml_str_starts(ml_str_of(path), "/apis/events.k8s.io/"))
        return 0;
    return ml_err_set(err, ML_ECANCELED,
                      "%s %s was not sent: this replica is no member of the shard group %s", method,
                      path, self->opts.group);
}

void ml_shard_settled(struct ml_shard *self)
{
    if (self->draining && self->state == SHARD_MEMBER)
        ml_timer_start(&self->drain, 0);
}

/* ---- life ---- */

/* An identity is unique for each start of a process; its hash is, among some hundreds, as well. A
 * name that is taken all the same is somebody else's Lease, and left alone. */
static uint64_t id_of(const char *identity)
{
    uint64_t id = rendezvous_key(ML_STR("moonloop.dev/shard-member"), ml_str_of(identity));
    return id ? id : 1;
}

struct ml_shard *ml_shard_new(const struct ml_shard_opts *opts)
{
    struct ml_shard *self = ml_new(struct ml_shard);
    self->opts = *opts;
    self->opts.ns = ml_strdup(opts->ns);
    self->opts.group = ml_strdup(opts->group);
    self->opts.identity = ml_strdup(opts->identity);
    self->clock = ml_loop_clock(opts->loop);
    self->id = id_of(opts->identity);
    self->name = shard_lease_name(opts->group, self->id);
    self->trouble = ML_ERR_INIT;
    shard_group_init(&self->group, self->opts.group, self->id, opts->times.lease_ns);
    ml_timer_init(&self->stuck, opts->loop, shard_on_stuck, self);
    ml_timer_init(&self->next_round, opts->loop, shard_begin_round, self);
    ml_timer_init(&self->hint, opts->loop, shard_look, self);
    ml_timer_init(&self->drain, opts->loop, shard_on_drain, self);
    ml_timer_init(&self->deadline, opts->loop, shard_on_deadline, self);
    ml_timer_init(&self->patience, opts->loop, on_left, self);
    ml_task_init(&self->left_task, on_left, self);
    ML_AUTO_FREE char *selector = ml_asprintf(SHARD_LABEL "=%s", opts->group);
    lease_watch_init(&self->watch, opts->client, opts->ns, "labelSelector", selector, shard_on_seen,
                     self);
    self->members = ml_metric_only(ml_metrics_gauge(
        opts->metrics, "moonloop_shard_members",
        "Replicas that share the keys, as this one sees them; 0 while it is no member.", NULL));
    return self;
}

void ml_shard_free(struct ml_shard *self)
{
    if (!self)
        return;
    shard_idle(self);
    ml_timer_stop(&self->patience);
    ml_task_cancel(&self->left_task);
    lease_watch_fini(&self->watch);
    shard_acting_fini(&self->acting);
    shard_acting_fini(&self->before);
    shard_group_fini(&self->group);
    free(self->uid);
    free(self->rv);
    free(self->acquired);
    free(self->name);
    free((char *)self->opts.ns);
    free((char *)self->opts.group);
    free((char *)self->opts.identity);
    free(self);
}

void ml_shard_start(struct ml_shard *self)
{
    ml_assert(self->state == SHARD_NEW);
    self->state = SHARD_JOINING;
    ml_info(self->opts.log, "shard", "joining the shard group", ML_S("namespace", self->opts.ns),
            ML_S("group", self->opts.group), ML_S("lease", self->name),
            ML_S("identity", self->opts.identity));
    shard_begin_round(self);
}
