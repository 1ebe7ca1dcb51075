/* A controller: makes keys of the changes that a revision of its script reports, and reconciles
 * them. It decides which keys are this replica's, which may begin, which function is called for
 * their object, and about a key that has ended; a circuit holds back a script that runs into its
 * limits again and again, and keys are slowed that fight. The controller runs one revision after
 * the other, the next one first on trial, and in the end it is removed or stops. */
#include "operator/controller_internal.h"

#include "base/escape.h"
#include "kube/object_diff.h"
#include "operator/status.h"
#include "state/journal.h"
#include "state/shard_group.h"

#include <stdio.h>

/* Reconciles that were under way may still add finalizers, and a replica that stands by waits for
 * the one that acts: so the cache is looked at again and again. */
#define REMOVAL_CHECK_NS (100 * ML_NS_PER_MS)

/* Of a key in a row, under a revision on trial: it will not be good soon. */
#define TRIAL_FAILURES 5
#define TRIAL_CHECK_NS (100 * ML_NS_PER_MS)

#define VAIN_FAILURES 13                /* in a row, after 5 ms, 10 ms, … 10 s: in all 20 s */
#define VAIN_PAUSE_NS (8 * ML_NS_PER_S) /* of the circuit: it was open for 15 s by then */

/* Log fields of a line about the controller, or about this key. */
#define CONTROLLER_FIELDS(self)                                                                    \
    ML_S("controller", (self)->name),                                                              \
        ML_S("controllerKind", ml_revision_kind((self)->current)->kind)
#define CONTROLLER_KEY_FIELDS(self, key)                                                           \
    ML_OBJECT_FIELDS((self)->name, ml_revision_kind((self)->current)->kind, key)

/* ---- keys ---- */

/* The cached object of a key; NULL when there is none. */
static struct ml_object *controller_object(const struct ml_controller *self, struct ml_str key)
{
    return ml_store_get(ml_revision_store(self->current), key);
}

/* Is the key for this replica to reconcile, now? */
static bool controller_acts(const struct ml_controller *self, struct ml_str key)
{
    const struct ml_services *services = self->services;
    if (services->standby)
        return false;
    return !services->shard || ml_shard_acts(services->shard, ml_str_of(self->name), key);
}

/* Where the key stands in the steps of a canary: the same on all replicas, and after a restart. */
static uint64_t place_of(const struct ml_controller *self, struct ml_str key)
{
    return rendezvous_key(ml_str_of(self->name), key);
}

struct ml_revision *ml_controller_revision_of(const struct ml_controller *self, struct ml_str key)
{
    bool is_canary = self->trial.revision && self->trial.revision == self->offered;
    return is_canary && place_of(self, key) <= self->trial.reach ? self->offered : self->current;
}

/* Sets the cause of the key's next reconcile, as in struct ml_cause, which is due after `delay_ns`.
 * The last call counts. */
static void controller_note_delayed(struct ml_controller *self, struct ml_str key, const char *what,
                                    int64_t delay_ns)
{
    int64_t now_ns = ml_clock_monotonic(self->services->clock);
    ml_keys_set_cause(&self->keys, key, (struct ml_cause){what, NULL, now_ns + delay_ns});
}

static void controller_note_cause(struct ml_controller *self, struct ml_str key, const char *what,
                                  struct ml_str object)
{
    int64_t now_ns = ml_clock_monotonic(self->services->clock);
    char *copy = object.len > 0 ? ml_str_dup(object) : NULL;
    ml_keys_set_cause(&self->keys, key, (struct ml_cause){what, copy, now_ns});
}

/* Enqueues it at low priority, behind edits. */
static void controller_enqueue_at_start(struct ml_controller *self, struct ml_str key)
{
    controller_note_cause(self, key, "start", ML_STR(""));
    ml_workqueue_add(self->queue, key, ML_PRIORITY_LOW);
}

/* ---- metrics ---- */

static void collect_keys(void *context)
{
    struct ml_controller *self = context;
    size_t cursor = 0, owned = 0, paused = 0;
    ml_metric_set(self->metrics.keys, (double)ml_keys_len(&self->keys));
    ml_metric_set(self->metrics.trial_objects,
                  self->trial.revision ? (double)self->trial.brake.tried : 0);
    if (!self->current)
        return;
    const struct ml_store *store = ml_revision_store(self->current);
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        owned += controller_acts(self, ml_object_key(object));
        paused += ml_object_paused(object);
    }
    ml_metric_set(self->metrics.objects_paused, (double)paused);
    if (self->metrics.keys_owned)
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
    self->cpu_account.seconds = register_counter(self, "moonloop_script_cpu_seconds_total",
                                                 "CPU time that code of the script took.");
    metrics->circuit_open = register_gauge(
        self, "moonloop_controller_circuit_open",
        "1 while the script is held back since it runs into its limits.");
    self->cpu_account.throttled = register_counter(
        self, "moonloop_script_throttled_total",
        "Times that the script had used more than its share of the CPU.");
    metrics->keys = register_gauge(self, "moonloop_keys",
                                   "Keys that the controller has a record of: queued, or with "
                                   "anything that it keeps for their next reconcile.");
    metrics->paused = register_gauge(
        self, "moonloop_controller_paused",
        "1 while the controller reconciles nothing because somebody paused it.");
    metrics->objects_paused = register_gauge(
        self, "moonloop_objects_paused",
        "Objects that are not reconciled because somebody paused them.");
    metrics->trial_objects = register_gauge(
        self, "moonloop_controller_trial_objects",
        "Objects that a new version works for while it may still be taken back; 0: there is none.");
    if (self->services->shard)
        metrics->keys_owned = register_gauge(self, "moonloop_shard_keys_owned",
                                             "Objects that this replica acts on, by controller.");
    self->collector = (struct ml_metrics_collector){.collect = collect_keys, .context = self};
    ml_metrics_on_collect(self->services->metrics, &self->collector);
}

/* ---- keys that are slowed (enqueue_filter.h) ---- */

static const struct ml_object *object_of_slowed(void *context, struct ml_str key,
                                                const struct ml_revision **out_revision)
{
    const struct ml_controller *self = context;
    *out_revision = ml_controller_revision_of(self, key);
    return self->current ? controller_object(self, key) : NULL;
}

static void controller_brake(struct ml_controller *self, const struct ml_err *why);
static struct ml_key_trial *controller_part(const struct ml_controller *self, struct ml_str key);

/* An edit that begins a fight is taken back. `slowed` NULL: the key asks to be called again at
 * once.
 */
static void stop_trial_of_slowed(struct ml_controller *self, struct ml_str key,
                                 const struct ml_slowed *slowed)
{
    const struct ml_key_trial *part = controller_part(self, key);
    struct ml_err err = ML_ERR_INIT;
    if (!part || part->slowed_before ||
        ml_controller_revision_of(self, key) != self->trial.revision)
        return;
    ML_AUTO_FREE char *fields = slowed ? ml_fights_describe(self->fights, key, slowed)
                                       : ml_strdup("each run asks to be called again at once");
    ML_AUTO_FREE char *why = ml_asprintf(ML_STR_FMT " changes again and again: %s", ML_STR_ARG(key),
                                         fields);
    ml_brake_stop(&self->trial.brake, why, &err);
    controller_brake(self, &err);
}

