/* The keys of a controller, from the verdict of the enqueue filter to the end of their reconcile:
 * which are this replica's, which may begin, which function is called for their object, the circuit
 * that holds them back, and the decision about a key that has ended. */
#include "operator/controller_internal.h"

/* Keys of low priority under way at once, so that an edit finds the loop, the client and the server
 * free: while 5,000 objects of a start are worked off it waits 1, 6 and 26 ms beside 2, 8 and 32 of
 * them (bench/scenarios/overtake.sh, medians of one quiet run each). */
#define LOW_IN_FLIGHT_MAX 8

/* One key under way. */
struct work {
    struct ml_controller *controller;
    struct ml_str key; /* the queue's, until done */
    enum ml_priority priority;
    struct ml_live_read *live_read; /* before it, of a key whose cached object may be stale */
    struct ml_reconcile *reconcile; /* NULL: not yet */
    enum ml_reconcile_call call;
    const struct ml_revision *revision; /* that it runs */
    int64_t started_ns;
    char *cause; /* NULL: not known, or not to be logged */
    bool probes; /* it is a try whether the script stays within its limits again */
    struct ml_list node;
};

bool controller_acts(const struct ml_controller *self, struct ml_str key)
{
    const struct ml_services *services = self->services;
    if (services->standby)
        return false;
    return !services->shard || ml_shard_acts(services->shard, ml_str_of(self->name), key);
}

void controller_note_cause(struct ml_controller *self, struct ml_str key, const char *what,
                           struct ml_str object_key)
{
    if (!self->services->log || self->services->log->level > ML_LOG_DEBUG)
        return;
    ml_keys_set_cause(
        &self->keys, key,
        ml_asprintf("%s%s" ML_STR_FMT, what, object_key.len ? " " : "", ML_STR_ARG(object_key)));
}

void controller_enqueue_at_start(struct ml_controller *self, struct ml_str key)
{
    controller_note_cause(self, key, "start", ML_STR(""));
    ml_workqueue_add(self->queue, key, ML_PRIORITY_LOW);
}

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

static bool on_asked_if_it_matters(void *context, struct ml_str key, const struct ml_change *change,
                                   bool own_status)
{
    struct ml_controller *self = context;
    return ml_read_sets_matters(self->read_sets, self->current, key, change, own_status);
}

static bool on_asked_if_uncertain(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    bool uncertain = ml_read_sets_uncertain(self->read_sets, self->current, key);
    ml_metric_add(self->metrics.skipped, !uncertain);
    return uncertain;
}

