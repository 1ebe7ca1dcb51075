/* The keys under way: who may begin, and what becomes of a key that has ended. */
#include "operator/controller_internal.h"
#include "operator/live_read.h"

/* Keys of low priority under way at once, so that an edit finds the loop, the client and the server
 * free: while 5,000 objects of a start are worked off it waits 1, 6 and 26 ms beside 2, 8 and 32 of
 * them (bench/scenarios/overtake.sh, medians of one quiet run each). */
#define LOW_IN_FLIGHT_MAX 8

/* One key under way. */
struct work {
    struct ml_controller *controller;
    struct ml_str key; /* the queue's, until done */
    enum ml_priority priority;
    struct ml_live_read *live_read; /* before it, for a key in doubt */
    struct ml_reconcile *reconcile; /* NULL: not yet */
    int64_t started_ns;
    bool probes; /* whether the script stays within its limits again */
    struct ml_list node;
};

/* What the cache shows of it is not what the server has. */
static void doubt(struct ml_controller *self, struct ml_str key)
{
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    const struct ml_object *object = ml_store_get(store, key);
    if (object)
        ml_stale_keys_add(&self->stale_keys, object);
}

static void add_after(const struct work *work, enum ml_priority priority, int64_t delay_ns)
{
    struct ml_controller *self = work->controller;
    ml_workqueue_add_after(self->queue, work->key, priority,
                           ml_enqueue_filter_restrain(self->filter, work->key, delay_ns));
}

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
        if (end->err.kind == ML_ECONFLICT)
            doubt(self, key);
        ml_workqueue_add_rate_limited_by(self->queue, key, work->priority, self->circuit.hits);
        return;
    case ML_OUTCOME_TERMINAL:
    case ML_OUTCOME_INVALID:
        return;
    case ML_OUTCOME_OK:
        ml_stale_keys_reconciled(&self->stale_keys, key);
        ml_workqueue_forget(self->queue, key);
        if (end->requeue_after_ns >= 0)
            add_after(work, work->priority, end->requeue_after_ns);
        if (end->requeue_at_ns >= 0)
            add_after(work, ML_PRIORITY_NORMAL,
                      ml_ns_between(ml_clock_wall(self->cluster->clock), end->requeue_at_ns));
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
    if (work->probes)
        ml_circuit_abandon(&self->circuit);
    free(work);
}

void controller_tell_when_stopped(struct ml_controller *self)
{
    if (self->stopping && self->in_flight == 0)
        ml_task_defer(&self->stopped_task, self->cluster->loop);
}

static void judge_limits(struct work *work, const struct ml_reconcile_end *end)
{
    struct ml_controller *self = work->controller;
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    if (end->limit)
        controller_limit_hit(self, ml_store_get(store, work->key), &end->err);
    else if (end->outcome != ML_OUTCOME_ERROR)
        controller_circuit_close(self);
}

static void on_reconciled(void *context, const struct ml_reconcile_end *end)
{
    struct work *work = context;
    struct ml_controller *self = work->controller;
    int64_t took_ns = ml_clock_monotonic(self->cluster->clock) - work->started_ns;
    ml_controller_metrics_count(&self->metrics, end, took_ns);
    judge_limits(work, end);
    requeue(work, end);
    ml_enqueue_filter_ended(self->filter, work->key);
    work_end(work);
    controller_tell_when_stopped(self);
    if (self->cluster->shard)
        ml_shard_settled(self->cluster->shard);
    controller_pump(self);
}

static void on_expectations_satisfied(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    if (controller_acts(self, key))
        ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
}

/* The object of a key; NULL for one that is gone, or going: what it owns goes with it, and nothing
 * new must appear under it. NULL as well for what is another replica's by now. */
static struct ml_object *object_of(struct ml_controller *self, struct ml_str key)
{
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    struct ml_object *object = ml_store_get(store, key);
    if (object && !ml_object_deleting(object) && controller_acts(self, key))
        return object;
    if (!object)
        ml_stale_keys_drop(&self->stale_keys, key); /* its last child goes after it */
    ml_workqueue_forget(self->queue, key);
    return NULL;
}