static void controller_key_slowed(struct ml_controller *self, struct ml_str key,
                                  const struct ml_slowed *slowed)
{
    ml_metric_add(self->metrics.slowed, 1);
    ml_fights_tell(self->fights, key, slowed);
    stop_trial_of_slowed(self, key, slowed);
}

static void controller_key_hot(struct ml_controller *self, struct ml_str key)
{
    ml_metric_add(self->metrics.slowed, 1);
    ml_fights_tell_hot(self->fights, key);
    stop_trial_of_slowed(self, key, NULL);
}

/* ---- verdicts of the enqueue filter ---- */

/* "Pod default/x: status.phase". */
static void note_change_as_cause(struct ml_controller *self, struct ml_str key,
                                 const struct ml_change *change, struct ml_str object_key)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT, field = ML_BUF_INIT;
    ml_read_sets_take_field(self->read_sets, &field);
    ml_buf_append_str(&text, object_key);
    if (field.len > 0)
        ml_buf_printf(&text, ": " ML_STR_FMT, ML_STR_ARG(ml_buf_str(&field)));
    controller_note_cause(self, key, ml_informer_kind(change->informer)->kind, ml_buf_str(&text));
}

/* Does as the filter decided: enqueues the key, reports that it is slowed. Frees the verdict. */
static void controller_follow_verdict(struct ml_controller *self, struct ml_str key,
                                      struct ml_verdict *verdict)
{
    ml_metric_add(self->metrics.skipped, verdict->skipped);
    if (verdict->slowed.change)
        controller_key_slowed(self, key, &verdict->slowed);
    if (verdict->wakes && verdict->cause)
        note_change_as_cause(self, key, verdict->cause,
                             ml_object_key(ml_change_object(verdict->cause)));
    else if (verdict->wakes)
        controller_note_cause(self, key, "changes", ML_STR(""));
    if (verdict->wakes)
        ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
    ml_verdict_fini(verdict);
}

static void controller_leave_trial(struct ml_controller *self, struct ml_str key)
{
    const struct ml_key_trial *part = controller_part(self, key);
    if (part && part->fails)
        self->trial.brake.fails--;
    ml_keys_forget_trial(&self->keys, key);
}

/* Everything about the key goes but expectations. */
static void controller_drop_key(struct ml_controller *self, struct ml_str key)
{
    controller_leave_trial(self, key);
    ml_workqueue_remove(self->queue, key);
    ml_enqueue_filter_gone(self->filter, key);
    ml_read_sets_drop(self->read_sets, key);
    ml_custom_metrics_gone(self->custom, key);
    ml_keys_forget_failures(&self->keys, key);
    ml_keys_forget_cause(&self->keys, key);
    ml_fights_forget(self->fights, key);
}

/* Another replica reconciles the key from now on. Everything about it goes, except writes that the
 * cache does not show yet: if the key comes back, its next run still waits for them. */
static void controller_release_key(struct ml_controller *self, struct ml_str key)
{
    ml_expectations_clear(self->expectations, key, true);
    controller_drop_key(self, key);
}

/* The object of the key is gone: everything about the key goes, and so does its record; a run under
 * way keeps what it needs until its end. */
static void controller_forget_key(struct ml_controller *self, struct ml_str key)
{
    ml_expectations_clear(self->expectations, key, false);
    controller_drop_key(self, key);
}

/* ---- the circuit ---- */

static void notify_circuit(struct ml_controller *self, bool open, const char *note)
{
    ml_metric_set(self->metrics.circuit_open, open);
    self->handler->circuit(self->context, self, open, note);
}

static void report_circuit_opened(struct ml_controller *self, struct ml_object *object,
                                  const struct ml_err *err)
{
    ML_AUTO_FREE char *note = ml_asprintf(
        "%d times in a row a limit ended the script of controller %s; one object at a "
        "time tries it, with pauses, until it works or is changed: %s",
        ML_CIRCUIT_HITS_MAX, self->name, err->message);
    ml_error(self->services->log, self->name,
             "script runs into its limits again and again; its circuit is open",
             CONTROLLER_FIELDS(self), ML_ERR_FIELDS(err), ML_REVISION_FIELDS(self->current),
             ML_F("pause_seconds", (double)self->circuit.pause_ns / (double)ML_NS_PER_S));
    if (object)
        ml_object_warning(self->services, self->name, ml_revision_kind(self->current), object,
                          "CircuitOpen", note);
    notify_circuit(self, true, note);
}

static void report_circuit_closed(struct ml_controller *self)
{
    ML_AUTO_FREE char *note = ml_asprintf("controller %s works within its limits again",
                                          self->name);
    ml_info(self->services->log, self->name,
            "script works within its limits again; its circuit is closed", CONTROLLER_FIELDS(self),
            ML_REVISION_FIELDS(self->current));
    notify_circuit(self, false, note);
}

static void stop_trial_at_limits(struct ml_controller *self, const struct ml_err *limit)
{
    struct ml_err err = ML_ERR_INIT;
    if (!self->trial.revision)
        return;
    ML_AUTO_FREE char *why = ml_asprintf("it runs into its limits again and again: %s",
                                         limit->message);
    ml_brake_stop(&self->trial.brake, why, &err);
    controller_brake(self, &err);
}

/* No timer while a probe is under way: its end decides. */
static void start_probe_timer(struct ml_controller *self)
{
    int64_t wait_ns = ml_circuit_wait(&self->circuit, ml_clock_monotonic(self->services->clock));
    if (wait_ns > 0 && wait_ns < INT64_MAX)
        ml_timer_start(&self->probe, wait_ns);
}

/* A limit ended the script's reconcile of `object`; NULL: a function of watches or when. */
static void controller_limit_hit(struct ml_controller *self, struct ml_object *object,
                                 const struct ml_err *err)
{
    if (ml_circuit_hit(&self->circuit, ml_clock_monotonic(self->services->clock))) {
        report_circuit_opened(self, object, err);
        stop_trial_at_limits(self, err);
    }
    start_probe_timer(self);
}

/* The script did its work, or there is a new one. */
static void controller_circuit_close(struct ml_controller *self)
{
    ml_timer_stop(&self->probe);
    if (ml_circuit_success(&self->circuit))
        report_circuit_closed(self);
}

/* Somebody edited an object: an open circuit tries it soon. */
static void controller_hurry_probe(struct ml_controller *self)
{
    ml_circuit_hurry(&self->circuit);
    start_probe_timer(self);
}

/* ---- the end of a run ---- */

/* One key under way. */
struct work {
    struct ml_controller *controller;
    struct ml_str key; /* the queue's, until done */
    enum ml_priority priority;
    struct ml_live_read *live_read; /* before it, of a key whose cached object may be stale */
    struct ml_reconcile *reconcile; /* NULL: not yet */
    char id[8 + 1];                 /* of the reconcile, in the log: hex digits */
    enum ml_reconcile_call call;
    const struct ml_revision *revision; /* that it runs */
    int64_t started_ns;
    struct ml_cause cause;
    bool probes; /* it is a try whether the script stays within its limits again */
    struct ml_list node;
};

static void controller_pump(void *context);

/* The server has another version of the object than the cache. */
static void mark_cache_stale(struct ml_controller *self, struct ml_str key)
{
    const struct ml_object *object = controller_object(self, key);
    if (object)
        ml_expectations_conflict(self->expectations, object);
}

