#include "kube/object_diff.h"
#include "operator/controller_internal.h"
#include "operator/object_warning.h"

static void on_stopped(void *context)
{
    struct ml_controller *self = context;
    self->handler->stopped(self->context, self);
}

/* All there is, behind whatever somebody changes meanwhile. What is another replica's does not
 * wait in the queue: who gets it later begins with all there is. */
static void enqueue_all(struct ml_controller *self)
{
    if (self->cluster->standby)
        return;
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        if (controller_acts(self, ml_object_key(object)))
            ml_workqueue_add(self->queue, ml_object_key(object), ML_PRIORITY_LOW);
}

/* The swap. It happens in one step of the loop, so between any two reconciles. */
static void on_ready(void *context, struct ml_revision *revision)
{
    struct ml_controller *self = context;
    struct ml_revision *old = self->current;
    ml_assert(revision == self->offered);
    self->offered = NULL;
    self->current = revision;
    ml_revision_live(revision, self->expectations, &self->payer);
    ml_metric_set(self->metrics.workers_max,
                  (double)ml_revision_declaration(revision)->concurrency_max);
    if (old) {
        ml_revision_retire(old);
        ml_revision_unref(old);
    }
    ml_enqueue_filter_reset_backoff(self->filter);
    controller_circuit_close(self);
    enqueue_all(self);
    self->handler->live(self->context, self, old == NULL);
    controller_pump(self);
}

static void on_waiting(void *context, struct ml_revision *revision,
                       const struct ml_script_kind *kind, const struct ml_err *err)
{
    struct ml_controller *self = context;
    (void)revision;
    ml_warn(self->cluster->log, self->name,
            err->kind == ML_ENOT_FOUND ? "kind is not installed; waiting for it"
                                       : "kind cannot be looked up; trying again",
            ML_STR_FIELD("group", kind->gvk.group), ML_STR_FIELD("version", kind->gvk.version),
            ML_STR_FIELD("kind", kind->gvk.kind), ML_ERR(err));
}

/* By somebody, not by a controller that reports what it saw. */
static bool is_edit(const struct ml_change *change)
{
    const unsigned parts = ML_PART_SPEC | ML_PART_LABELS | ML_PART_ANNOTATIONS;
    return change->reconciled &&
           (!change->old || (ml_object_diff(change->old, change->new, NULL) & parts));
}

static void on_enqueue(void *context, struct ml_revision *revision, struct ml_str key,
                       const struct ml_change *change)
{
    struct ml_controller *self = context;
    (void)revision;
    if (!controller_acts(self, key))
        return;
    if (change->child_deleted)
        ml_stale_keys_child_deleted(&self->stale_keys, key);
    if (self->circuit.state == ML_CIRCUIT_OPEN && is_edit(change))
        controller_circuit_hurry(self);
    ml_enqueue_filter_changed(self->filter, key, change);
}

static void on_gone(void *context, struct ml_revision *revision, struct ml_str key)
{
    struct ml_controller *self = context;
    (void)revision;
    ml_workqueue_cancel_after(self->queue, key);
    ml_workqueue_forget(self->queue, key);
    ml_expectations_clear(self->expectations, key);
    ml_enqueue_filter_gone(self->filter, key);
    ml_stale_keys_drop(&self->stale_keys, key);
}

static void on_function_failed(void *context, struct ml_revision *revision,
                               const struct ml_kind *kind, struct ml_object *object,
                               const struct ml_err *err)
{
    struct ml_controller *self = context;
    ml_error(self->cluster->log, self->name, "watch or when function failed",
             ML_S("kind", kind->kind), ML_STR_FIELD("object", ml_object_key(object)), ML_ERR(err));
    ml_object_warning(self->cluster, kind, object, "WatchFailed", err->message);
    ml_metric_add(self->metrics.errors, 1);
    if (ml_script_limit_hit(ml_revision_script(revision)))
        controller_limit_hit(self, NULL, err);
}

static void on_concerns_all(void *context, struct ml_revision *revision)
{
    struct ml_controller *self = context;
    if (revision == self->current)
        enqueue_all(self);
}

static void on_mended(void *context, struct ml_revision *revision)
{
    struct ml_controller *self = context;
    if (revision == self->current)
        controller_pump(self);
}

static const struct ml_revision_handler revision_handler = {
    .ready = on_ready,
    .waiting = on_waiting,
    .enqueue = on_enqueue,
    .gone = on_gone,
    .concerns_all = on_concerns_all,
    .mended = on_mended,
    .function_failed = on_function_failed,
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
        .ready = controller_pump,
        .context = self,
    };
    self->queue = ml_workqueue_new(&queue);
    self->expectations = ml_expectations_new(cluster->loop, cluster->metrics, self->name);
    self->filter = ml_enqueue_filter_new(cluster->loop,
                                         ml_turns_metered(cluster->turns)
                                             ? &controller_enqueue_handler
                                             : &controller_enqueue_handler_of_virtual_time,
                                         self);
    ml_expectations_on_write(self->expectations, controller_on_write, self);
    ml_payer_init(&self->payer, cluster->turns, controller_pump, self);
    ml_list_init(&self->works);
    ml_task_init(&self->stopped_task, on_stopped, self);
    ml_controller_metrics_init(&self->metrics, cluster->metrics, self->name);
    self->payer.seconds = self->metrics.cpu;
    self->payer.throttled = self->metrics.throttled;
    controller_circuit_init(self);
    controller_shard_init(self);
    return self;
}

void ml_controller_free(struct ml_controller *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
    controller_circuit_fini(self);
    controller_shard_fini(self);
    controller_cancel_work(self);
    ml_revision_unref(self->offered);
    ml_revision_unref(self->current);
    ml_expectations_free(self->expectations);
    ml_enqueue_filter_free(self->filter);
    ml_stale_keys_fini(&self->stale_keys);
    ml_workqueue_free(self->queue);
    ml_payer_fini(&self->payer);
    free(self->name);
    free(self);
}

void ml_controller_offer(struct ml_controller *self, struct ml_script *script)
{
    ml_revision_unref(self->offered);
    self->offered = ml_revision_new(self->cluster, script, &revision_handler, self);
    ml_revision_start(self->offered);
}

void ml_controller_resync(struct ml_controller *self)
{
    if (!self->current || self->stopping)
        return;
    enqueue_all(self);
    controller_pump(self);
}

void ml_controller_reshard(struct ml_controller *self)
{
    if (!self->current || self->stopping)
        return;
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        struct ml_str key = ml_object_key(object);
        if (ml_shard_gained(self->cluster->shard, ml_str_of(self->name), key))
            ml_workqueue_add(self->queue, key, ML_PRIORITY_LOW);
    }
    controller_pump(self);
}

void ml_controller_stop(struct ml_controller *self)
{
    self->stopping = true;
    controller_circuit_fini(self);
    ml_revision_unref(ml_take(&self->offered));
    if (self->current)
        ml_revision_retire(self->current);
    ml_workqueue_shut_down(self->queue);
    controller_tell_when_stopped(self);
}

const char *ml_controller_name(const struct ml_controller *self)
{
    return self->name;
}

static struct ml_script *script_of(const struct ml_revision *revision)
{
    return revision ? ml_revision_script(revision) : NULL;
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

bool ml_controller_sees(const struct ml_controller *self, struct ml_buf *why)
{
    return ml_revision_sees(self->current, why);
}
