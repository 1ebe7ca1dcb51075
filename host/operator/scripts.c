/* All scripts of a host: its sources (scripts_feed.c), and for each of their files a controller
 * (scripts_slot.c). operator.c owns the one instance. */
#include "operator/scripts_internal.h"

#include "base/escape.h"

static void count_slot(const struct slot *slot, struct ml_scripts_count *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    bool works = slot_works(slot);
    if (works && ml_controller_sees(slot->controller, &why))
        out->live++;
    else if (!works && slot->why.kind)
        out->refused++;
    else if (slot->controller && ml_controller_misses_kind(slot->controller))
        out->missing_kind++;
    else if (works)
        out->blocked++;
    else
        out->pending++;
}

struct ml_scripts_count ml_scripts_count(const struct ml_scripts *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    struct ml_scripts_count count = {.read = true};
    for (size_t i = 0; i < self->feed_count; i++)
        count.read = feed_is_loaded(&self->feeds[i], &why) && count.read;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        if (!slot->removed)
            count_slot(slot, &count);
    return count;
}

static void collect_not_working(void *context)
{
    struct ml_scripts *self = context;
    struct ml_scripts_count count = ml_scripts_count(self);
    ml_metric_set(self->not_working,
                  (double)(count.missing_kind + count.refused + count.blocked + count.pending));
}

static void scripts_on_all_stopped(void *context)
{
    struct ml_scripts *self = context;
    self->stopped(self->stopped_context);
}

struct ml_scripts *ml_scripts_new(struct ml_cluster *cluster, const struct ml_script_limits *limits,
                                  struct ml_crash_marker *marker)
{
    struct ml_scripts *self = ml_new(struct ml_scripts);
    self->cluster = cluster;
    self->limits = *limits;
    self->marker = marker;
    ml_task_init(&self->stopped_task, scripts_on_all_stopped, self);
    ml_list_init(&self->slots);
    ml_list_init(&self->dead);
    self->refusals = ml_metrics_counter(cluster->metrics, "moonloop_script_refused_total",
                                        "Script versions refused, by file.",
                                        ml_metric_labels("file"));
    self->refused = ml_metrics_gauge(
        cluster->metrics, "moonloop_script_refused",
        "1 while the newest version of the file is refused, and an older one or none runs.",
        ml_metric_labels("file"));
    self->quarantines = ml_metrics_counter(
        cluster->metrics, "moonloop_script_quarantined_total",
        "Script versions refused because the process died while running them, by file.",
        ml_metric_labels("file"));
    self->loads = ml_metrics_counter(cluster->metrics, "moonloop_script_loaded_total",
                                     "Script versions that went live.",
                                     ml_metric_labels("controller"));
    self->without_file = ml_metric_only(ml_metrics_gauge(
        cluster->metrics, "moonloop_controllers_without_file",
        "Controllers that keep running although their script file is gone.", NULL));
    self->not_working = ml_metric_only(
        ml_metrics_gauge(cluster->metrics, "moonloop_scripts_not_working",
                         "Scripts that are not live, or lack a kind or a right.", NULL));
    self->collector = (struct ml_metrics_collector){.collect = collect_not_working,
                                                    .context = self};
    ml_metrics_on_collect(cluster->metrics, &self->collector);
    return self;
}

void ml_scripts_free(struct ml_scripts *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
    ml_metrics_collector_remove(&self->collector);
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_free(self->draining[i]);
    ml_list_each_entry (struct slot, slot, &self->slots) {
        slot->draining = 0;
        slot_free(slot);
    }
    ml_list_each_entry (struct slot, dead, &self->dead) {
        dead->draining = 0;
        slot_free(dead);
    }
    for (size_t i = 0; i < self->feed_count; i++)
        feed_fini(&self->feeds[i]);
    free(self);
}

void ml_scripts_add_source(struct ml_scripts *self, struct ml_source *source)
{
    ml_assert(self->feed_count < SOURCES_MAX);
    feed_init(&self->feeds[self->feed_count++], self, source);
}

void ml_scripts_start(struct ml_scripts *self)
{
    for (size_t i = 0; i < self->feed_count; i++)
        feed_start(&self->feeds[i]);
}

void ml_scripts_resync(struct ml_scripts *self)
{
    ml_list_each_entry (struct slot, slot, &self->slots)
        if (slot->controller)
            ml_controller_resync(slot->controller);
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_resync(self->draining[i]);
}