static void requeue_after(const struct work *work, enum ml_priority priority, int64_t delay_ns)
{
    struct ml_controller *self = work->controller;
    bool hot;
    int64_t restrained_ns = ml_enqueue_filter_restrain(self->filter, work->key, delay_ns, &hot);
    if (hot)
        controller_key_hot(self, work->key);
    controller_note_delayed(self, work->key, "requeue", restrained_ns);
    ml_workqueue_add_after(self->queue, work->key, priority, restrained_ns);
}

/* A failure that usually passes is told on its object once that has failed for so long while the
 * server answered. */
#define TOLD_AFTER_NS (5 * ML_NS_PER_S)

static bool has_failed_for(const struct work *work, int64_t ns)
{
    const struct ml_controller *self = work->controller;
    int64_t since_ns = ml_workqueue_failing_since(self->queue, work->key);
    return ml_clock_monotonic(self->services->clock) - since_ns >= ns;
}

/* Puts a key that failed into its backoff, which the next answer of a server that gave none ends.
 * Returns the delay in ns. */
static int64_t back_off(const struct work *work, unsigned doublings, const struct ml_err *err)
{
    struct ml_controller *self = work->controller;
    int64_t delay_ns = ml_workqueue_add_rate_limited(self->queue, work->key, work->priority,
                                                     doublings);
    controller_note_delayed(self, work->key, "retry", delay_ns);
    if ((ml_client_unanswered(err) || err->http == 401) && has_failed_for(work, TOLD_AFTER_NS / 2))
        ml_client_doubt(self->services->client);
    if (ml_client_unanswered(err)) {
        ml_workqueue_await_server(self->queue, work->key);
        ml_client_await(self->services->client, &self->await);
    }
    return delay_ns;
}

/* Decides when the key runs next (as controller-runtime's reconcileHandler). The newest result sets
 * the timer, and cancels the one of an earlier run. A key keeps its priority, so that edits stay
 * ahead of keys that fail, or come regularly, since the start; at an instant that the script asked
 * for, the key has normal priority. Returns in how many ns the key is tried again after a failure;
 * -1: not by itself. */
static int64_t requeue_key(const struct work *work, const struct ml_result *result)
{
    struct ml_controller *self = work->controller;
    struct ml_str key = work->key;
    ml_workqueue_cancel_after(self->queue, key);
    switch (result->outcome) {
    case ML_OUTCOME_ERROR:
        if (result->err->kind == ML_ECONFLICT)
            mark_cache_stale(self, key);
        return back_off(work, self->circuit.hits, result->err);
    case ML_OUTCOME_TERMINAL:
    case ML_OUTCOME_INVALID:
        break;
    case ML_OUTCOME_OK:
        ml_workqueue_forget(self->queue, key);
        if (result->requeue_after_ns >= 0)
            requeue_after(work, work->priority, result->requeue_after_ns);
        if (result->requeue_at_ns >= 0)
            requeue_after(
                work, ML_PRIORITY_NORMAL,
                ml_ns_between(ml_clock_wall(self->services->clock), result->requeue_at_ns));
        /* The object that went with its last finalizer has no later version that the cache could
         * wait for: the server is asked before finalize is called for it once more. */
        if (result->finalized)
            mark_cache_stale(self, key);
        break;
    }
    return -1;
}

/* `good`: its reconcile was. */
static void end_work(struct work *work, bool good)
{
    struct ml_controller *self = work->controller;
    ml_list_remove(&work->node);
    /* The run left new parts in the record. */
    if (!controller_object(self, work->key))
        controller_forget_key(self, work->key);
    else if (!controller_acts(self, work->key))
        controller_release_key(self, work->key);
    ml_expectations_ended(self->expectations, work->key, good);
    ml_workqueue_done(self->queue, work->key);
    self->in_flight--;
    self->low_in_flight -= work->priority == ML_PRIORITY_LOW;
    ml_metric_set(self->metrics.active, (double)self->in_flight);
    if (work->probes)
        ml_circuit_abandon(&self->circuit);
    ml_reconcile_free(work->reconcile);
    free(work->cause.object);
    free(work);
}

/* Ends a controller that should stop, when no reconcile runs any more. */
static void controller_end_when_idle(struct ml_controller *self)
{
    if (!self->stopping || self->ended || self->in_flight > 0)
        return;
    self->ended = true;
    ml_task_defer(&self->stopped_task, self->services->loop);
}

/* For ml_controller_fails. */
static void keep_failure(struct ml_controller *self, struct ml_str key,
                         const struct ml_result *result)
{
    if (result->outcome != ML_OUTCOME_ERROR)
        return;
    free(self->failed_key);
    free(self->failed_why);
    self->failed_key = ml_str_dup(key);
    self->failed_why = ml_strdup(result->err->message);
}

static void update_circuit(struct work *work, const struct ml_result *result)
{
    struct ml_controller *self = work->controller;
    if (!ml_call_runs_script(work->call) || work->revision != self->current)
        return;
    if (result->limit)
        controller_limit_hit(self, controller_object(self, work->key), result->err);
    else if (result->outcome != ML_OUTCOME_ERROR)
        controller_circuit_close(self);
}

static bool is_requeued_by_time(const struct ml_result *result)
{
    return result->requeue_after_ns >= 0 || result->requeue_at_ns >= 0;
}

static const char *outcome_name(const struct ml_result *result)
{
    static const char *const names[] = {[ML_OUTCOME_OK] = "success",
                                        [ML_OUTCOME_ERROR] = "error",
                                        [ML_OUTCOME_TERMINAL] = "terminal",
                                        [ML_OUTCOME_INVALID] = "invalid"};
    bool timed = result->outcome == ML_OUTCOME_OK && is_requeued_by_time(result);
    return timed ? "requeue_after" : names[result->outcome];
}

static void append_cause(const struct ml_cause *cause, struct ml_buf *out)
{
    if (cause->what)
        ml_buf_printf(out, "%s%s%s", cause->what, cause->object ? " " : "",
                      cause->object ? cause->object : "");
}

static void record_run(const struct work *work, const struct ml_result *result, int64_t took_ns)
{
    const struct ml_controller *self = work->controller;
    ML_AUTO(ml_buf_fini) struct ml_buf cause = ML_BUF_INIT;
    append_cause(&work->cause, &cause);
    ml_journal_add(self->services->journal,
                   &(struct ml_journal_entry){
                       .what = ML_JOURNAL_RUN,
                       .at_ns = ml_clock_wall(self->services->clock) - took_ns,
                       .controller = ml_str_of(self->name),
                       .key = work->key,
                       .error = ml_str_of(result->err ? result->err->message : NULL),
                       .revision = ml_str_of(work->revision->declaration->revision),
                       .cause = ml_buf_str(&cause),
                       .result = ml_str_of(outcome_name(result)),
                       .waited_ns = work->cause.what ? work->started_ns - work->cause.at_ns : -1,
                       .took_ns = took_ns,
                       .cpu_ns = result->cpu_ns,
                       .writes = result->writes,
                   });
}

