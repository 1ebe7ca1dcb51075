/* The keys of a controller, from the enqueue filter to the end of their reconcile: who may begin,
 * and what becomes of a key that has ended. */
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
    int64_t started_ns;
    char *cause; /* NULL: not known, or not to be logged */
    bool probes; /* whether the script stays within its limits again */
    struct ml_list node;
};

struct cause {
    char *text;
    char key[];
};

void controller_note_cause(struct ml_controller *self, struct ml_str key, const char *what,
                           struct ml_str object_key)
{
    if (!self->cluster->log || self->cluster->log->level > ML_LOG_DEBUG)
        return;
    struct cause *cause = ml_map_get(&self->causes, key);
    if (!cause) {
        cause = ml_zalloc(sizeof *cause + key.len);
        memcpy(cause->key, key.ptr, key.len);
        ml_map_put(&self->causes, (struct ml_str){cause->key, key.len}, cause);
    }
    free(cause->text);
    cause->text = ml_asprintf("%s%s" ML_STR_FMT, what, object_key.len ? " " : "",
                              ML_STR_ARG(object_key));
}

char *controller_take_cause(struct ml_controller *self, struct ml_str key)
{
    struct cause *cause = ml_map_remove(&self->causes, key);
    char *text = cause ? cause->text : NULL;
    free(cause);
    return text;
}

void controller_drop_causes(struct ml_controller *self)
{
    ml_map_each (&self->causes, cursor, value) {
        struct cause *cause = value;
        free(cause->text);
        free(cause);
    }
    ml_map_fini(&self->causes);
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
    const struct ml_controller *self = context;
    return ml_read_sets_uncertain(self->read_sets, self->current, key);
}

static void on_key_skipped(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    (void)key;
    ml_metric_add(self->metrics.skipped, 1);
}

static void on_key_woken(void *context, struct ml_str key, const struct ml_change *change,
                         int64_t delay_ns)
{
    struct ml_controller *self = context;
    const struct ml_object *object = !change ? NULL : change->new ? change->new : change->old;
    if (object)
        note_change_as_cause(self, key, change, ml_object_key(object));
    else
        controller_note_cause(self, key, "changes", ML_STR(""));
    if (delay_ns > 0)
        ml_workqueue_add_after(self->queue, key, ML_PRIORITY_NORMAL, delay_ns);
    else
        ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
}

static void on_key_slowed(void *context, struct ml_str key, const char *fields, int64_t delay_ns)
{
    struct ml_controller *self = context;
    const struct ml_informer *informer = ml_revision_informer(self->current);
    struct ml_object *object = ml_store_get(ml_informer_store(informer), key);
    ml_metric_add(self->metrics.slowed, 1);
    ML_AUTO_FREE char *repeats = ml_asprintf("wakes itself " ML_STR_FMT, ML_STR_ARG(key));
    struct ml_repeat *repeat = ml_repeats_get(&self->failures, ml_str_of(repeats));
    if (ml_repeat_failed(repeat, ml_str_of(fields), ml_clock_monotonic(self->cluster->clock)))
        ml_warn(self->cluster->log, self->name, "script wakes itself; slowing it down",
                ML_OBJECT_FIELDS(self->name, ml_revision_kind(self->current)->kind, key),
                ML_S("changes", fields), ML_REPEAT_FIELDS(repeat, delay_ns));
    if (!object)
        return;
    ML_AUTO_FREE char *note = ml_asprintf(
        "each run changes what brings the next one: %s; the next run waits %d s", fields,
        (int)(delay_ns / ML_NS_PER_S));
    ml_object_warning(self->cluster, ml_informer_kind(informer), object, "SelfTriggered", note);
}

static void on_key_hot(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    const struct ml_informer *informer = ml_revision_informer(self->current);
    struct ml_object *object = ml_store_get(ml_informer_store(informer), key);
    ml_metric_add(self->metrics.slowed, 1);
    ml_warn(self->cluster->log, self->name,
            "script asks to be called again at once, again and again; slowing it down",
            ML_OBJECT_FIELDS(self->name, ml_revision_kind(self->current)->kind, key));
    if (object)
        ml_object_warning(self->cluster, ml_informer_kind(informer), object, "SelfTriggered",
                          "each run asks to be called again at once (requeue_after, requeue_at): "
                          "after 100 of them the next ones wait, up to 1 s");
}

static const struct ml_enqueue_filter_handler enqueue_handler = {
    .wake = on_key_woken,
    .matters = on_asked_if_it_matters,
    .uncertain = on_asked_if_uncertain,
    .skipped = on_key_skipped,
    .slowed = on_key_slowed,
    .hot = on_key_hot,
};

/* In virtual time nobody's core is taken, and what has no end is told as that. */
static const struct ml_enqueue_filter_handler enqueue_handler_in_virtual_time = {
    .wake = on_key_woken,
    .matters = on_asked_if_it_matters,
    .uncertain = on_asked_if_uncertain,
    .skipped = on_key_skipped,
    .slowed = on_key_slowed,
};