void ml_scripts_reshard(struct ml_scripts *self)
{
    ml_list_each_entry (struct slot, slot, &self->slots)
        if (slot->controller)
            ml_controller_reshard(slot->controller);
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_reshard(self->draining[i]);
}

/* A successor has no reconciles before it is live; a draining controller may still have some. */
bool ml_scripts_hand_over(struct ml_scripts *self, bool cut)
{
    bool idle = true;
    ml_list_each_entry (struct slot, slot, &self->slots)
        if (slot->controller && !ml_controller_hand_over(slot->controller, cut))
            idle = false;
    for (size_t i = self->draining_count; i-- > 0;) /* one that ends is taken out */
        if (!ml_controller_hand_over(self->draining[i], cut))
            idle = false;
    return idle;
}

void ml_scripts_stop(struct ml_scripts *self, void (*done)(void *context), void *context)
{
    self->stopping = true;
    for (size_t i = 0; i < self->feed_count; i++)
        feed_stop(&self->feeds[i]);
    self->stopped = done;
    self->stopped_context = context;
    if (self->running == 0)
        ml_task_defer(&self->stopped_task, self->cluster->loop);
    ml_list_each_entry (struct slot, slot, &self->slots) {
        if (slot->successor)
            ml_controller_stop(slot->successor);
        if (slot->controller)
            ml_controller_stop(slot->controller);
    }
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_stop(self->draining[i]);
}

bool ml_scripts_ready(const struct ml_scripts *self, struct ml_buf *why)
{
    bool ready = true;
    for (size_t i = 0; i < self->feed_count; i++)
        ready = feed_is_loaded(&self->feeds[i], why) && ready;
    ml_list_each_entry (const struct slot, slot, &self->slots) {
        if (slot->removed)
            continue;
        if (slot_works(slot)) {
            ready = ml_controller_sees(slot->controller, why) && ready;
            continue;
        }
        ready = false;
        bool lacks = slot->controller && ml_controller_lacks(slot->controller, why);
        if (slot->why.kind)
            ml_append_line(why, "%s", slot->why.message);
        else if (!lacks)
            ml_append_line(why, "%s: is about to go live", slot->file);
    }
    return ready;
}

bool ml_scripts_webhook(const struct ml_scripts *self, struct ml_str name,
                        struct ml_webhook_target *out)
{
    struct ml_webhook_target target;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        for (size_t which = 0; which < 2; which++)
            if (slot_webhook(slot, which, &target) &&
                ml_declaration_is_called(ml_script_declaration(target.script), name)) {
                *out = target;
                return true;
            }
    return false;
}

void ml_scripts_webhooks(const struct ml_scripts *self,
                         void (*each)(void *context, const struct ml_webhook_target *target),
                         void *context)
{
    struct ml_webhook_target target;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        for (size_t which = 0; which < 2; which++) {
            if (!slot_webhook(slot, which, &target))
                continue;
            const struct ml_script_webhooks *has = &ml_script_declaration(target.script)->webhooks;
            if (has->defaults || has->validates || has->version_count > 0)
                each(context, &target);
        }
}

void ml_scripts_on_live(struct ml_scripts *self, void (*changed)(void *context), void *context)
{
    self->live = changed;
    self->live_context = context;
}

int64_t ml_scripts_next(const struct ml_scripts *self)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < self->feed_count; i++)
        if (!self->feeds[i].source->read || ml_loader_busy(self->feeds[i].loader))
            return 0;
    ml_list_each_entry (const struct slot, slot, &self->slots) {
        if (slot->controller)
            next = ML_MIN(next, ml_controller_next(slot->controller));
        if (slot->successor)
            next = ML_MIN(next, ml_controller_next(slot->successor));
    }
    for (size_t i = 0; i < self->draining_count; i++)
        next = ML_MIN(next, ml_controller_next(self->draining[i]));
    return next;
}

bool ml_scripts_fail(const struct ml_scripts *self, struct ml_buf *why)
{
    bool fail = false;
    for (size_t i = 0; i < self->feed_count; i++) {
        if (!feed_is_empty(&self->feeds[i]))
            continue;
        fail = true;
        ml_append_line(why, "%s: no script in it", self->feeds[i].source->name);
    }
    ml_list_each_entry (const struct slot, slot, &self->slots)
        fail = (slot->controller && ml_controller_fails(slot->controller, why)) || fail;
    return fail;
}