static void log_reconciled(const struct work *work, const struct ml_result *result, int64_t took_ns)
{
    const struct ml_controller *self = work->controller;
    const struct ml_err *err = result->err;
    if (!self->services->log || self->services->log->level > ML_LOG_DEBUG)
        return;
    ML_AUTO(ml_buf_fini) struct ml_buf cause = ML_BUF_INIT;
    append_cause(&work->cause, &cause);
    ml_debug(self->services->log, self->name, "reconciled", CONTROLLER_KEY_FIELDS(self, work->key),
             ML_S("reconcileID", work->id), ML_S(err ? "error" : "", err ? err->message : NULL),
             ML_S(err ? "errorKind" : "", err ? ml_err_name(err->kind) : NULL),
             ML_S(cause.len > 0 ? "cause" : "", ml_buf_cstr(&cause)),
             ML_F("duration_ms", (double)took_ns / (double)ML_NS_PER_MS),
             ML_I("writes", result->writes), ML_S("result", outcome_name(result)));
}

static void count_reconciled(const struct controller_metrics *metrics,
                             const struct ml_result *result, int64_t took_ns)
{
    ml_metric_observe(metrics->seconds, (double)took_ns / (double)ML_NS_PER_S);
    if (result->outcome == ML_OUTCOME_OK) {
        ml_metric_add(is_requeued_by_time(result) ? metrics->requeue_after : metrics->success, 1);
        return;
    }
    ml_metric_add(metrics->error, 1);
    ml_metric_add(metrics->errors, 1);
    if (result->outcome != ML_OUTCOME_ERROR)
        ml_metric_add(metrics->terminal_errors, 1);
}

/* Logs, once for each revision, that its runs have no read sets any more. */
static void controller_report_reads_off(struct ml_controller *self)
{
    const struct ml_revision *revision = self->current;
    const char *why = ml_script_reads_off(revision->script);
    if (!why || self->reads_off)
        return;
    self->reads_off = true;
    ml_info(self->services->log, self->name,
            "what a reconcile reads does not decide about its result; every change wakes it",
            CONTROLLER_FIELDS(self), ML_REVISION_FIELDS(revision), ML_S("reason", why));
}

/* The reads of the run decide which changes wake the key from now on, those that came meanwhile
 * included. */
static void keep_reads(const struct work *work, const struct ml_result *result)
{
    struct ml_controller *self = work->controller;
    const struct ml_object *object = controller_object(self, work->key);
    struct ml_revision *revision = ml_controller_revision_of(self, work->key);
    bool is_current = work->revision == revision;
    bool counts = result->outcome == ML_OUTCOME_OK && is_current;
    ml_read_sets_put(self->read_sets, work->key, counts ? result->reads : NULL,
                     &result->read_versions, result->wrote_status);
    if (is_current && object &&
        ml_read_sets_look(self->read_sets, revision, object, &result->names)) {
        controller_note_cause(self, work->key, "changes", ML_STR(""));
        ml_workqueue_add(self->queue, work->key, ML_PRIORITY_NORMAL);
    }
    ml_metric_set(self->metrics.read_set_bytes, (double)ml_read_sets_bytes(self->read_sets));
    controller_report_reads_off(self);
}

/* A run that is tried again counts when it has come to an end. Its values count as well
 * if its object has gone meanwhile, as after finalize. */
static void record_metrics(const struct work *work, const struct ml_result *result)
{
    if (result->outcome != ML_OUTCOME_ERROR)
        ml_custom_metrics_record(work->controller->custom, work->key, result->notes);
}

/* The run has ended, or was cut. */
static void end_run(struct work *work)
{
    struct ml_controller *self = work->controller;
    const struct ml_revision *revision = ml_controller_revision_of(self, work->key);
    struct ml_verdict verdict = ml_enqueue_filter_ended(self->filter, revision, work->key);
    controller_follow_verdict(self, work->key, &verdict);
}

/* Its revision was stopped, and the key is another's: nothing follows from the result. */
static void finish_stopped(struct work *work)
{
    struct ml_controller *self = work->controller;
    end_run(work);
    ml_workqueue_add(self->queue, work->key, ML_PRIORITY_NORMAL);
    end_work(work, false);
}

/* Does an error of this kind say nothing about the revision? */
static bool passes_by_itself(const struct ml_err *err)
{
    return ml_client_unanswered(err) || err->kind == ML_ECONFLICT || err->kind == ML_ECANCELED;
}

/* Nor does this one, but it may last. */
static bool is_of_server(const struct ml_err *err)
{
    return err->http >= 500 || err->http == 429;
}

static struct ml_key_trial *controller_join_trial(struct ml_controller *self, struct ml_str key);

/* Somebody has edited the object since, or it is being deleted: what its runs do may follow from
 * that. */
static bool was_edited(const struct ml_key_trial *part, const struct ml_object *object)
{
    return !object || ml_object_deleting(object) ||
           ml_object_generation(object) != part->generation;
}

/* For the next trial. */
static void note_failure(const struct work *work, const struct ml_result *result)
{
    struct ml_keys *keys = &work->controller->keys;
    if (result->outcome != ML_OUTCOME_OK && !passes_by_itself(result->err))
        ml_keys_failures(keys, work->key)->is_of_script = !is_of_server(result->err);
}

/* A run of the revision on trial has ended: does its key fail? */
static void note_trial_run(const struct work *work, const struct ml_result *result)
{
    struct ml_controller *self = work->controller;
    struct ml_err err = ML_ERR_INIT;
    if (work->revision != self->trial.revision || self->trial.why)
        return;
    struct ml_key_trial *part = controller_join_trial(self, work->key);
    if (result->outcome == ML_OUTCOME_ERROR && passes_by_itself(result->err))
        return;
    if (result->outcome == ML_OUTCOME_ERROR && part->failures < TRIAL_FAILURES)
        part->failures++;
    if (result->outcome == ML_OUTCOME_ERROR && part->failures < TRIAL_FAILURES)
        return;
    if (result->outcome != ML_OUTCOME_ERROR)
        part->failures = 0;
    part->ran = true;
    bool fails = result->outcome != ML_OUTCOME_OK && !part->failed_before &&
                 !is_of_server(result->err) &&
                 !was_edited(part, controller_object(self, work->key));
    if (fails && !part->fails)
        self->trial.brake.fails++;
    else if (!fails && part->fails)
        self->trial.brake.fails--;
    part->fails = fails;
    if (fails && !ml_brake_lets_fail(&self->trial.brake, work->key, result->err->message, &err))
        controller_brake(self, &err);
}

/* Work has ended: others may have waited for that. */
static void controller_go_on(struct ml_controller *self)
{
    controller_end_when_idle(self);
    if (self->services->shard)
        ml_shard_settled(self->services->shard);
    controller_pump(self);
}

static void finish_reconcile(struct work *work, const struct ml_result *result)
{
    struct ml_controller *self = work->controller;
    int64_t took_ns = ml_clock_monotonic(self->services->clock) - work->started_ns;
    if (work->revision->stopped) {
        record_run(work, result, took_ns);
        finish_stopped(work);
        controller_go_on(self);
        return;
    }
    if (work->call != ML_CALL_PAUSE)
        count_reconciled(&self->metrics, result, took_ns);
    log_reconciled(work, result, took_ns);
    record_run(work, result, took_ns);
    update_circuit(work, result);
    keep_failure(self, work->key, result);
    self->removal.released += result->finalized && self->removal.on;
    ml_reconcile_log_failure(work->reconcile, &self->keys, requeue_key(work, result));
    note_failure(work, result);
    note_trial_run(work, result);
    keep_reads(work, result);
    record_metrics(work, result);
    end_run(work);
    end_work(work, result->outcome == ML_OUTCOME_OK && !result->finalized);
    controller_go_on(self);
}