void controller_make_filter(struct ml_controller *self)
{
    self->filter = ml_enqueue_filter_new(self->cluster->loop, self->expectations,
                                         ml_turns_metered(self->cluster->turns)
                                             ? &enqueue_handler
                                             : &enqueue_handler_in_virtual_time,
                                         self);
}

/* What the cache shows of it is not what the server has. */
static void mark_cache_stale(struct ml_controller *self, struct ml_str key)
{
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    const struct ml_object *object = ml_store_get(store, key);
    if (object)
        ml_expectations_conflict(self->expectations, object);
}

static void requeue_after(const struct work *work, enum ml_priority priority, int64_t delay_ns)
{
    struct ml_controller *self = work->controller;
    controller_note_cause(self, work->key, "requeue", ML_STR(""));
    ml_workqueue_add_after(self->queue, work->key, priority,
                           ml_enqueue_filter_restrain(self->filter, work->key, delay_ns));
}

/* Puts a key that failed into its backoff, which the next answer of a server that gave none ends.
 * Returns the delay in ns. */
static int64_t back_off(const struct work *work, unsigned doublings, const struct ml_err *err)
{
    struct ml_controller *self = work->controller;
    controller_note_cause(self, work->key, "retry", ML_STR(""));
    int64_t delay_ns = ml_workqueue_add_rate_limited_by(self->queue, work->key, work->priority,
                                                        doublings);
    if (ml_client_unanswered(err)) {
        ml_workqueue_await_server(self->queue, work->key);
        ml_client_await(self->cluster->client, &self->await);
    }
    return delay_ns;
}

/* What becomes of the key (machinery of controller-runtime's reconcileHandler). The newest
 * result decides about the timer: one that an earlier run asked for is taken back. A key keeps
 * its priority, so that what fails or comes regularly since the start does not crowd out edits;
 * an instant that was asked for is work that is due, whatever brought it up. Returns in how many ns
 * it is tried again after a failure; -1: not by itself. */
static int64_t requeue_key(const struct work *work, const struct ml_reconcile_end *end)
{
    struct ml_controller *self = work->controller;
    struct ml_str key = work->key;
    ml_workqueue_cancel_after(self->queue, key);
    switch (end->outcome) {
    case ML_OUTCOME_ERROR:
        if (end->err.kind == ML_ECONFLICT)
            mark_cache_stale(self, key);
        return back_off(work, self->circuit.hits, &end->err);
    case ML_OUTCOME_TERMINAL:
    case ML_OUTCOME_INVALID:
        break;
    case ML_OUTCOME_OK:
        ml_workqueue_forget(self->queue, key);
        if (end->requeue_after_ns >= 0)
            requeue_after(work, work->priority, end->requeue_after_ns);
        if (end->requeue_at_ns >= 0)
            requeue_after(work, ML_PRIORITY_NORMAL,
                          ml_ns_between(ml_clock_wall(self->cluster->clock), end->requeue_at_ns));
        break;
    }
    return -1;
}

/* `good`: its reconcile was. */
static void end_work(struct work *work, bool good)
{
    struct ml_controller *self = work->controller;
    ml_list_remove(&work->node);
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
        ml_task_defer(&self->stopped_task, self->cluster->loop);
}

static void update_circuit(struct work *work, const struct ml_reconcile_end *end)
{
    struct ml_controller *self = work->controller;
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    if (end->limit)
        controller_limit_hit(self, ml_store_get(store, work->key), &end->err);
    else if (end->outcome != ML_OUTCOME_ERROR)
        controller_circuit_close(self);
}

static const char *result_of(const struct ml_reconcile_end *end)
{
    switch (end->outcome) {
    case ML_OUTCOME_OK:
        return end->requeue_after_ns >= 0 || end->requeue_at_ns >= 0 ? "requeue_after" : "success";
    case ML_OUTCOME_ERROR:
        return "error";
    case ML_OUTCOME_TERMINAL:
        return "terminal";
    case ML_OUTCOME_INVALID:
        return "invalid";
    }
    ML_UNREACHABLE();
}

static void log_reconciled(const struct work *work, const struct ml_reconcile_end *end,
                           int64_t took_ns)
{
    const struct ml_controller *self = work->controller;
    bool good = end->outcome == ML_OUTCOME_OK;
    ml_debug(self->cluster->log, self->name, "reconciled",
             ML_OBJECT_FIELDS(self->name, ml_revision_kind(self->current)->kind, work->key),
             ML_S("reconcileID", ml_reconcile_id(work->reconcile)),
             ML_S(good ? "" : "error", end->err.message),
             ML_S(good ? "" : "errorKind", ml_err_name(end->err.kind)),
             ML_S(work->cause ? "cause" : "", work->cause),
             ML_F("duration_ms", (double)took_ns / (double)ML_NS_PER_MS),
             ML_I("writes", end->writes), ML_S("result", result_of(end)));
}

void controller_report_reads_off(struct ml_controller *self)
{
    const struct ml_revision *revision = self->current;
    const char *why = ml_script_reads_off(ml_revision_script(revision));
    if (!why || self->reads_off == ml_revision_number(revision))
        return;
    self->reads_off = ml_revision_number(revision);
    ml_info(self->cluster->log, self->name,
            "what a reconcile reads does not decide about its result; every change wakes it",
            ML_S("controller", self->name),
            ML_S("controllerKind", ml_revision_kind(revision)->kind),
            ML_S("script", ml_revision_declaration(revision)->file),
            ML_I("revision", ml_revision_number(revision)), ML_S("reason", why));
}

