/* A controller's life: it is made, runs one version of its script after the other, answers
 * questions of its state, is removed or stops. Changes that a revision reports pass from here to
 * the enqueue filter. */
#include "operator/controller_internal.h"

#include "base/escape.h"
#include "kube/object_diff.h"

/* Reconciles that were under way may still add finalizers, and a replica that stands by waits for
 * the one that acts: so the cache is looked at again and again. */
#define REMOVAL_CHECK_NS (100 * ML_NS_PER_MS)

#define VAIN_FAILURES 13                /* in a row, after 5 ms, 10 ms, … 10 s: in all 20 s */
#define VAIN_PAUSE_NS (8 * ML_NS_PER_S) /* of the circuit: it was open for 15 s by then */

/* ---- metrics ---- */

static void collect_keys(void *context)
{
    struct ml_controller *self = context;
    size_t cursor = 0, owned = 0;
    ml_metric_set(self->metrics.keys, (double)ml_keys_len(&self->keys));
    if (!self->current || !self->metrics.keys_owned)
        return;
    const struct ml_store *store = ml_revision_store(self->current);
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        owned += controller_acts(self, ml_object_key(object));
    ml_metric_set(self->metrics.keys_owned, (double)owned);
}

static struct ml_metric *register_counter(struct ml_controller *self, const char *name,
                                          const char *help)
{
    return ml_metric_with(
        ml_metrics_counter(self->services->metrics, name, help, ml_metric_labels("controller")),
        ml_metric_labels(self->name));
}

static struct ml_metric *register_gauge(struct ml_controller *self, const char *name,
                                        const char *help)
{
    return ml_metric_with(
        ml_metrics_gauge(self->services->metrics, name, help, ml_metric_labels("controller")),
        ml_metric_labels(self->name));
}

static struct ml_metric *register_reconcile_time(struct ml_controller *self)
{
    static const double buckets[] = {
        .005, .01, .025, .05, .1,   .15, .2,   .25, .3,  .35, .4,  .45, .5,  .6,
        .7,   .8,  .9,   1,   1.25, 1.5, 1.75, 2,   2.5, 3,   3.5, 4,   4.5, 5,
        6,    7,   8,    9,   10,   15,  20,   25,  30,  40,  50,  60,
    };
    return ml_metric_with(
        ml_metrics_histogram(self->services->metrics, "controller_runtime_reconcile_time_seconds",
                             "Length of a reconcile, waiting for the API server included.",
                             ml_metric_labels("controller"), buckets, ML_COUNT(buckets)),
        ml_metric_labels(self->name));
}

static void register_metrics(struct ml_controller *self)
{
    struct controller_metrics *metrics = &self->metrics;
    struct ml_metric_family *total = ml_metrics_counter(
        self->services->metrics, "controller_runtime_reconcile_total",
        "Reconciles by controller and result.", ml_metric_labels("controller", "result"));
    metrics->success = ml_metric_with(total, ml_metric_labels(self->name, "success"));
    metrics->error = ml_metric_with(total, ml_metric_labels(self->name, "error"));
    metrics->requeue_after = ml_metric_with(total, ml_metric_labels(self->name, "requeue_after"));
    metrics->errors = register_counter(self, "controller_runtime_reconcile_errors_total",
                                       "Reconciles that failed.");
    metrics->terminal_errors = register_counter(
        self, "controller_runtime_terminal_reconcile_errors_total",
        "Reconciles that failed and are not tried again.");
    metrics->seconds = register_reconcile_time(self);
    metrics->active = register_gauge(self, "controller_runtime_active_workers",
                                     "Reconciles under way.");
    metrics->workers_max = register_gauge(self, "controller_runtime_max_concurrent_reconciles",
                                          "Reconciles that may be under way at once.");
    metrics->slowed = register_counter(
        self, "moonloop_self_triggers_slowed_total",
        "Reconciles put off because the script keeps waking itself.");
    metrics->skipped = register_counter(
        self, "moonloop_wakeups_skipped_total",
        "Changes that woke nobody: the last reconcile read nothing of it.");
    metrics->read_set_bytes = register_gauge(
        self, "moonloop_read_set_bytes", "Memory for what the last reconcile of each object read.");
    self->payer.seconds = register_counter(self, "moonloop_script_cpu_seconds_total",
                                           "CPU time that code of the script took.");
    metrics->circuit_open = register_gauge(
        self, "moonloop_controller_circuit_open",
        "1 while the script is held back since it runs into its limits.");
    self->payer.throttled = register_counter(
        self, "moonloop_script_throttled_total",
        "Times that the script had used more than its share of the CPU.");
    metrics->keys = register_gauge(self, "moonloop_keys",
                                   "Keys that the controller has a record of: queued, or with "
                                   "anything that it keeps for their next reconcile.");
    if (self->services->shard)
        metrics->keys_owned = register_gauge(self, "moonloop_shard_keys_owned",
                                             "Objects that this replica acts on, by controller.");
    self->collector = (struct ml_metrics_collector){.collect = collect_keys, .context = self};
    ml_metrics_on_collect(self->services->metrics, &self->collector);
}