static void on_script_result(void *context, struct ml_result *result)
{
    struct work *work = context;
    const struct ml_result *end = ml_reconcile_ran(work->reconcile, result);
    if (end)
        finish_reconcile(work, end);
}

static void on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct work *work = context;
    const struct ml_result *end = ml_reconcile_written(work->reconcile, body, err);
    if (end)
        finish_reconcile(work, end);
}

static bool on_asked_if_lasting(void *context)
{
    struct work *work = context;
    const struct ml_services *services = work->controller->services;
    int64_t answers_ns = ml_clock_monotonic(services->clock) -
                         ml_client_answers_since(services->client);
    return answers_ns >= TOLD_AFTER_NS && has_failed_for(work, TOLD_AFTER_NS);
}

static const struct ml_reconcile_handler reconcile_handler = {
    .ran = on_script_result,
    .written = on_written,
    .lasts = on_asked_if_lasting,
};

static void on_expectations_satisfied(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    if (controller_acts(self, key))
        ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
}

/* ---- the start of a run ---- */

/* Keys of low priority under way at once, so that an edit finds the loop, the client and the server
 * free: while 5,000 objects of a start are worked off it waits 1, 6 and 26 ms beside 2, 8 and 32 of
 * them (bench/scenarios/overtake.sh, medians of one quiet run each). */
#define LOW_IN_FLIGHT_MAX 8

/* The object of a key; NULL for one that is gone, or going without our finalizer: what it owns goes
 * with it, and nothing new must appear under it. NULL as well for what is another replica's by now.
 * `out`: what is to be called for it. */
static struct ml_object *prepare_key(struct ml_controller *self, struct ml_str key,
                                     enum ml_reconcile_call *out)
{
    struct ml_object *object = controller_object(self, key);
    if (object && controller_acts(self, key) &&
        ml_reconcile_choose(ml_controller_revision_of(self, key), object, self->removal.on, out))
        return object;
    struct ml_key_trial *part = controller_part(self, key);
    if (part)
        part->ran = true;
    if (!object) {
        controller_forget_key(self, key);
        return NULL;
    }
    ml_workqueue_forget(self->queue, key);
    ml_keys_forget_failures(&self->keys, key);
    ml_keys_forget_cause(&self->keys, key);
    return NULL;
}

/* Unlike those of other processes, as the hash is seeded. The random seam is left alone: how many
 * runs there were must not change the jitter of what else draws from it. */
static void name_run(struct work *work)
{
    static uint64_t runs;
    runs++;
    snprintf(work->id, sizeof work->id, "%08x",
             (unsigned)(ml_hash((struct ml_str){(const char *)&runs, sizeof runs}) & UINT32_MAX));
}

static void begin_trial_run(struct ml_controller *self, struct ml_str key,
                            const struct ml_object *object)
{
    struct ml_key_trial *part = controller_join_trial(self, key);
    const struct ml_declaration *declaration = self->trial.revision->declaration;
    if (!part->begun && ml_object_says_failed(object, declaration->name, declaration->formerly))
        part->failed_before = true;
    part->begun = true;
    self->trial.brake.runs++;
}

static void start_reconcile(struct work *work, struct ml_object *object)
{
    struct ml_controller *self = work->controller;
    struct ml_revision *revision = ml_controller_revision_of(self, work->key);
    ml_enqueue_filter_begun(self->filter, work->key);
    if (revision == self->trial.revision)
        begin_trial_run(self, work->key, object);
    work->revision = revision;
    self->runs += revision == self->current;
    name_run(work);
    work->reconcile = ml_reconcile_start(revision, object, work->call, work->id, &reconcile_handler,
                                         work);
}

/* The cache is behind, which passes, or the server cannot show the object. */
static void on_live_read_failed(struct work *work, const struct ml_err *err)
{
    struct ml_controller *self = work->controller;
    const struct ml_object *object = controller_object(self, work->key);
    int64_t retry_ns = back_off(work, 0, err);
    struct ml_repeat *repeat = &ml_keys_failures(&self->keys, work->key)->reconcile;
    if (!object || err->kind == ML_ECANCELED || !on_asked_if_lasting(work)) {
        ml_debug(self->services->log, self->name, "the cache is behind; trying again",
                 CONTROLLER_KEY_FIELDS(self, work->key), ML_ERR_FIELDS(err));
        return;
    }
    ML_AUTO_FREE char *note = ml_asprintf("the object cannot be read: %s", err->message);
    repeat->is_reported = true;
    ml_object_warning(self->services, self->name, ml_revision_kind(self->current), object,
                      "ReconcileFailed", note);
    if (ml_repeat_failed(repeat, ml_str_of(note), ml_clock_monotonic(self->services->clock)))
        ml_error(self->services->log, self->name,
                 "the object cannot be read, and is not reconciled; trying again",
                 CONTROLLER_KEY_FIELDS(self, work->key), ML_ERR_FIELDS(err),
                 ML_REPEAT_FIELDS(repeat, retry_ns));
}

static void on_live_read(void *context, const struct ml_err *err)
{
    struct work *work = context;
    struct ml_controller *self = work->controller;
    struct ml_object *object = err ? NULL : prepare_key(self, work->key, &work->call);
    work->live_read = NULL;
    if (object) {
        start_reconcile(work, object);
        return;
    }
    if (err)
        on_live_read_failed(work, err);
    end_work(work, false);
    controller_end_when_idle(self);
    controller_pump(self);
}

/* A key that is slowed waits until its pause is over, whatever put it into the queue: a change, a
 * time that the script asked for, or a retry. */
static bool key_pauses(struct ml_controller *self, struct ml_str key, enum ml_priority priority,
                       enum ml_reconcile_call call)
{
    int64_t pause_ns = call == ML_CALL_RELEASE ? 0 : ml_enqueue_filter_pause(self->filter, key);
    if (pause_ns > 0)
        ml_workqueue_add_after(self->queue, key, priority, pause_ns);
    return pause_ns > 0;
}

static void begin_key(struct ml_controller *self, struct ml_str key, enum ml_priority priority)
{
    enum ml_reconcile_call call = ML_CALL_RECONCILE;
    struct ml_object *object = prepare_key(self, key, &call);
    if (!object || key_pauses(self, key, priority, call) ||
        !ml_expectations_satisfied(self->expectations, key, on_expectations_satisfied, self)) {
        ml_workqueue_done(self->queue, key);
        return;
    }
    struct work *work = ml_new(struct work);
    work->controller = self;
    work->key = key;
    work->priority = priority;
    work->call = call;
    work->started_ns = ml_clock_monotonic(self->services->clock);
    work->cause = ml_keys_take_cause(&self->keys, key);
    work->probes = ml_call_runs_script(call) && ml_circuit_begin(&self->circuit);
    ml_list_push(&self->works, &work->node);
    self->in_flight++;
    self->low_in_flight += priority == ML_PRIORITY_LOW;
    ml_metric_set(self->metrics.active, (double)self->in_flight);
    work->live_read = ml_expectations_verify(self->expectations, ml_revision_kind(self->current),
                                             object, on_live_read, work);
    if (!work->live_read)
        start_reconcile(work, object);
}

