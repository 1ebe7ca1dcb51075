/* The keys under way: who may begin, and what becomes of a key that has ended. */
#include "run/controller_internal.h"

/* Keys of low priority under way at once: enough to keep an API server busy, few enough that an
 * edit finds its requests and the loop free. */
#define LOW_IN_FLIGHT_MAX 32

/* One key under way. */
struct work {
    struct ml_controller *controller;
    struct ml_str key; /* the queue's, until done */
    enum ml_priority priority;
    struct ml_reconcile *reconcile;
    int64_t started_ns;
    struct ml_list node;
};

/* What becomes of the key (machinery of controller-runtime's reconcileHandler). The newest
 * result decides about the timer: one that an earlier run asked for is taken back. A key keeps
 * its priority, so that what fails or comes regularly since the start does not crowd out edits;
 * an instant that was asked for is work that is due, whatever brought it up. */
static void requeue(const struct work *work, const struct ml_reconcile_end *end)
{
    struct ml_controller *self = work->controller;
    struct ml_str key = work->key;
    ml_workqueue_cancel_after(self->queue, key);
    switch (end->outcome) {
    case ML_OUTCOME_ERROR:
        ml_workqueue_add_rate_limited(self->queue, key, work->priority);
        return;
    case ML_OUTCOME_TERMINAL:
    case ML_OUTCOME_INVALID:
        return;
    case ML_OUTCOME_OK:
        ml_workqueue_forget(self->queue, key);
        if (end->requeue_after_ns >= 0)
            ml_workqueue_add_after(self->queue, key, work->priority,
                                   ml_wakes_restrain(self->wakes, key, end->requeue_after_ns));
        if (end->requeue_at_ns >= 0)
            ml_workqueue_add_after(self->queue, key, ML_PRIORITY_NORMAL,
                                   end->requeue_at_ns - ml_clock_wall(self->cluster->clock));
        return;
    }
}

static void work_end(struct work *work)
{
    struct ml_controller *self = work->controller;
    ml_list_remove(&work->node);
    ml_workqueue_done(self->queue, work->key);
    self->in_flight--;
    self->low_in_flight -= work->priority == ML_PRIORITY_LOW;
    ml_metric_set(self->metrics.active, (double)self->in_flight);
    free(work);
}

static void on_reconciled(void *context, const struct ml_reconcile_end *end)
{
    struct work *work = context;
    struct ml_controller *self = work->controller;
    int64_t took_ns = ml_clock_monotonic(self->cluster->clock) - work->started_ns;
    ml_controller_metrics_count(&self->metrics, end, took_ns);
    requeue(work, end);
    ml_wakes_ended(self->wakes, work->key);
    work_end(work);
    controller_tell_when_stopped(self);
    controller_pump(self);
}

static void on_gate_open(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
}

static void begin(struct ml_controller *self, struct ml_str key, enum ml_priority priority)
{
    const struct ml_store *store = ml_informer_store(ml_generation_informer(self->current));
    struct ml_object *object = ml_store_get(store, key);
    /* Gone, or going: what it owns goes with it, and nothing new must appear under it. */
    if (!object || ml_object_deleting(object)) {
        ml_workqueue_forget(self->queue, key);
        ml_workqueue_done(self->queue, key);
        return;
    }
    if (!ml_gate_open(self->gate, key, on_gate_open, self)) {
        ml_workqueue_done(self->queue, key);
        return;
    }
    struct work *work = ml_new(struct work);
    work->controller = self;
    work->key = key;
    work->priority = priority;
    work->started_ns = ml_clock_monotonic(self->cluster->clock);
    ml_list_push(&self->works, &work->node);
    ml_wakes_begun(self->wakes, key);
    self->in_flight++;
    self->low_in_flight += priority == ML_PRIORITY_LOW;
    ml_metric_set(self->metrics.active, (double)self->in_flight);
    work->reconcile = ml_reconcile_start(self->cluster, self->name, self->current, self->gate,
                                         object, on_reconciled, work);
}

/* Is there room for one more, and down to which priority? */
static bool has_room(const struct ml_controller *self, enum ml_priority *out_least)
{
    bool all = self->low_in_flight < LOW_IN_FLIGHT_MAX;
    *out_least = all ? ML_PRIORITY_LOW : ML_PRIORITY_NORMAL;
    return self->current && !self->stopping && !self->cluster->standby &&
           self->in_flight < ml_generation_declaration(self->current)->concurrency_max;
}

void controller_pump(void *context)
{
    struct ml_controller *self = context;
    struct ml_str key;
    enum ml_priority least, priority;
    while (has_room(self, &least) && ml_workqueue_get(self->queue, least, &key, &priority))
        begin(self, key, priority);
}

void controller_cancel_work(struct ml_controller *self)
{
    ml_list_each (node, &self->works) {
        struct work *work = ml_container_of(node, struct work, node);
        ml_reconcile_cancel(work->reconcile);
        work_end(work);
    }
}
