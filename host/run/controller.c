#include "run/controller.h"

#include "run/controller_metrics.h"
#include "run/reconcile.h"
#include "state/workqueue.h"

/* One key under way. */
struct work {
    struct ml_controller *controller;
    struct ml_str key; /* the queue's, until done */
    struct ml_reconcile *reconcile;
    int64_t started_ns;
    struct ml_list node;
};

struct ml_controller {
    struct ml_cluster *cluster;
    char *name;
    const struct ml_controller_handler *handler;
    void *context;
    struct ml_workqueue *queue;
    struct ml_gate *gate;
    struct ml_generation *current; /* NULL before the first is live */
    struct ml_generation *offered; /* on its way; NULL when there is none */
    struct ml_list works;
    int64_t in_flight;
    bool stopping;
    struct ml_task stopped_task;
    struct ml_controller_metrics metrics;
};

static void pump(void *context);

static void tell_when_stopped(struct ml_controller *self)
{
    if (self->stopping && self->in_flight == 0)
        ml_task_defer(&self->stopped_task, self->cluster->loop);
}

static void on_stopped(void *context)
{
    struct ml_controller *self = context;
    self->handler->stopped(self->context, self);
}

/* What becomes of the key (machinery of controller-runtime's reconcileHandler). The newest
 * result decides about the timer: one that an earlier run asked for is taken back. */