/* ---- versions and changes ---- */

/* Enqueues all objects, behind edits, except those of other replicas: a replica that gets one later
 * enqueues it then. */
static void enqueue_all_objects(void *context)
{
    struct ml_controller *self = context;
    if (self->services->standby)
        return;
    const struct ml_store *store = ml_revision_store(self->current);
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        if (controller_acts(self, ml_object_key(object)))
            controller_enqueue_at_start(self, ml_object_key(object));
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
    ml_metric_set(self->metrics.workers_max, (double)revision->declaration->concurrency_max);
    if (old) {
        ml_revision_retire(old);
        ml_revision_unref(old);
    }
    ml_enqueue_filter_reset_backoff(self->filter);
    ml_keys_forget_all_failures(&self->keys);
    ml_repeats_clear(&self->index_failures);
    ml_read_sets_drop_all(self->read_sets);
    ml_custom_metrics_declare(self->custom, revision->declaration->metrics,
                              revision->declaration->metric_count);
    controller_report_reads_off(self);
    controller_circuit_close(self);
    enqueue_all_objects(self);
    self->handler->live(self->context, self, old == NULL);
    controller_pump(self);
}

/* By somebody, not by a controller that reports what it saw. */
static bool change_is_edit(const struct ml_change *change)
{
    const unsigned parts = ML_PART_SPEC | ML_PART_LABELS | ML_PART_ANNOTATIONS;
    return change->reconciled &&
           (!change->old || (ml_object_diff(change->old, change->new, NULL) & parts));
}

static void on_change_of_key(void *context, struct ml_str key, const struct ml_change *change)
{
    struct ml_controller *self = context;
    if (!controller_acts(self, key))
        return;
    if (self->circuit.state == ML_CIRCUIT_OPEN && change_is_edit(change))
        controller_hurry_probe(self);
    struct ml_verdict verdict = ml_enqueue_filter_changed(self->filter, key, change);
    controller_follow_verdict(self, key, &verdict);
}

/* A key's own write wakes it only as a change of an object that it owns or watches. */
static void on_named_change(void *context, size_t kind, const struct ml_change *change)
{
    struct ml_controller *self = context;
    struct ml_change related = *change;
    ML_AUTO(ml_buf_fini) struct ml_buf keys = ML_BUF_INIT;
    related.reconciled = related.child_deleted = false; /* it is the key's own in neither way */
    ml_read_sets_find_readers(self->read_sets, kind, ml_object_key(ml_change_object(change)),
                              &keys);
    for (size_t at = 0; at < keys.len;) {
        struct ml_str key = ml_str_of(keys.ptr + at);
        at += key.len + 1;
        if (!change->new || !ml_expectations_is_echo(self->expectations, key, change->informer,
                                                     ml_object_rv_number(change->new)))
            on_change_of_key(self, key, &related);
    }
}

static void on_object_gone(void *context, struct ml_str key)
{
    controller_forget_key(context, key);
}

static void on_function_failed(void *context, struct ml_revision *revision,
                               const struct ml_kind *kind, struct ml_object *object,
                               const struct ml_err *err)
{
    struct ml_controller *self = context;
    ml_error(self->services->log, self->name, "watch or when function failed",
             ML_OBJECT_FIELDS(self->name, ml_revision_kind(revision)->kind, ml_object_key(object)),
             ML_ERR_FIELDS(err), ML_REVISION_FIELDS(revision), ML_S("kind", kind->kind));
    ml_object_warning(self->services, self->name, kind, object, "WatchFailed", err->message);
    ml_metric_add(self->metrics.errors, 1);
    if (ml_script_limit_hit(revision->script))
        controller_limit_hit(self, NULL, err);
}