void controller_follow_verdict(struct ml_controller *self, struct ml_str key,
                               struct ml_verdict *verdict)
{
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

void controller_make_filter(struct ml_controller *self)
{
    const struct ml_enqueue_filter_questions questions = {
        .matters = on_asked_if_it_matters,
        .uncertain = on_asked_if_uncertain,
        .author = controller_author_of,
        /* In virtual time such a key takes nobody's core, and `moonloop test` reports it. */
        .slows_hot_keys = ml_turns_metered(self->services->turns),
    };
    self->filter = ml_enqueue_filter_new(&self->keys, self->services->loop, self->expectations,
                                         &questions, self);
}

void controller_release_key(struct ml_controller *self, struct ml_str key)
{
    ml_workqueue_remove(self->queue, key);
    ml_enqueue_filter_gone(self->filter, key);
    ml_read_sets_drop(self->read_sets, key);
    ml_custom_metrics_gone(self->custom, key);
    ml_keys_forget_failures(&self->keys, key);
    free(ml_keys_take_cause(&self->keys, key));
    controller_forget_lookups(self, key);
}

void controller_forget_key(struct ml_controller *self, struct ml_str key)
{
    ml_expectations_clear(self->expectations, key);
    controller_release_key(self, key);
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

/* No timer while a probe is under way: its end decides. */
static void start_probe_timer(struct ml_controller *self)
{
    int64_t wait_ns = ml_circuit_wait(&self->circuit, ml_clock_monotonic(self->services->clock));
    if (wait_ns > 0 && wait_ns < INT64_MAX)
        ml_timer_start(&self->probe, wait_ns);
}

void controller_limit_hit(struct ml_controller *self, struct ml_object *object,
                          const struct ml_err *err)
{
    if (ml_circuit_hit(&self->circuit, ml_clock_monotonic(self->services->clock)))
        report_circuit_opened(self, object, err);
    start_probe_timer(self);
}

void controller_circuit_close(struct ml_controller *self)
{
    ml_timer_stop(&self->probe);
    if (ml_circuit_success(&self->circuit))
        report_circuit_closed(self);
}

void controller_hurry_probe(struct ml_controller *self)
{
    ml_circuit_hurry(&self->circuit);
    start_probe_timer(self);
}

/* ---- the end of a run ---- */

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
    controller_note_cause(self, work->key, "requeue", ML_STR(""));
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
    controller_note_cause(self, work->key, "retry", ML_STR(""));
    int64_t delay_ns = ml_workqueue_add_rate_limited(self->queue, work->key, work->priority,
                                                     doublings);
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
    free(work->cause);
    free(work);
}

void controller_end_when_idle(struct ml_controller *self)
{
    if (self->stopping && self->in_flight == 0)
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
    if (!ml_call_runs_script(work->call))
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

static void log_reconciled(const struct work *work, const struct ml_result *result, int64_t took_ns)
{
    const struct ml_controller *self = work->controller;
    const struct ml_err *err = result->err;
    ml_debug(self->services->log, self->name, "reconciled", CONTROLLER_KEY_FIELDS(self, work->key),
             ML_S("reconcileID", ml_reconcile_id(work->reconcile)),
             ML_S(err ? "error" : "", err ? err->message : NULL),
             ML_S(err ? "errorKind" : "", err ? ml_err_name(err->kind) : NULL),
             ML_S(work->cause ? "cause" : "", work->cause),
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

void controller_report_reads_off(struct ml_controller *self)
{
    const struct ml_revision *revision = self->current;
    const char *why = ml_script_reads_off(revision->script);
    if (!why || self->reads_off == revision->number)
        return;
    self->reads_off = revision->number;
    ml_info(self->services->log, self->name,
            "what a reconcile reads does not decide about its result; every change wakes it",
            CONTROLLER_FIELDS(self), ML_REVISION_FIELDS(revision), ML_S("reason", why));
}

/* The reads of the run decide which changes wake the key from now on, those that came meanwhile
 * included. */
static void keep_reads(const struct work *work, const struct ml_result *result, bool wrote_status)
{
    struct ml_controller *self = work->controller;
    const struct ml_object *object = controller_object(self, work->key);
    bool is_current = work->revision == self->current;
    bool counts = result->outcome == ML_OUTCOME_OK && is_current;
    ml_read_sets_put(self->read_sets, work->key, counts ? result->reads : NULL,
                     &result->read_versions, wrote_status);
    if (is_current && object &&
        ml_read_sets_look(self->read_sets, self->current, object, &result->names)) {
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
    struct ml_verdict verdict = ml_enqueue_filter_ended(self->filter, work->key);
    controller_follow_verdict(self, work->key, &verdict);
}

static void on_reconciled(void *context, const struct ml_result *result, bool wrote_status)
{
    struct work *work = context;
    struct ml_controller *self = work->controller;
    int64_t took_ns = ml_clock_monotonic(self->services->clock) - work->started_ns;
    count_reconciled(&self->metrics, result, took_ns);
    log_reconciled(work, result, took_ns);
    update_circuit(work, result);
    keep_failure(self, work->key, result);
    self->removal.released += result->finalized && self->removal.on;
    ml_reconcile_log_failure(work->reconcile, &self->keys, requeue_key(work, result));
    keep_reads(work, result, wrote_status);
    record_metrics(work, result);
    end_run(work);
    end_work(work, result->outcome == ML_OUTCOME_OK && !result->finalized);
    controller_end_when_idle(self);
    if (self->services->shard)
        ml_shard_settled(self->services->shard);
    controller_pump(self);
}

static bool on_asked_if_lasting(void *context)
{
    struct work *work = context;
    const struct ml_services *services = work->controller->services;
    int64_t answers_ns = ml_clock_monotonic(services->clock) -
                         ml_client_answers_since(services->client);
    return answers_ns >= TOLD_AFTER_NS && has_failed_for(work, TOLD_AFTER_NS);
}

static const struct ml_reconcile_handler reconcile_handler = {on_reconciled, on_asked_if_lasting};

static void on_expectations_satisfied(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    if (controller_acts(self, key))
        ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
}

/* ---- the start of a run ---- */

/* Chooses the function that is called for the object; false: none. */
static bool choose_call(const struct ml_controller *self, const struct ml_object *object,
                        enum ml_reconcile_call *out)
{
    bool carries = ml_finalizer_carries(self->current, object);
    bool finalizes = self->current->declaration->finalizes && !self->removal.on;
    if (carries && !finalizes)
        *out = ML_CALL_RELEASE;
    else if (!ml_object_deleting(object) && ml_finalizer_is_former(self->current, object))
        *out = ML_CALL_TAKE_OVER;
    else if (ml_object_deleting(object))
        *out = ML_CALL_FINALIZE;
    else
        *out = ML_CALL_RECONCILE;
    return carries || (*out == ML_CALL_RECONCILE && !self->removal.on);
}

/* The object of a key; NULL for one that is gone, or going without our finalizer: what it owns goes
 * with it, and nothing new must appear under it. NULL as well for what is another replica's by now.
 * `out`: what is to be called for it. */
static struct ml_object *prepare_key(struct ml_controller *self, struct ml_str key,
                                     enum ml_reconcile_call *out)
{
    struct ml_object *object = controller_object(self, key);
    if (object && controller_acts(self, key) && choose_call(self, object, out))
        return object;
    if (!object) {
        controller_forget_key(self, key);
        return NULL;
    }
    ml_workqueue_forget(self->queue, key);
    ml_keys_forget_failures(&self->keys, key);
    free(ml_keys_take_cause(&self->keys, key));
    return NULL;
}

static void start_reconcile(struct work *work, struct ml_object *object)
{
    struct ml_controller *self = work->controller;
    ml_enqueue_filter_begun(self->filter, work->key);
    work->revision = self->current;
    work->reconcile = ml_reconcile_start(self->current, object, work->call, &reconcile_handler,
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
    repeat->told = true;
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
 * the owner again. They also wait while another turn of this controller waits, or while it has used
 * more than its share of the CPU: edits that come until then go first. */
static bool may_begin_another(const struct ml_controller *self, enum ml_priority *out_least)
{
    bool all = self->low_in_flight < LOW_IN_FLIGHT_MAX;
    *out_least = all ? ML_PRIORITY_LOW : ML_PRIORITY_NORMAL;
    return self->current && !self->stopping && !self->services->standby &&
           ml_payer_idle(&self->payer) && circuit_lets_begin(self) &&
           !ml_informer_is_degraded(self->current->informers[0]) &&
           self->in_flight < self->current->declaration->concurrency_max;
}

void controller_pump(void *context)
{
    struct ml_controller *self = context;
    struct ml_str key;
    enum ml_priority least, priority;
    while (may_begin_another(self, &least) && ml_workqueue_get(self->queue, least, &key, &priority))
        begin_key(self, key, priority);
}

void controller_cancel_work(struct ml_controller *self)
{
    ml_list_each_entry (struct work, work, &self->works) {
        ml_live_read_cancel(work->live_read);
        if (work->reconcile)
            ml_reconcile_cancel(work->reconcile);
        end_work(work, false);
    }
}

static void cut_lost_work(struct work *work)
{
    struct ml_controller *self = work->controller;
    ml_live_read_cancel(work->live_read);
    if (work->reconcile) {
        ml_warn(self->services->log, self->name,
                "another replica gets this object; ended between two writes",
                CONTROLLER_KEY_FIELDS(self, work->key),
                ML_S("reconcileID", ml_reconcile_id(work->reconcile)));
        ml_reconcile_cancel(work->reconcile);
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