static void reconcile(struct work *work, struct ml_object *object)
{
    struct ml_controller *self = work->controller;
    ml_enqueue_filter_begun(self->filter, work->key);
    work->reconcile = ml_reconcile_start(self->cluster, self->name, self->current,
                                         self->expectations, &self->payer, object, on_reconciled,
                                         work);
}

static void on_live_read(void *context, const struct ml_err *err)
{
    struct work *work = context;
    struct ml_controller *self = work->controller;
    struct ml_object *object = err ? NULL : object_of(self, work->key);
    work->live_read = NULL;
    if (object) {
        ml_stale_keys_checked(&self->stale_keys, work->key);
        reconcile(work, object);
        return;
    }
    if (err) {
        ml_debug(self->cluster->log, self->name, "the cache is behind; trying again",
                 ML_STR_FIELD("object", work->key), ML_ERR(err));
        ml_workqueue_add_rate_limited(self->queue, work->key, work->priority);
    }
    work_end(work);
    controller_tell_when_stopped(self);
    controller_pump(self);
}

static void begin(struct ml_controller *self, struct ml_str key, enum ml_priority priority)
{
    struct ml_object *object = object_of(self, key);
    if (!object ||
        !ml_expectations_satisfied(self->expectations, key, on_expectations_satisfied, self)) {
        ml_workqueue_done(self->queue, key);
        return;
    }
    struct work *work = ml_new(struct work);
    work->controller = self;
    work->key = key;
    work->priority = priority;
    work->started_ns = ml_clock_monotonic(self->cluster->clock);
    work->probes = ml_circuit_begin(&self->circuit);
    ml_list_push(&self->works, &work->node);
    self->in_flight++;
    self->low_in_flight += priority == ML_PRIORITY_LOW;
    ml_metric_set(self->metrics.active, (double)self->in_flight);
    if (ml_stale_keys_has(&self->stale_keys, object))
        work->live_read = ml_live_read_start(self->cluster->client, ml_revision_kind(self->current),
                                             object, on_live_read, work);
    else
        reconcile(work, object);
}

/* Is there room for one more, and down to which priority? Nothing begins while the reconciled kind
 * cannot be watched: what is made for an owner that is long gone is collected at once, and that
 * would bring the owner up again. Nor while another turn of this controller waits, or it has used
 * more than its share of the CPU: what is changed until then goes first. */
static bool has_room(const struct ml_controller *self, enum ml_priority *out_least)
{
    bool all = self->low_in_flight < LOW_IN_FLIGHT_MAX;
    *out_least = all ? ML_PRIORITY_LOW : ML_PRIORITY_NORMAL;
    return self->current && !self->stopping && !self->cluster->standby &&
           ml_payer_idle(&self->payer) && controller_circuit_lets_begin(self) &&
           !ml_informer_is_degraded(ml_revision_informer(self->current)) &&
           self->in_flight < ml_revision_declaration(self->current)->concurrency_max;
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
        ml_live_read_cancel(work->live_read);
        if (work->reconcile)
            ml_reconcile_cancel(work->reconcile);
        work_end(work);
    }
}

static void cut_work(struct work *work)
{
    struct ml_controller *self = work->controller;
    ml_live_read_cancel(work->live_read);
    if (work->reconcile) {
        ml_warn(self->cluster->log, self->name,
                "another replica gets this object; ended between two writes",
                ML_STR_FIELD("object", work->key));
        ml_reconcile_cancel(work->reconcile);
        ml_enqueue_filter_ended(self->filter, work->key);
    }
    work_end(work);
}

bool ml_controller_hand_over(struct ml_controller *self, bool cut)
{
    bool idle = true;
    ml_list_each (node, &self->works) {
        struct work *work = ml_container_of(node, struct work, node);
        if (controller_acts(self, work->key))
            continue;
        if (!work->reconcile || (cut && !ml_reconcile_writes(work->reconcile)))
            cut_work(work);
        else
            idle = false;
    }
    controller_tell_when_stopped(self);
    return idle;
}