/* Many objects may fail in the same way, and all of them do when a revision is made ready. */
static void on_index_failed(void *context, struct ml_revision *revision, const struct ml_kind *kind,
                            struct ml_object *object, const struct ml_err *err)
{
    struct ml_controller *self = context;
    ML_AUTO_FREE char *id = ml_asprintf("index %s", err->message);
    struct ml_repeat *repeat = ml_repeats_get(&self->index_failures, ml_str_of(id));
    if (ml_script_limit_hit(revision->script) && revision == self->current)
        controller_limit_hit(self, NULL, err);
    ml_metric_add(self->metrics.errors, 1);
    if (!ml_repeat_failed(repeat, ml_str_of(err->message),
                          ml_clock_monotonic(self->services->clock)))
        return;
    ml_error(self->services->log, self->name,
             "function of an index failed; ctx.list does not find the object in it",
             ML_OBJECT_FIELDS(self->name, revision->declaration->kinds[0].gvk.kind.ptr,
                              ml_object_key(object)),
             ML_ERR_FIELDS(err), ML_REVISION_FIELDS(revision), ML_S("kind", kind->kind));
    ml_object_warning(self->services, self->name, kind, object, "IndexFailed", err->message);
}

static const struct ml_revision_handler revision_handler = {
    .ready = on_revision_ready,
    .enqueue = on_change_of_key,
    .named = on_named_change,
    .gone = on_object_gone,
    .concerns_all = enqueue_all_objects,
    .mended = controller_pump,
    .index_failed = on_index_failed,
    .function_failed = on_function_failed,
};

/* ---- removal ---- */

/* Each object that carries the finalizer, or only the first. Returns whether there is one. */
static bool find_carriers(struct ml_controller *self, bool enqueue)
{
    const struct ml_store *store = ml_revision_store(self->current);
    size_t cursor = 0;
    bool found = false;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        if (!ml_finalizer_carries(self->current, object))
            continue;
        found = true;
        if (!enqueue)
            return true;
        if (controller_acts(self, ml_object_key(object)))
            controller_enqueue_at_start(self, ml_object_key(object));
    }
    return found;
}

/* Once the running reconciles have ended and the cache shows their writes, no further object gets
 * our finalizer. */
static void check_removal(void *context)
{
    struct ml_controller *self = context;
    if (!self->current || self->in_flight > 0 || !ml_expectations_all_shown(self->expectations)) {
        ml_timer_start(&self->removal.check, REMOVAL_CHECK_NS);
        return;
    }
    bool found = find_carriers(self, !self->removal.swept);
    self->removal.swept = true;
    if (found) {
        ml_timer_start(&self->removal.check, REMOVAL_CHECK_NS);
        controller_pump(self);
        return;
    }
    self->handler->removed(self->context, self, self->removal.released);
}

void ml_controller_remove(struct ml_controller *self)
{
    if (self->removal.on || self->stopping)
        return;
    self->removal.on = true;
    ml_timer_start(&self->removal.check, 0);
}

bool ml_controller_is_removed(const struct ml_controller *self)
{
    return self->removal.on && !self->stopping;
}

size_t ml_controller_objects(const struct ml_controller *self, const char **out_kind)
{
    *out_kind = self->current ? ml_revision_kind(self->current)->kind : "";
    return self->current ? ml_store_len(ml_revision_store(self->current)) : 0;
}

/* ---- life ---- */

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

struct ml_controller *ml_controller_new(struct ml_services *services, const char *name,
                                        const struct ml_controller_handler *handler, void *context)
{
    struct ml_controller *self = ml_new(struct ml_controller);
    self->services = services;
    self->name = ml_strdup(name);
    self->handler = handler;
    self->context = context;
    const struct ml_workqueue_opts queue = {
        .loop = services->loop,
        .keys = &self->keys,
        .metrics = services->metrics,
        .name = self->name,
        .ready = controller_pump,
        .context = self,
    };
    self->queue = ml_workqueue_new(&queue);
    self->expectations = ml_expectations_new(&self->keys, services->loop, services->client,
                                             services->metrics, self->name);
    self->read_sets = ml_read_sets_new(&self->keys);
    controller_make_filter(self);
    self->await = (struct ml_client_await){.again = on_server_answers, .context = self};
    ml_payer_init(&self->payer, services->turns, controller_pump, self);
    ml_list_init(&self->works);
    ml_list_init(&self->lookups);
    ml_task_init(&self->stopped_task, report_stopped, self);
    ml_timer_init(&self->removal.check, services->loop, check_removal, self);
    register_metrics(self);
    self->custom = ml_custom_metrics_new(services, &self->keys, self->name);
    ml_timer_init(&self->probe, services->loop, controller_pump, self);
    return self;
}