static bool circuit_lets_begin(const struct ml_controller *self)
{
    return self->removal.on || self->circuit.state == ML_CIRCUIT_CLOSED ||
           ml_circuit_wait(&self->circuit, ml_clock_monotonic(self->services->clock)) == 0;
}

/* Is there room for one more, and down to which priority? All keys wait while the reconciled kind
 * is not watched: a child of an owner that is long gone is collected at once, and that would wake
 * the owner again. They also wait while another slice of this controller waits, or while it has
 * used more than its share of the CPU: edits that come until then go first. */
static bool may_begin_another(const struct ml_controller *self, enum ml_priority *out_least)
{
    bool all = self->low_in_flight < LOW_IN_FLIGHT_MAX;
    *out_least = all ? ML_PRIORITY_LOW : ML_PRIORITY_NORMAL;
    return self->current && !self->current->stopped && !self->stopping &&
           !self->services->standby && !self->paused && ml_cpu_account_idle(&self->cpu_account) &&
           circuit_lets_begin(self) && !ml_informer_is_degraded(self->current->informers[0]) &&
           self->in_flight < self->current->declaration->concurrency_max;
}

/* Begins keys until the limits are reached. */
static void controller_pump(void *context)
{
    struct ml_controller *self = context;
    struct ml_str key;
    enum ml_priority least, priority;
    while (may_begin_another(self, &least) && ml_workqueue_get(self->queue, least, &key, &priority))
        begin_key(self, key, priority);
}

static void controller_cancel_work(struct ml_controller *self)
{
    ml_list_each_entry (struct work, work, &self->works) {
        ml_live_read_cancel(work->live_read);
        ml_reconcile_free(ml_take(&work->reconcile));
        end_work(work, false);
    }
}

/* ---- keys that another replica gets ---- */

static void cut_lost_work(struct work *work)
{
    struct ml_controller *self = work->controller;
    ml_live_read_cancel(work->live_read);
    if (work->reconcile) {
        ml_warn(self->services->log, self->name,
                "another replica gets this object; ended between two writes",
                CONTROLLER_KEY_FIELDS(self, work->key), ML_S("reconcileID", work->id));
        ml_reconcile_free(ml_take(&work->reconcile));
        end_run(work);
    }
    end_work(work, false);
}

static void release_lost_keys(struct ml_controller *self)
{
    ml_keys_each(&self->keys, key)
    {
        struct ml_key *record = ml_keys_ref(&self->keys, ml_key_str(key));
        if (!controller_acts(self, ml_key_str(record)))
            controller_release_key(self, ml_key_str(record));
        ml_key_unref(record);
    }
}

bool ml_controller_hand_over(struct ml_controller *self, bool cut)
{
    bool idle = true;
    ml_list_each_entry (struct work, work, &self->works) {
        if (controller_acts(self, work->key))
            continue;
        if (!work->reconcile || (cut && !ml_reconcile_writes(work->reconcile)))
            cut_lost_work(work);
        else
            idle = false;
    }
    release_lost_keys(self);
    controller_end_when_idle(self);
    return idle;
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

static void on_revision_ready(void *context, struct ml_revision *revision)
{
    struct ml_controller *self = context;
    ml_assert(revision == self->offered);
    self->handler->ready(self->context, self);
}

/* The offered revision works for all keys from now on. */
static void take_over(struct ml_controller *self)
{
    struct ml_revision *revision = ml_take(&self->offered), *old = self->current;
    self->current = revision;
    self->runs = self->deletes = 0;
    if (!revision->live)
        ml_revision_live(revision, self->expectations, &self->cpu_account);
    ml_metric_set(self->metrics.workers_max, (double)revision->declaration->concurrency_max);
    if (old) {
        ml_revision_retire(old);
        ml_revision_unref(old);
    }
    ml_enqueue_filter_reset_backoff(self->filter);
    ml_keys_renew_failures(&self->keys);
    ml_repeats_clear(&self->index_failures);
    ml_read_sets_drop_all(self->read_sets);
    ml_custom_metrics_declare(self->custom, revision->declaration->metrics,
                              revision->declaration->metric_count);
    self->reads_off = false;
    controller_report_reads_off(self);
    controller_circuit_close(self);
    enqueue_all_objects(self);
    self->handler->live(self->context, self, old == NULL);
    controller_pump(self);
}

/* ---- a trial ---- */

static void rest_trial(struct ml_controller *self)
{
    ml_timer_stop(&self->trial.check);
    ml_task_cancel(&self->trial.stop);
    free(ml_take(&self->trial.why));
}

static void end_trial(struct ml_controller *self)
{
    rest_trial(self);
    self->trial.revision = NULL;
    self->trial.brake = (struct ml_brake){0};
    ml_keys_forget_all_trials(&self->keys);
}

/* How the key fared before the trial is known while its failures are. A part of the trial before,
 * which did not come to its end, knows how it fared before that. */
static void begin_part(struct ml_controller *self, struct ml_key_trial *part, struct ml_str key)
{
    const struct ml_object *object = ml_store_get(ml_revision_store(self->trial.revision), key);
    const struct ml_key *record = ml_keys_find(&self->keys, key);
    const struct ml_key_failures *failures = record->failures;
    bool is_first = part->number == 0;
    bool tells = is_first || was_edited(part, object);
    bool failed = failures && failures->reconcile.failures > 0 && failures->is_of_script;
    bool slowed = failures && failures->slowed.failures > 0;
    ml_workqueue_forget(self->queue, key); /* it is not to wait for what the version before did */
    *part = (struct ml_key_trial){
        .number = self->trial.number,
        .generation = object ? ml_object_generation(object) : 0,
        .failed_before = part->failed_before || !self->trial.has_before || (tells && failed),
        .slowed_before = part->slowed_before || !self->trial.has_before || (tells && slowed),
        .ran = ml_enqueue_filter_pause(self->filter, key) > 0, /* nobody waits for that to end */
    };
}

static struct ml_key_trial *controller_join_trial(struct ml_controller *self, struct ml_str key)
{
    struct ml_key_trial *part = ml_keys_trial(&self->keys, key);
    if (part->number != self->trial.number)
        begin_part(self, part, key);
    return part;
}

/* NULL: the key takes no part. */
static struct ml_key_trial *controller_part(const struct ml_controller *self, struct ml_str key)
{
    struct ml_key_trial *part = ml_keys_find_trial(&self->keys, key);
    return part && part->number == self->trial.number ? part : NULL;
}

/* Counts this replica's objects, and those that the revision works for; these take part. */
static void count_trial(struct ml_controller *self)
{
    const struct ml_store *store = ml_revision_store(self->trial.revision);
    struct ml_brake *brake = &self->trial.brake;
    size_t cursor = 0;
    brake->objects = brake->tried = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        struct ml_str key = ml_object_key(object);
        if (!controller_acts(self, key))
            continue;
        brake->objects++;
        if (place_of(self, key) > self->trial.reach)
            continue;
        brake->tried++;
        (void)controller_join_trial(self, key);
    }
    brake->owned = (size_t)(self->trial.owned_each * (double)brake->objects + 0.5);
}

