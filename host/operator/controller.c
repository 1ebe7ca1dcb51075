/* A controller's life, the versions of its script, its circuit, and its share of the keys.
 * scripts.c makes it; revision.c tells it of changes, which pass from here to enqueue_filter.c. */
#include "operator/controller_internal.h"

#include "kube/object_diff.h"

bool controller_acts(const struct ml_controller *self, struct ml_str key)
{
    const struct ml_cluster *cluster = self->cluster;
    if (cluster->standby)
        return false;
    return !cluster->shard || ml_shard_acts(cluster->shard, ml_str_of(self->name), key);
}

static void collect_keys_owned(void *context)
{
    struct ml_controller *self = context;
    size_t cursor = 0, owned = 0;
    if (!self->current)
        return;
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        owned += controller_acts(self, ml_object_key(object));
    ml_metric_set(self->keys_owned, (double)owned);
}

static void register_keys_owned(struct ml_controller *self)
{
    struct ml_metrics *metrics = self->cluster->metrics;
    if (!self->cluster->shard)
        return;
    self->keys_owned = ml_metric_with(
        ml_metrics_gauge(metrics, "moonloop_shard_keys_owned",
                         "Objects that this replica acts on, by controller.",
                         ml_metric_labels("controller")),
        ml_metric_labels(self->name));
    self->owned_collector = (struct ml_metrics_collector){.collect = collect_keys_owned,
                                                          .context = self};
    ml_metrics_on_collect(metrics, &self->owned_collector);
}

static int64_t controller_now(const struct ml_controller *self)
{
    return ml_clock_monotonic(self->cluster->clock);
}

static void notify_circuit(struct ml_controller *self, bool open, const char *note)
{
    ml_metric_set(self->metrics.circuit_open, open);
    if (self->handler->circuit)
        self->handler->circuit(self->context, self, open, note);
}

static void report_circuit_opened(struct ml_controller *self, struct ml_object *object,
                                  const struct ml_err *err)
{
    ML_AUTO_FREE char *note = ml_asprintf(
        "%d times in a row a limit ended the script of controller %s; one object at a "
        "time tries it, with pauses, until it works or is changed: %s",
        ML_CIRCUIT_HITS_MAX, self->name, err->message);
    ml_error(self->cluster->log, self->name,
             "script runs into its limits again and again; its circuit is open",
             ML_S("controller", self->name),
             ML_S("controllerKind", ml_revision_kind(self->current)->kind), ML_ERR(err),
             ML_S("errorKind", ml_err_name(err->kind)),
             ML_S("script", ml_revision_declaration(self->current)->file),
             ML_I("revision", ml_revision_number(self->current)),
             ML_F("pause_seconds", (double)self->circuit.pause_ns / (double)ML_NS_PER_S));
    if (object)
        ml_object_warning(self->cluster, ml_revision_kind(self->current), object, "CircuitOpen",
                          note);
    notify_circuit(self, true, note);
}

static void report_circuit_closed(struct ml_controller *self)
{
    ML_AUTO_FREE char *note = ml_asprintf("controller %s works within its limits again",
                                          self->name);
    ml_info(self->cluster->log, self->name,
            "script works within its limits again; its circuit is closed",
            ML_S("controller", self->name),
            ML_S("controllerKind", ml_revision_kind(self->current)->kind),
            ML_S("script", ml_revision_declaration(self->current)->file),
            ML_I("revision", ml_revision_number(self->current)));
    notify_circuit(self, false, note);
}

/* No timer while a probe is under way: its end decides. */
static void start_probe_timer(struct ml_controller *self)
{
    int64_t wait_ns = ml_circuit_wait(&self->circuit, controller_now(self));
    if (wait_ns > 0 && wait_ns < INT64_MAX)
        ml_timer_start(&self->probe, wait_ns);
}

void controller_limit_hit(struct ml_controller *self, struct ml_object *object,
                          const struct ml_err *err)
{
    if (ml_circuit_hit(&self->circuit, controller_now(self)))
        report_circuit_opened(self, object, err);
    start_probe_timer(self);
}

static void hurry_probe(struct ml_controller *self)
{
    if (self->circuit.state != ML_CIRCUIT_OPEN)
        return;
    ml_circuit_hurry(&self->circuit);
    start_probe_timer(self);
}