/* What the run read decides which changes wake the key from now on; also those that came
 * meanwhile. */
static void keep_reads(const struct work *work, const struct ml_reconcile_end *end)
{
    struct ml_controller *self = work->controller;
    bool counts = end->outcome == ML_OUTCOME_OK && end->revision == self->current;
    ml_read_sets_put(self->read_sets, work->key, counts ? end->reads : NULL, &end->read_versions,
                     end->wrote_status);
    ml_metric_set(self->metrics.read_set_bytes, (double)ml_read_sets_bytes(self->read_sets));
    controller_report_reads_off(self);
}

static void on_reconciled(void *context, const struct ml_reconcile_end *end)
{
    struct work *work = context;
    struct ml_controller *self = work->controller;
    int64_t took_ns = ml_clock_monotonic(self->cluster->clock) - work->started_ns;
    ml_controller_metrics_count(&self->metrics, end, took_ns);
    log_reconciled(work, end, took_ns);
    update_circuit(work, end);
    ml_reconcile_log_failure(work->reconcile, &self->failures, requeue_key(work, end));
    keep_reads(work, end);
    ml_enqueue_filter_ended(self->filter, work->key);
    end_work(work, end->outcome == ML_OUTCOME_OK);
    controller_end_when_idle(self);
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
static struct ml_object *object_to_reconcile(struct ml_controller *self, struct ml_str key)
{
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    struct ml_object *object = ml_store_get(store, key);
    if (object && !ml_object_deleting(object) && controller_acts(self, key))
        return object;
    if (!object)
        ml_expectations_clear(self->expectations, key); /* its last child goes after it */
    ml_workqueue_forget(self->queue, key);
    ml_repeats_over(&self->failures, key);
    free(controller_take_cause(self, key));
    return NULL;
}

static void start_reconcile(struct work *work, struct ml_object *object)
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
    struct ml_object *object = err ? NULL : object_to_reconcile(self, work->key);
    work->live_read = NULL;
    if (object) {
        start_reconcile(work, object);
        return;
    }
    if (err) {
        ml_debug(self->cluster->log, self->name, "the cache is behind; trying again",
                 ML_OBJECT_FIELDS(self->name, ml_revision_kind(self->current)->kind, work->key),
                 ML_ERR(err), ML_S("errorKind", ml_err_name(err->kind)));
        back_off(work, 0, err);
    }
    end_work(work, false);
    controller_end_when_idle(self);
    controller_pump(self);
}

static void begin_key(struct ml_controller *self, struct ml_str key, enum ml_priority priority)
{
    struct ml_object *object = object_to_reconcile(self, key);
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
    work->cause = controller_take_cause(self, key);
    work->probes = ml_circuit_begin(&self->circuit);
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
    return self->circuit.state == ML_CIRCUIT_CLOSED ||
           ml_circuit_wait(&self->circuit, ml_clock_monotonic(self->cluster->clock)) == 0;
}

/* Is there room for one more, and down to which priority? Nothing begins while the reconciled kind
 * cannot be watched: what is made for an owner that is long gone is collected at once, and that
 * would bring the owner up again. Nor while another turn of this controller waits, or it has used
 * more than its share of the CPU: what is changed until then goes first. */
static bool may_begin_another(const struct ml_controller *self, enum ml_priority *out_least)
{
    bool all = self->low_in_flight < LOW_IN_FLIGHT_MAX;
    *out_least = all ? ML_PRIORITY_LOW : ML_PRIORITY_NORMAL;
    return self->current && !self->stopping && !self->cluster->standby &&
           ml_payer_idle(&self->payer) && circuit_lets_begin(self) &&
           !ml_informer_is_degraded(ml_revision_informer(self->current)) &&
           self->in_flight < ml_revision_declaration(self->current)->concurrency_max;
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
    ml_list_each (node, &self->works) {
        struct work *work = ml_container_of(node, struct work, node);
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
        ml_warn(self->cluster->log, self->name,
                "another replica gets this object; ended between two writes",
                ML_OBJECT_FIELDS(self->name, ml_revision_kind(self->current)->kind, work->key),
                ML_S("reconcileID", ml_reconcile_id(work->reconcile)));
        ml_reconcile_cancel(work->reconcile);
        ml_read_sets_drop(self->read_sets, work->key);
        ml_enqueue_filter_ended(self->filter, work->key);
    }
    end_work(work, false);
}

bool ml_controller_hand_over(struct ml_controller *self, bool cut)
{
    bool idle = true;
    ml_list_each (node, &self->works) {
        struct work *work = ml_container_of(node, struct work, node);
        if (controller_acts(self, work->key))
            continue;
        if (!work->reconcile || (cut && !ml_reconcile_writes(work->reconcile)))
            cut_lost_work(work);
        else
            idle = false;
    }
    controller_end_when_idle(self);
    return idle;
}