/* The keys up to the reach change hands: the other revision reconciles them anew. */
static void enqueue_tried_keys(struct ml_controller *self, uint64_t from)
{
    const struct ml_store *store = ml_revision_store(self->current);
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        struct ml_str key = ml_object_key(object);
        uint64_t place = place_of(self, key);
        if (!controller_acts(self, key) || place < from || place > self->trial.reach)
            continue;
        ml_read_sets_drop(self->read_sets, key);
        ml_keys_forget_failures(&self->keys, key);
        ml_workqueue_forget(self->queue, key);
        ml_workqueue_cancel_after(self->queue, key);
        controller_enqueue_at_start(self, key);
    }
}

static void give_keys_back(struct ml_controller *self)
{
    enqueue_tried_keys(self, 0);
    end_trial(self);
    controller_pump(self);
}

static uint64_t lowest_place(const struct ml_controller *self)
{
    const struct ml_store *store = ml_revision_store(self->current);
    uint64_t lowest = UINT64_MAX;
    size_t cursor = 0;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        if (controller_acts(self, ml_object_key(object)))
            lowest = ML_MIN(lowest, place_of(self, ml_object_key(object)));
    return lowest;
}

/* The next step of a canary that has one more object. False: that is all of them. */
static bool next_step(struct ml_controller *self)
{
    static const uint64_t hundredths[] = {0, 1, 10}; /* first one object */
    struct controller_trial *trial = &self->trial;
    size_t before = trial->brake.tried;
    while (trial->step < ML_COUNT(hundredths)) {
        uint64_t from = trial->reach + (trial->step > 0), hundredth = hundredths[trial->step++];
        uint64_t reach = hundredth > 0 ? UINT64_MAX / 100 * hundredth : lowest_place(self);
        trial->reach = ML_MAX(trial->reach, reach);
        count_trial(self);
        if (trial->brake.tried == before)
            continue;
        enqueue_tried_keys(self, from);
        ml_info(self->services->log, self->name, "new version on trial; the one before works on",
                CONTROLLER_FIELDS(self), ML_REVISION_FIELDS(trial->revision),
                ML_I("tried", (int64_t)trial->brake.tried),
                ML_I("objects", (int64_t)trial->brake.objects));
        controller_pump(self);
        return true;
    }
    return false;
}

/* The revision on trial works for all keys. */
static void reach_all(struct ml_controller *self)
{
    self->trial.reach = UINT64_MAX;
    count_trial(self);
    take_over(self);
}

void ml_controller_settle(struct ml_controller *self)
{
    if (!self->trial.revision || self->trial.why)
        return;
    if (self->trial.revision == self->offered)
        reach_all(self);
    end_trial(self);
    self->handler->settled(self->context, self);
}

static bool has_untried_key(const struct ml_controller *self)
{
    ml_keys_each(&self->keys, key)
    {
        const struct ml_key_trial *part = key->trial;
        if (part && part->number == self->trial.number && !part->ran)
            return true;
    }
    return false;
}

/* Each object of the step was reconciled, and then it was calm for long enough. */
static bool step_is_over(struct ml_controller *self, int64_t *out_wait_ns)
{
    struct controller_trial *trial = &self->trial;
    int64_t settle_ns = trial->brake.limits.settle_seconds * ML_NS_PER_S;
    int64_t now_ns = ml_clock_monotonic(self->services->clock);
    bool rests = self->services->standby || self->paused;
    *out_wait_ns = TRIAL_CHECK_NS;
    if (!rests && !trial->is_counted) { /* it stood by when the trial began */
        count_trial(self);
        trial->is_counted = true;
    }
    if (rests || has_untried_key(self)) {
        trial->calm_ns = 0;
        return false;
    }
    if (trial->calm_ns == 0)
        trial->calm_ns = now_ns;
    *out_wait_ns = trial->calm_ns + settle_ns - now_ns;
    return *out_wait_ns <= 0 || trial->brake.tried == 0;
}

static void check_trial(void *context)
{
    struct ml_controller *self = context;
    struct controller_trial *trial = &self->trial;
    bool is_canary = trial->revision == self->offered;
    int64_t wait_ns;
    if (!step_is_over(self, &wait_ns)) {
        ml_timer_start(&trial->check, wait_ns);
        return;
    }
    if (!is_canary) {
        ml_controller_settle(self);
        return;
    }
    trial->calm_ns = 0;
    ml_timer_start(&trial->check, TRIAL_CHECK_NS);
    if (!next_step(self))
        reach_all(self);
}

/* One that did not come to its end is continued: the way back is to the version before that. */
static void begin_trial(struct ml_controller *self, const struct ml_brake *brake)
{
    struct controller_trial *trial = &self->trial;
    bool continues = trial->revision != NULL;
    size_t runs = continues ? trial->brake.runs_before : self->runs;
    size_t deletes = continues ? trial->brake.deletes_before : self->deletes;
    rest_trial(self);
    trial->revision = self->offered;
    trial->brake = *brake;
    trial->brake.declaration = self->offered->declaration;
    trial->brake.runs_before = runs;
    trial->brake.deletes_before = deletes;
    trial->owned_each = brake->objects > 0 ? (double)brake->owned / (double)brake->objects : 0;
    if (!continues)
        trial->has_before = self->current != NULL;
    trial->is_counted = !self->services->standby;
    trial->number++;
    trial->step = 0;
    trial->reach = 0;
    trial->calm_ns = 0;
    ml_timer_start(&trial->check, 0);
}

void ml_controller_promote(struct ml_controller *self, const struct ml_brake *brake)
{
    if (!self->offered)
        return;
    if (!brake) {
        end_trial(self); /* of the current one, which is replaced */
        take_over(self);
        self->handler->settled(self->context, self);
        return;
    }
    begin_trial(self, brake);
    if (brake->limits.mode == ML_ROLLOUT_CANARY && self->current &&
        self->current->informers[0] == self->offered->informers[0])
        ml_revision_live(self->offered, self->expectations, &self->cpu_account);
    else
        reach_all(self);
}

/* Ends its runs, but those with a write under way: they end after that. */
static void cut_stopped_work(struct ml_controller *self, const struct ml_revision *revision)
{
    ml_list_each_entry (struct work, work, &self->works) {
        if (work->revision != revision || ml_reconcile_writes(work->reconcile))
            continue;
        ml_reconcile_free(ml_take(&work->reconcile));
        finish_stopped(work);
    }
}

/* The trial ends. Without the revision the current one works for all keys; or nothing runs. */
static void stop_revision(struct ml_controller *self, struct ml_revision *revision)
{
    ml_revision_stop(revision);
    ml_revision_ref(revision);
    if (revision == self->offered)
        ml_controller_withdraw(self);
    else
        end_trial(self);
    cut_stopped_work(self, revision);
    ml_revision_unref(revision);
    controller_go_on(self);
}

void ml_controller_stop_revision(struct ml_controller *self)
{
    struct ml_revision *revision = self->trial.revision ? self->trial.revision : self->current;
    if (revision && !revision->stopped && !self->stopping)
        stop_revision(self, revision);
}

static void on_brake(void *context)
{
    struct ml_controller *self = context;
    const struct ml_err why = *self->trial.why;
    struct ml_revision *revision = ml_revision_ref(self->trial.revision);
    stop_revision(self, revision);
    self->handler->braked(self->context, self, revision->declaration->revision, &why);
    ml_revision_unref(revision);
}