void controller_circuit_close(struct ml_controller *self)
{
    ml_timer_stop(&self->probe);
    if (ml_circuit_success(&self->circuit))
        report_circuit_closed(self);
}

static void enqueue_at_start(struct ml_controller *self, struct ml_str key)
{
    controller_note_cause(self, key, "start", ML_STR(""));
    ml_workqueue_add(self->queue, key, ML_PRIORITY_LOW);
}

/* All there is, behind whatever somebody changes meanwhile. What is another replica's does not
 * wait in the queue: who gets it later begins with all there is. */
static void enqueue_all_objects(struct ml_controller *self)
{
    if (self->cluster->standby)
        return;
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        if (controller_acts(self, ml_object_key(object)))
            enqueue_at_start(self, ml_object_key(object));
}

/* The swap. It happens in one step of the loop, so between any two reconciles. */
static void on_revision_ready(void *context, struct ml_revision *revision)
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
    ml_repeats_clear(&self->failures);
    ml_read_sets_drop_all(self->read_sets);
    controller_report_reads_off(self);
    controller_circuit_close(self);
    enqueue_all_objects(self);
    self->handler->live(self->context, self, old == NULL);
    controller_pump(self);
}

static void on_revision_waiting(void *context, struct ml_revision *revision,
                                const struct ml_script_kind *kind, const struct ml_err *err,
                                const struct ml_repeat *repeat)
{
    struct ml_controller *self = context;
    ml_warn(self->cluster->log, self->name,
            err->kind == ML_ENOT_FOUND ? "kind is not installed; waiting for it"
                                       : "kind cannot be looked up; trying again",
            ML_S("controller", self->name), ML_ERR(err), ML_S("errorKind", ml_err_name(err->kind)),
            ML_S("script", ml_revision_declaration(revision)->file),
            ML_I("revision", ml_revision_number(revision)), ML_STR_FIELD("group", kind->gvk.group),
            ML_STR_FIELD("version", kind->gvk.version), ML_STR_FIELD("kind", kind->gvk.kind),
            ML_REPEAT_FIELDS(repeat, ML_REVISION_RETRY_NS));
}

/* By somebody, not by a controller that reports what it saw. */
static bool change_is_edit(const struct ml_change *change)
{
    const unsigned parts = ML_PART_SPEC | ML_PART_LABELS | ML_PART_ANNOTATIONS;
    return change->reconciled &&
           (!change->old || (ml_object_diff(change->old, change->new, NULL) & parts));
}

static void on_change_of_key(void *context, struct ml_revision *revision, struct ml_str key,
                             const struct ml_change *change)
{
    struct ml_controller *self = context;
    (void)revision;
    if (!controller_acts(self, key))
        return;
    if (self->circuit.state == ML_CIRCUIT_OPEN && change_is_edit(change))
        hurry_probe(self);
    ml_enqueue_filter_changed(self->filter, key, change);
}

static void on_object_gone(void *context, struct ml_revision *revision, struct ml_str key)
{
    struct ml_controller *self = context;
    (void)revision;
    ml_workqueue_cancel_after(self->queue, key);
    ml_workqueue_forget(self->queue, key);
    ml_expectations_clear(self->expectations, key);
    ml_enqueue_filter_gone(self->filter, key);
    ml_repeats_over(&self->failures, key);
    ml_read_sets_drop(self->read_sets, key);
    free(controller_take_cause(self, key));
}

static void on_function_failed(void *context, struct ml_revision *revision,
                               const struct ml_kind *kind, struct ml_object *object,
                               const struct ml_err *err)
{
    struct ml_controller *self = context;
    ml_error(self->cluster->log, self->name, "watch or when function failed",
             ML_OBJECT_FIELDS(self->name, ml_revision_kind(revision)->kind, ml_object_key(object)),
             ML_ERR(err), ML_S("errorKind", ml_err_name(err->kind)),
             ML_S("script", ml_revision_declaration(revision)->file),
             ML_I("revision", ml_revision_number(revision)), ML_S("kind", kind->kind));
    ml_object_warning(self->cluster, kind, object, "WatchFailed", err->message);
    ml_metric_add(self->metrics.errors, 1);
    if (ml_script_limit_hit(ml_revision_script(revision)))
        controller_limit_hit(self, NULL, err);
}