static void requeue(struct ml_controller *self, struct ml_str key,
                    const struct ml_reconcile_end *end)
{
    ml_workqueue_cancel_after(self->queue, key);
    switch (end->outcome) {
    case ML_OUTCOME_ERROR:
        ml_workqueue_add_rate_limited(self->queue, key);
        return;
    case ML_OUTCOME_TERMINAL:
    case ML_OUTCOME_INVALID:
        return;
    case ML_OUTCOME_OK:
        ml_workqueue_forget(self->queue, key);
        if (end->requeue_after_ns >= 0)
            ml_workqueue_add_after(self->queue, key, end->requeue_after_ns);
        if (end->requeue_at_ns >= 0)
            ml_workqueue_add_after(self->queue, key,
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
    ml_metric_set(self->metrics.active, (double)self->in_flight);
    free(work);
}

static void on_reconciled(void *context, const struct ml_reconcile_end *end)
{
    struct work *work = context;
    struct ml_controller *self = work->controller;
    int64_t took_ns = ml_clock_monotonic(self->cluster->clock) - work->started_ns;
    ml_controller_metrics_count(&self->metrics, end, took_ns);
    requeue(self, work->key, end);
    work_end(work);
    tell_when_stopped(self);
    pump(self);
}

static void on_gate_open(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    ml_workqueue_add(self->queue, key);
}

static void begin(struct ml_controller *self, struct ml_str key)
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
    work->started_ns = ml_clock_monotonic(self->cluster->clock);
    ml_list_push(&self->works, &work->node);
    self->in_flight++;
    ml_metric_set(self->metrics.active, (double)self->in_flight);
    work->reconcile = ml_reconcile_start(self->cluster, self->name, self->current, self->gate,
                                         object, on_reconciled, work);
}

/* Hands out work until the script's limit is reached. */
static void pump(void *context)
{
    struct ml_controller *self = context;
    struct ml_str key;
    while (self->current && !self->stopping && !self->cluster->standby &&
           self->in_flight < ml_generation_declaration(self->current)->concurrency_max &&
           ml_workqueue_get(self->queue, &key))
        begin(self, key);
}

/* On standby nothing waits in the queue: who leads later begins with all there is. */
static void enqueue_all(struct ml_controller *self)
{
    if (self->cluster->standby)
        return;
    const struct ml_store *store = ml_informer_store(ml_generation_informer(self->current));
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        ml_workqueue_add(self->queue, ml_object_key(object));
}

/* The swap. It happens in one step of the loop, so between any two reconciles. */
static void on_ready(void *context, struct ml_generation *generation)
{
    struct ml_controller *self = context;
    struct ml_generation *old = self->current;
    ml_assert(generation == self->offered);
    self->offered = NULL;
    self->current = generation;
    ml_generation_live(generation, self->gate);
    ml_metric_set(self->metrics.workers_max,
                  (double)ml_generation_declaration(generation)->concurrency_max);
    if (old) {
        ml_generation_retire(old);
        ml_generation_unref(old);
    }
    enqueue_all(self);
    self->handler->live(self->context, self, old == NULL);
    pump(self);
}

static void on_waiting(void *context, struct ml_generation *generation,
                       const struct ml_script_kind *kind, const struct ml_err *err)
{
    struct ml_controller *self = context;
    (void)generation;
    ml_warn(self->cluster->log, self->name,
            err->kind == ML_ENOT_FOUND ? "kind is not installed; waiting for it"
                                       : "kind cannot be looked up; trying again",
            ML_STR_FIELD("group", kind->gvk.group), ML_STR_FIELD("version", kind->gvk.version),
            ML_STR_FIELD("kind", kind->gvk.kind), ML_ERR(err));
}

static void on_enqueue(void *context, struct ml_generation *generation, struct ml_str key)
{
    struct ml_controller *self = context;
    (void)generation;
    if (!self->cluster->standby)
        ml_workqueue_add(self->queue, key);
}

static void on_gone(void *context, struct ml_generation *generation, struct ml_str key)
{
    struct ml_controller *self = context;
    (void)generation;
    ml_workqueue_cancel_after(self->queue, key);
    ml_workqueue_forget(self->queue, key);
    ml_gate_clear(self->gate, key);
}

static void on_map_failed(void *context, struct ml_generation *generation, struct ml_str key,
                          const struct ml_err *err)
{
    struct ml_controller *self = context;
    (void)generation;
    ml_error(self->cluster->log, self->name, "map function failed", ML_STR_FIELD("object", key),
             ML_ERR(err));
    ml_metric_add(self->metrics.errors, 1);
}

static const struct ml_generation_handler generation_handler = {
    .ready = on_ready,
    .waiting = on_waiting,
    .enqueue = on_enqueue,
    .gone = on_gone,
    .map_failed = on_map_failed,
};

struct ml_controller *ml_controller_new(struct ml_cluster *cluster, const char *name,
                                        const struct ml_controller_handler *handler, void *context)
{
    struct ml_controller *self = ml_new(struct ml_controller);
    self->cluster = cluster;
    self->name = ml_strdup(name);
    self->handler = handler;
    self->context = context;
    const struct ml_workqueue_opts queue = {
        .loop = cluster->loop,
        .metrics = cluster->metrics,
        .name = self->name,
        .ready = pump,
        .context = self,
    };
    self->queue = ml_workqueue_new(&queue);
    self->gate = ml_gate_new(cluster->loop, cluster->metrics, self->name);
    ml_list_init(&self->works);
    ml_task_init(&self->stopped_task, on_stopped, self);
    ml_controller_metrics_init(&self->metrics, cluster->metrics, self->name);
    return self;
}

void ml_controller_free(struct ml_controller *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
    ml_list_each (node, &self->works) {
        struct work *work = ml_container_of(node, struct work, node);
        ml_reconcile_cancel(work->reconcile);
        work_end(work);
    }
    ml_generation_unref(self->offered);
    ml_generation_unref(self->current);
    ml_gate_free(self->gate);
    ml_workqueue_free(self->queue);
    free(self->name);
    free(self);
}

void ml_controller_offer(struct ml_controller *self, struct ml_script *script)
{
    ml_generation_unref(self->offered);
    self->offered = ml_generation_new(self->cluster, script, &generation_handler, self);
    ml_generation_start(self->offered);
}

void ml_controller_lead(struct ml_controller *self)
{
    if (!self->current || self->stopping)
        return;
    enqueue_all(self);
    pump(self);
}

void ml_controller_stop(struct ml_controller *self)
{
    self->stopping = true;
    ml_generation_unref(ml_take(&self->offered));
    if (self->current)
        ml_generation_retire(self->current);
    ml_workqueue_shut_down(self->queue);
    tell_when_stopped(self);
}

const char *ml_controller_name(const struct ml_controller *self)
{
    return self->name;
}

static struct ml_script *script_of(const struct ml_generation *generation)
{
    return generation ? ml_generation_script(generation) : NULL;
}

struct ml_script *ml_controller_current(const struct ml_controller *self)
{
    return script_of(self->current);
}

struct ml_script *ml_controller_offered(const struct ml_controller *self)
{
    return script_of(self->offered);
}

int64_t ml_controller_next(const struct ml_controller *self)
{
    return self->offered ? 0 : ml_workqueue_next(self->queue);
}