void ml_controller_free(struct ml_controller *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
    ml_timer_stop(&self->removal.check);
    ml_timer_stop(&self->probe);
    ml_client_await_stop(&self->await);
    ml_metrics_collector_remove(&self->collector);
    controller_cancel_work(self);
    controller_cancel_lookups(self);
    ml_buf_fini(&self->author);
    ml_revision_unref(self->offered);
    ml_revision_unref(self->current);
    ml_enqueue_filter_free(self->filter);
    ml_expectations_free(self->expectations);
    ml_repeats_clear(&self->index_failures);
    free(self->failed_key);
    free(self->failed_why);
    ml_read_sets_free(self->read_sets);
    ml_custom_metrics_free(self->custom);
    ml_workqueue_free(self->queue);
    ml_keys_forget_all_failures(&self->keys);
    ml_keys_forget_all_causes(&self->keys);
    ml_keys_fini(&self->keys);
    ml_payer_drop_turns(&self->payer); /* of webhooks */
    ml_payer_fini(&self->payer);
    free(self->name);
    free(self);
}

void ml_controller_offer(struct ml_controller *self, struct ml_script *script)
{
    ml_revision_unref(self->offered);
    self->offered = ml_revision_new(self->services, script, ++self->offers, &revision_handler,
                                    self);
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
    const struct ml_store *store = ml_revision_store(self->current);
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        struct ml_str key = ml_object_key(object);
        if (ml_shard_gained(self->services->shard, ml_str_of(self->name), key))
            controller_enqueue_at_start(self, key);
    }
    controller_pump(self);
}

void ml_controller_stop(struct ml_controller *self)
{
    if (self->stopping)
        return;
    self->stopping = true;
    ml_timer_stop(&self->removal.check);
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

struct ml_script *ml_controller_current(const struct ml_controller *self)
{
    return self->current ? self->current->script : NULL;
}

struct ml_script *ml_controller_offered(const struct ml_controller *self)
{
    return self->offered ? self->offered->script : NULL;
}

bool ml_controller_webhook(struct ml_controller *self, struct ml_webhook_target *out)
{
    const struct ml_revision *revision = self->current ? self->current : self->offered;
    if (!revision)
        return false;
    *out = (struct ml_webhook_target){revision->script, revision->kinds[0], &self->payer};
    return true;
}

int64_t ml_controller_next(const struct ml_controller *self)
{
    if (self->offered)
        return 0;
    if (self->circuit.state == ML_CIRCUIT_OPEN && self->circuit.pause_ns > VAIN_PAUSE_NS)
        return INT64_MAX;
    return ml_workqueue_next(self->queue, VAIN_FAILURES);
}

bool ml_controller_fails(const struct ml_controller *self, struct ml_buf *why)
{
    struct ml_str last = ml_str_of(self->failed_key);
    struct ml_workqueue_failing failing = ml_workqueue_failing(self->queue, last);
    if (failing.count == 0 || !self->current)
        return false;
    ML_AUTO_FREE char *more = failing.count > 1 ? ml_asprintf(" (and %zu more)", failing.count - 1)
                                                : ml_strdup("");
    bool is_last = ml_str_eq(failing.key, last);
    ml_append_line(why, "%s: %s " ML_STR_FMT " failed %u times in a row%s%s%s",
                   self->current->declaration->file, ml_revision_kind(self->current)->kind,
                   ML_STR_ARG(failing.key), failing.failures, more, is_last ? ": " : "",
                   is_last ? self->failed_why : "");
    return true;
}

bool ml_controller_stays_synced(const struct ml_controller *self, struct ml_buf *why)
{
    return ml_revision_stays_synced(self->current, why);
}

bool ml_controller_misses_kind(const struct ml_controller *self)
{
    const struct ml_revision *revision = self->current ? self->current : self->offered;
    return revision && ml_revision_misses_kind(revision);
}

bool ml_controller_is_synced(const struct ml_controller *self, struct ml_buf *why)
{
    return !self->offered || ml_revision_is_synced(self->offered, why);
}