/* Stops the revision on trial: it writes nothing from now on, and ends later from the loop. */
static void controller_brake(struct ml_controller *self, const struct ml_err *why)
{
    if (!self->trial.revision || self->trial.why)
        return;
    self->trial.why = ml_err_dup(why);
    ml_revision_stop(self->trial.revision);
    ml_task_defer(&self->trial.stop, self->services->loop);
}

const struct ml_revision *ml_controller_on_trial(const struct ml_controller *self,
                                                 size_t *out_tried)
{
    *out_tried = self->trial.brake.tried;
    return self->trial.revision;
}

/* ---- changes ---- */

/* By somebody, not by a controller that reports what it saw. */
static bool change_is_edit(const struct ml_change *change)
{
    const unsigned parts = ML_PART_SPEC | ML_PART_LABELS | ML_PART_ANNOTATIONS;
    return change->reconciled &&
           (!change->old || (ml_object_diff(change->old, change->new, NULL) & parts));
}

/* Two revisions may report the change: the one that works for the key counts. */
static void change_key(struct ml_controller *self, struct ml_revision *revision, struct ml_str key,
                       const struct ml_change *change)
{
    if (!controller_acts(self, key) || revision != ml_controller_revision_of(self, key))
        return;
    if (self->circuit.state == ML_CIRCUIT_OPEN && change_is_edit(change))
        controller_hurry_probe(self);
    struct ml_verdict verdict = ml_enqueue_filter_changed(self->filter, revision, key, change);
    controller_follow_verdict(self, key, &verdict);
}

static void on_mapped(void *context, struct ml_revision *revision, const struct ml_buf *keys,
                      const struct ml_change *change)
{
    struct ml_controller *self = context;
    for (size_t at = 0; at < keys->len;) {
        struct ml_str key = ml_str_of(keys->ptr + at);
        at += key.len + 1;
        change_key(self, revision, key, change);
    }
}

/* A key's own write wakes it only as a change of an object that it owns or watches. */
static void change_readers(struct ml_controller *self, struct ml_revision *revision, size_t kind,
                           const struct ml_change *change)
{
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
            change_key(self, revision, key, &related);
    }
}

static void on_change(void *watched, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct ml_revision *revision = ml_revision_of(watched);
    struct ml_controller *self = revision->context;
    struct ml_affected affected;
    if (!ml_revision_changed(watched, informer, old, new, &affected))
        return;
    if (affected.gone)
        controller_forget_key(self, ml_object_key(old));
    else
        on_mapped(self, revision, &affected.keys, &affected.change);
    if (affected.named_kind != SIZE_MAX)
        change_readers(self, revision, affected.named_kind, &affected.change);
    ml_buf_fini(&affected.keys);
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

static bool on_lets_delete(void *context, struct ml_revision *revision,
                           const struct ml_object *owner, struct ml_err *err)
{
    struct ml_controller *self = context;
    const struct ml_key_trial *part = controller_part(self, ml_object_key(owner));
    bool is_on_trial = revision == self->trial.revision && part && !was_edited(part, owner);
    if (is_on_trial && !ml_brake_lets_delete(&self->trial.brake, err)) {
        controller_brake(self, err);
        return false;
    }
    self->trial.brake.deletes += is_on_trial;
    self->deletes += revision == self->current;
    return true;
}

static const struct ml_revision_handler revision_handler = {
    .ready = on_revision_ready,
    .change = on_change,
    .mapped = on_mapped,
    .concerns_all = enqueue_all_objects,
    .mended = controller_pump,
    .index_failed = on_index_failed,
    .function_failed = on_function_failed,
    .lets_delete = on_lets_delete,
};

/* ---- removal ---- */

/* Each object that carries the finalizer, or only the first. Returns whether there is one. */
static bool find_carriers(struct ml_controller *self, bool enqueue)
{
    const struct ml_store *store = ml_revision_store(self->current);
    size_t cursor = 0;
    bool found = false;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        if (ml_finalizer_of(self->current, object) == ML_FINALIZER_NONE)
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
    if (self->trial.revision && self->trial.revision == self->offered)
        ml_controller_withdraw(self);
    else
        end_trial(self);
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
        .ready = &self->pump,
    };
    ml_task_init(&self->pump, controller_pump, self);
    self->queue = ml_workqueue_new(&queue);
    self->expectations = ml_expectations_new(&self->keys, services->loop, services->client,
                                             services->metrics, self->name);
    self->read_sets = ml_read_sets_new(&self->keys);
    const struct ml_enqueue_filter_opts filter = {
        .keys = &self->keys,
        .loop = services->loop,
        .expectations = self->expectations,
        .read_sets = self->read_sets,
        .authors = services->authors,
        .controller = self->name,
        /* In virtual time such a key takes nobody's core, and `moonloop test` reports it. */
        .slows_hot_keys = ml_slices_metered(services->slices),
    };
    self->filter = ml_enqueue_filter_new(&filter);
    const struct ml_fights_opts fights = {
        .services = services,
        .controller = self->name,
        .keys = &self->keys,
        .filter = self->filter,
        .object = object_of_slowed,
        .context = self,
    };
    self->fights = ml_fights_new(&fights);
    self->await = (struct ml_client_await){.again = on_server_answers, .context = self};
    ml_cpu_account_init(&self->cpu_account, services->slices, controller_pump, self);
    ml_list_init(&self->works);
    ml_task_init(&self->stopped_task, report_stopped, self);
    ml_timer_init(&self->removal.check, services->loop, check_removal, self);
    ml_timer_init(&self->trial.check, services->loop, check_trial, self);
    ml_task_init(&self->trial.stop, on_brake, self);
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
    ml_fights_free(self->fights);
    end_trial(self);
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
    ml_cpu_account_drop_slices(&self->cpu_account); /* of webhooks */
    ml_cpu_account_fini(&self->cpu_account);
    free(self->name);
    free(self);
}

void ml_controller_offer(struct ml_controller *self, struct ml_script *script)
{
    ml_controller_withdraw(self);
    self->offered = ml_revision_new(self->services, script, &revision_handler, self);
}

void ml_controller_withdraw(struct ml_controller *self)
{
    if (self->offered && self->offered == self->trial.revision)
        give_keys_back(self);
    ml_revision_unref(ml_take(&self->offered));
}

bool ml_controller_pause(struct ml_controller *self, bool paused)
{
    if (self->paused == paused)
        return false;
    self->paused = paused;
    ml_metric_set(self->metrics.paused, paused);
    controller_pump(self);
    return true;
}

void ml_controller_resync(struct ml_controller *self)
{
    if (!self->current || self->stopping)
        return;
    ml_enqueue_filter_reset_backoff(self->filter);
    controller_circuit_close(self);
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
    end_trial(self);
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

const struct ml_revision *ml_controller_current(const struct ml_controller *self)
{
    return self->current && !self->current->stopped ? self->current : NULL;
}

const struct ml_revision *ml_controller_offered(const struct ml_controller *self)
{
    return self->offered;
}

bool ml_controller_webhook(struct ml_controller *self, struct ml_webhook_target *out)
{
    const struct ml_revision *revision = self->current ? self->current : self->offered;
    if (!revision)
        return false;
    *out = (struct ml_webhook_target){revision->script, revision->kinds[0], &self->cpu_account};
    return true;
}

int64_t ml_controller_next(const struct ml_controller *self)
{
    if (self->offered)
        return 0;
    if (self->paused)
        return INT64_MAX;
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
