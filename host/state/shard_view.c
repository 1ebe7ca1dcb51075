/* From one view to the next: wanted, when a list shows others than the last one; draining, until
 * the work that it takes away has ended; publishing, from when it is sent until it is granted;
 * published; and confirmed by a list that was asked for after the grant. A view that was sent is
 * carried through, for others may have seen it; one that was not may be replaced. */
#include "state/shard_internal.h"

#define ASK_AGAIN_NS ML_NS_PER_S

static void rebuild(struct ml_shard *self)
{
    const struct shard_set *const views[] = {&self->confirmed, &self->published, &self->next};
    struct shard_acting acting;
    shard_acting_init(&acting, &self->group, views, ML_COUNT(views));
    if (shard_acting_eq(&acting, &self->acting)) {
        shard_acting_fini(&acting);
        return;
    }
    shard_acting_fini(&self->before);
    self->before = self->acting;
    self->acting = acting;
    self->opts.handler->changed(self->opts.context);
}

const struct shard_set *shard_outgoing(const struct ml_shard *self)
{
    return self->publishing ? &self->next : &self->published;
}

bool shard_is_due(const struct ml_shard *self)
{
    return !self->draining && !shard_set_eq(&self->next, &self->published);
}

static void tell_of_view(const struct ml_shard *self)
{
    ML_AUTO_FREE char *members = shard_set_text(&self->next);
    ml_info(self->opts.log, "shard", "the members of the group are others now",
            ML_S("group", self->opts.group), ML_I("members", (int64_t)self->next.count),
            ML_S("ids", members));
}

static void want(struct ml_shard *self)
{
    struct shard_set alive;
    shard_group_alive(&self->group, &alive);
    if (self->publishing || shard_set_eq(&alive, &self->next))
        return;
    self->next = alive;
    ml_metric_set(self->members, (double)alive.count);
    tell_of_view(self);
    if (!self->draining)
        self->draining_since_ns = shard_now(self);
    self->draining = true;
}

/* Asked with the next view in force already: nothing new begins on what it takes away. */
static void drain(struct ml_shard *self)
{
    bool cut = shard_now(self) - self->draining_since_ns >= self->opts.times.renew_ns;
    if (!self->draining)
        return;
    if (self->opts.handler->idle(self->opts.context, cut)) {
        self->draining = false;
        ml_timer_stop(&self->drain);
        return;
    }
    if (!ml_timer_active(&self->drain))
        ml_timer_start(&self->drain, ASK_AGAIN_NS);
}

void shard_judge(struct ml_shard *self)
{
    self->confirmed = self->published;
    want(self);
    rebuild(self);
    drain(self);
}

void shard_granted_view(struct ml_shard *self)
{
    if (!self->publishing)
        return;
    self->publishing = false;
    self->published = self->next;
    rebuild(self);
}

void shard_on_drain(void *context)
{
    struct ml_shard *self = context;
    drain(self);
    if (shard_is_due(self))
        shard_renew(self);
}