static void on_all_concerned(void *context, struct ml_revision *revision)
{
    struct ml_controller *self = context;
    if (revision == self->current)
        enqueue_all_objects(self);
}

static void on_watch_mended(void *context, struct ml_revision *revision)
{
    struct ml_controller *self = context;
    if (revision == self->current)
        controller_pump(self);
}

static const struct ml_revision_handler revision_handler = {
    .ready = on_revision_ready,
    .waiting = on_revision_waiting,
    .enqueue = on_change_of_key,
    .gone = on_object_gone,
    .concerns_all = on_all_concerned,
    .mended = on_watch_mended,
    .function_failed = on_function_failed,
};

static void on_server_answers(void *context, bool answered)
{
    struct ml_controller *self = context;
    (void)answered; /* it does not probe */
    ml_workqueue_server_answers(self->queue);
}

static void report_stopped(void *context)
{
    struct ml_controller *self = context;
    self->handler->stopped(self->context, self);
}

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
    self->expectations = ml_expectations_new(cluster->loop, cluster->client, cluster->metrics,
                                             self->name);
    self->read_sets = ml_read_sets_new();
    controller_make_filter(self);
    self->await = (struct ml_client_await){.again = on_server_answers, .context = self};
    ml_payer_init(&self->payer, cluster->turns, controller_pump, self);
    ml_list_init(&self->works);
    ml_task_init(&self->stopped_task, report_stopped, self);
    ml_controller_metrics_init(&self->metrics, cluster->metrics, self->name);
    self->payer.seconds = self->metrics.cpu;
    self->payer.throttled = self->metrics.throttled;
    ml_timer_init(&self->probe, cluster->loop, controller_pump, self);
    register_keys_owned(self);
    return self;
}

void ml_controller_free(struct ml_controller *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
    ml_timer_stop(&self->probe);
    ml_client_await_stop(&self->await);
    if (self->keys_owned)
        ml_metrics_collector_remove(&self->owned_collector);
    controller_cancel_work(self);
    ml_revision_unref(self->offered);
    ml_revision_unref(self->current);
    ml_enqueue_filter_free(self->filter);
    ml_expectations_free(self->expectations);
    ml_repeats_clear(&self->failures);
    ml_read_sets_free(self->read_sets);
    controller_drop_causes(self);
    ml_workqueue_free(self->queue);
    ml_payer_fini(&self->payer);
    free(self->name);
    free(self);
}

void ml_controller_offer(struct ml_controller *self, struct ml_script *script)
{
    ml_revision_unref(self->offered);
    self->offered = ml_revision_new(self->cluster, script, ++self->offers, &revision_handler, self);
    ml_revision_start(self->offered);
}

void ml_controller_resync(struct ml_controller *self)
{
    if (!self->current || self->stopping)
        return;
    enqueue_all_objects(self);
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
            enqueue_at_start(self, key);
    }
    controller_pump(self);
}

void ml_controller_stop(struct ml_controller *self)
{
    self->stopping = true;
    ml_timer_stop(&self->probe);
    ml_revision_unref(ml_take(&self->offered));
    if (self->current)
        ml_revision_retire(self->current);
    ml_workqueue_shut_down(self->queue);
    controller_end_when_idle(self);
}

const char *ml_controller_name(const struct ml_controller *self)
{
    return self->name;
}

static struct ml_script *script_of_revision(const struct ml_revision *revision)
{
    return revision ? ml_revision_script(revision) : NULL;
}

struct ml_script *ml_controller_current(const struct ml_controller *self)
{
    return script_of_revision(self->current);
}

struct ml_script *ml_controller_offered(const struct ml_controller *self)
{
    return script_of_revision(self->offered);
}

int64_t ml_controller_next(const struct ml_controller *self)
{
    return self->offered ? 0 : ml_workqueue_next(self->queue);
}

bool ml_controller_sees(const struct ml_controller *self, struct ml_buf *why)
{
    return ml_revision_sees(self->current, why);
}
