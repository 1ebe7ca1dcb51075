/* One version of a controller script: its way to work and to its end, and which keys a change of a
 * watched object concerns. The controller starts and retires it, the informers tell it of changes.
 */
#include "operator/revision.h"

#include "base/escape.h"
#include "base/repeat.h"
#include "kube/object_diff.h"

/* A kind that is not installed is looked for this often: soon enough for a person who has just
 * applied a CRD, rarely enough for a server. */
#define RETRY_NS (2 * ML_NS_PER_S)

/* The longest time that a function may take, nearly; a watch function has as long as a reconcile.
 */
#define WHEN_MAX_NS (10 * ML_NS_PER_MS)
#define MAP_MAX_NS  (100 * ML_NS_PER_MS)

#define UNMAPPED_MAX 256 /* changes that wait for their watch function; then all are concerned */

struct watched_kind {
    struct ml_revision *revision;
    const struct ml_script_kind *declared;
    struct ml_discovery_wait *resolving;
    struct ml_timer retry;
    struct ml_listener listener;
    struct ml_repeat repeat; /* of looking it up, for the log */
    char *trouble;           /* why the last try to look it up failed, or NULL */
    bool is_missing;         /* the server answered that there is no such kind */
};

/* A change that the watch function of its kind was not asked about yet. */
struct unmapped {
    struct watched_kind *watched;
    struct ml_change change; /* holds its objects */
    struct ml_list node;
};

static size_t watched_index(const struct watched_kind *watched)
{
    return (size_t)(watched - watched->revision->watched);
}

static void report_function_failed(const struct watched_kind *watched, struct ml_object *object,
                                   const struct ml_err *err)
{
    struct ml_revision *self = watched->revision;
    self->handler->function_failed(self->context, self, self->kinds[watched_index(watched)], object,
                                   err);
}

/* Does the change count? An object that appears, is deleted or is being deleted always does, and so
 * does one that somebody pauses, or wants to be reconciled now. So does a change at which the
 * script's own function fails, or for which it has no CPU time left: a mistake in the function
 * loses no change. */
static bool change_counts(const struct watched_kind *watched, const struct ml_change *change)
{
    const struct ml_script_kind *declared = watched->declared;
    struct ml_object *old = change->old, *new = change->new;
    if (!old || !new || ml_object_deleting(old) != ml_object_deleting(new) ||
        ml_object_paused(old) != ml_object_paused(new) || ml_object_retried(old, new))
        return true;
    if (!declared->when_function)
        return declared->when == ML_PART_ALL ||
               (ml_object_diff(old, new, NULL) & declared->when) != 0;
    bool yes = true;
    struct ml_err err = ML_ERR_INIT;
    if (ml_cpu_account_may_ask(watched->revision->cpu_account, WHEN_MAX_NS) &&
        ml_script_when(watched->revision->script, watched_index(watched), old, new, &yes, &err) < 0)
        report_function_failed(watched, new, &err);
    return yes;
}

/* The owner of `object`, or who follows it, as a key of the reconciled kind; false: nobody.
 * Group and kind count, the version does not (controller-runtime, handler.EnqueueRequestForOwner).
 */
static bool owner_key(const struct ml_revision *self, struct ml_object *object,
                      struct ml_buf *out_key)
{
    const struct ml_kind *kind = self->kinds[0];
    struct ml_owner owner;
    if (!object)
        return false;
    if (!ml_object_controller(object, &owner))
        return self->declaration->finalizes && kind->namespaced &&
               ml_tracked_key(object, self->declaration->name, self->declaration->formerly,
                              out_key);
    if (!ml_str_is(owner.group, kind->group) || !ml_str_is(owner.kind, kind->kind))
        return false;
    if (kind->namespaced)
        ml_buf_printf(out_key, ML_STR_FMT "/", ML_STR_ARG(ml_object_namespace(object)));
    return ml_buf_append_str(out_key, owner.name);
}

static void add_key(void *keys, struct ml_str key)
{
    ml_buf_append_str(keys, key);
    ml_buf_append_str(keys, (struct ml_str){"", 1});
}

/* The owner, and the old one too: it may have lost the object. */
static void add_owners(struct ml_revision *self, const struct ml_change *change,
                       struct ml_buf *keys)
{
    ML_AUTO(ml_buf_fini) struct ml_buf before = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf now = ML_BUF_INIT;
    bool had = owner_key(self, change->old, &before);
    bool has = owner_key(self, change->new, &now);
    if (has)
        add_key(keys, ml_buf_str(&now));
    if (had && !(has && ml_str_eq(ml_buf_str(&before), ml_buf_str(&now))))
        add_key(keys, ml_buf_str(&before));
}

/* A key that only the old state concerns is added, too. */
static void add_mapped(struct watched_kind *watched, const struct ml_change *change,
                       struct ml_buf *keys)
{
    struct ml_object *const states[] = {change->old, change->new};
    for (size_t i = 0; i < ML_COUNT(states); i++) {
        struct ml_err err = ML_ERR_INIT;
        if (states[i] && ml_script_map(watched->revision->script, watched_index(watched), states[i],
                                       add_key, keys, &err) < 0)
            report_function_failed(watched, states[i], &err);
    }
}

static void unmapped_free(struct ml_revision *self, struct unmapped *unmapped)
{
    ml_list_remove(&unmapped->node);
    self->unmapped_count--;
    ml_change_unref(&unmapped->change);
    free(unmapped);
}

static void drop_unmapped(struct ml_revision *self)
{
    ml_list_each_entry (struct unmapped, unmapped, &self->unmapped)
        unmapped_free(self, unmapped);
}

static void map_change_later(struct watched_kind *watched, const struct ml_change *change)
{
    struct ml_revision *self = watched->revision;
    if (!ml_slice_waits(&self->map_slice))
        ml_slice_wait(&self->map_slice, self->cpu_account);
    if (self->unmapped_count == UNMAPPED_MAX) {
        self->concerns_all = true;
        drop_unmapped(self);
    }
    if (self->concerns_all)
        return;
    struct unmapped *unmapped = ml_new(struct unmapped);
    unmapped->watched = watched;
    unmapped->change = ml_change_ref(change);
    ml_list_push(&self->unmapped, &unmapped->node);
    self->unmapped_count++;
}

/* One change a slice. A watch function cannot wait for an index, so its slice does. */
static void on_map_slice(void *context)
{
    struct ml_revision *self = context;
    if (!ml_script_index_work(self->script)) {
        ml_slice_wait(&self->map_slice, self->cpu_account);
        return;
    }
    if (self->concerns_all) {
        self->concerns_all = false;
        self->handler->concerns_all(self->context);
        return;
    }
    struct unmapped *next = ml_container_of(self->unmapped.next, struct unmapped, node);
    ML_AUTO(ml_buf_fini) struct ml_buf keys = ML_BUF_INIT;
    add_mapped(next->watched, &next->change, &keys);
    self->handler->mapped(self->context, self, &keys, &next->change);
    unmapped_free(self, next);
    if (self->unmapped_count > 0)
        ml_slice_wait(&self->map_slice, self->cpu_account);
}

/* In order: what waits goes first. */
static void map_change(struct watched_kind *watched, const struct ml_change *change,
                       struct ml_buf *keys)
{
    struct ml_revision *self = watched->revision;
    if (!ml_slice_waits(&self->map_slice) && !ml_script_index_pending(self->script) &&
        ml_cpu_account_may_ask(self->cpu_account, MAP_MAX_NS))
        add_mapped(watched, change, keys);
    else
        map_change_later(watched, change);
}

/* ---- indexes ---- */

static void on_index_slice(void *context)
{
    struct ml_revision *self = context;
    if (!ml_script_index_work(self->script))
        ml_slice_wait(&self->index_slice, self->cpu_account);
}

/* At once, if the script has not used up its share of the CPU; else in slices. Before the revision
 * is live, and after it is retired, whoever needs the indexes does the work. */
static void update_indexes(struct watched_kind *watched, struct ml_object *old,
                           struct ml_object *new)
{
    struct ml_revision *self = watched->revision;
    ml_script_index_change(self->script, watched_index(watched), old, new);
    if (!self->live || !ml_script_index_pending(self->script) || ml_slice_waits(&self->index_slice))
        return;
    if (!ml_cpu_account_may_ask(self->cpu_account, WHEN_MAX_NS) ||
        !ml_script_index_work(self->script))
        ml_slice_wait(&self->index_slice, self->cpu_account);
}

static void on_index_failed(void *context, size_t kind, struct ml_object *object,
                            const struct ml_err *err)
{
    struct ml_revision *self = context;
    self->handler->index_failed(self->context, self, self->kinds[kind], object, err);
}

/* ---- changes ---- */

struct ml_revision *ml_revision_of(const void *watched)
{
    return ((const struct watched_kind *)watched)->revision;
}

bool ml_revision_changed(void *context, struct ml_informer *informer, struct ml_object *old,
                         struct ml_object *new, struct ml_affected *out)
{
    struct watched_kind *watched = context;
    struct ml_revision *self = watched->revision;
    enum ml_script_use use = watched->declared->use;
    size_t index = watched_index(watched);
    *out = (struct ml_affected){
        .change =
            {
                .informer = informer,
                .old = old,
                .new = new,
                .reconciled = use == ML_USE_RECONCILES,
                .child_deleted = use == ML_USE_OWNS && !new,
                .number = ml_informer_changes(informer),
            },
        .gone = use == ML_USE_RECONCILES && !new,
    };
    if (ml_script_indexes(self->script, index))
        update_indexes(watched, old, new);
    if (!self->live || !change_counts(watched, &out->change))
        return false;
    if (use == ML_USE_RECONCILES)
        add_key(&out->keys, ml_object_key(new ? new : old));
    else if (use == ML_USE_OWNS)
        add_owners(self, &out->change, &out->keys);
    else if (use == ML_USE_WATCHES)
        map_change(watched, &out->change, &out->keys);
    out->named_kind = ml_revision_kind_index(self, informer) == index ? index : SIZE_MAX;
    return true;
}

/* The indexes are made in pieces, a piece in a round of the loop. */
static void report_ready(void *context)
{
    struct ml_revision *self = context;
    if (!ml_script_index_work(self->script)) {
        ml_task_defer(&self->ready_task, self->services->loop);
        return;
    }
    self->handler->ready(self->context, self);
}

static void count_synced_kind(struct ml_revision *self)
{
    if (--self->unsynced == 0)
        ml_task_defer(&self->ready_task, self->services->loop);
}

static void on_kind_synced(void *context, struct ml_informer *informer)
{
    struct watched_kind *watched = context;
    (void)informer;
    count_synced_kind(watched->revision);
}

static void on_kind_mended(void *context, struct ml_informer *informer)
{
    struct watched_kind *watched = context;
    struct ml_revision *self = watched->revision;
    (void)informer;
    if (self->live && watched->declared->use == ML_USE_RECONCILES)
        self->handler->mended(self->context);
}

static void watch_kind(struct watched_kind *watched, const struct ml_kind *kind)
{
    struct ml_revision *self = watched->revision;
    size_t index = watched_index(watched);
    self->kinds[index] = kind;
    if (watched->declared->use == ML_USE_TOUCHES) {
        count_synced_kind(self);
        return;
    }
    self->informers[index] = ml_informers_get(self->services->informers, kind,
                                              &watched->declared->selection);
    watched->listener = (struct ml_listener){
        .change = self->handler->change,
        .synced = on_kind_synced,
        .mended = on_kind_mended,
        .context = watched,
    };
    ml_informer_listen(self->informers[index], &watched->listener);
}

static void log_waiting(struct watched_kind *watched, const struct ml_err *err)
{
    const struct ml_revision *self = watched->revision;
    const struct ml_gvk *gvk = &watched->declared->gvk;
    if (ml_repeat_failed(&watched->repeat, ml_str_of(err->message),
                         ml_clock_monotonic(self->services->clock)))
        ml_warn(self->services->log, self->declaration->name,
                err->kind == ML_ENOT_FOUND ? "kind is not installed; waiting for it"
                                           : "kind cannot be looked up; trying again",
                ML_S("controller", self->declaration->name), ML_ERR_FIELDS(err),
                ML_REVISION_FIELDS(self), ML_STR_FIELD("group", gvk->group),
                ML_STR_FIELD("version", gvk->version), ML_STR_FIELD("kind", gvk->kind),
                ML_REPEAT_FIELDS(&watched->repeat, RETRY_NS));
}

static void on_kind_resolved(void *context, const struct ml_kind *kind, const struct ml_err *err)
{
    struct watched_kind *watched = context;
    watched->resolving = NULL;
    free(ml_take(&watched->trouble));
    watched->is_missing = err && err->kind == ML_ENOT_FOUND;
    if (!err) {
        watch_kind(watched, kind);
        return;
    }
    watched->trouble = ml_strdup(err->message);
    log_waiting(watched, err);
    ml_timer_start(&watched->retry, RETRY_NS);
}

static void resolve_kind(void *context)
{
    struct watched_kind *watched = context;
    watched->resolving = ml_discovery_resolve(watched->revision->services->discovery,
                                              &watched->declared->gvk, on_kind_resolved, watched);
}

struct ml_revision *ml_revision_new(struct ml_services *services, struct ml_script *script,
                                    const struct ml_revision_handler *handler, void *context)
{
    struct ml_revision *self = ml_new(struct ml_revision);
    self->refs = 1;
    self->services = services;
    self->script = script;
    self->unkept.budget = ml_script_budget(script);
    self->declaration = ml_script_declaration(script);
    self->handler = handler;
    self->context = context;
    size_t count = self->declaration->kind_count;
    self->watched = ml_zalloc(count * sizeof *self->watched);
    self->kinds = ml_zalloc(count * sizeof *self->kinds);
    self->informers = ml_zalloc(count * sizeof *self->informers);
    self->unsynced = count;
    ml_task_init(&self->ready_task, report_ready, self);
    ml_list_init(&self->unmapped);
    ml_slice_init(&self->map_slice, on_map_slice, self);
    ml_slice_init(&self->index_slice, on_index_slice, self);
    ml_script_on_index_failed(script, on_index_failed, self);
    for (size_t i = 0; i < count; i++) {
        struct watched_kind *watched = &self->watched[i];
        watched->revision = self;
        watched->declared = &self->declaration->kinds[i];
        ml_timer_init(&watched->retry, services->loop, resolve_kind, watched);
        resolve_kind(watched);
    }
    return self;
}

static bool lets_write(void *context, const struct ml_write *write, struct ml_err *err)
{
    struct ml_revision *self = context;
    if (self->stopped) {
        ml_err_set(err, ML_ECANCELED, "revision %s of %s was stopped: it writes nothing any more",
                   self->declaration->revision, self->declaration->file);
        return false;
    }
    return write->request.verb != ML_VERB_DELETE || !self->handler->lets_delete ||
           self->handler->lets_delete(self->context, self, write->deletion.owner, err);
}

void ml_revision_live(struct ml_revision *self, struct ml_expectations *expectations,
                      struct ml_cpu_account *cpu_account)
{
    ml_assert(self->unsynced == 0);
    self->check = (struct ml_write_check){.lets = lets_write, .context = self};
    const struct ml_script_binding binding = {
        .kinds = self->kinds,
        .informers = self->informers,
        .expectations = expectations,
        .cpu_account = cpu_account,
        .check = &self->check,
    };
    ml_script_bind(self->script, &binding);
    self->expectations = expectations;
    self->cpu_account = cpu_account;
    self->live = true;
}

void ml_revision_stop(struct ml_revision *self)
{
    self->stopped = true;
}

void ml_revision_retire(struct ml_revision *self)
{
    self->live = false;
    for (size_t i = 0; i < self->declaration->kind_count; i++) {
        struct watched_kind *watched = &self->watched[i];
        if (watched->resolving)
            ml_discovery_cancel(ml_take(&watched->resolving));
        ml_timer_stop(&watched->retry);
        if (watched->listener.informer && !ml_script_indexes(self->script, i))
            ml_informer_unlisten(&watched->listener);
    }
    ml_task_cancel(&self->ready_task);
    ml_slice_cancel(&self->map_slice);
    ml_slice_cancel(&self->index_slice);
    drop_unmapped(self);
}

struct ml_revision *ml_revision_ref(struct ml_revision *self)
{
    self->refs++;
    return self;
}

/* Gives an informer back. Keys that wait for it would wait for ever if it stops: when nobody
 * else watches the kind, the expectations lets them go. */
static void release_informer(struct ml_revision *self, size_t index)
{
    struct ml_informer *informer = self->informers[index];
    if (!informer)
        return;
    if (self->expectations && ml_informer_users(informer) == 1)
        ml_expectations_drop_informer(self->expectations, informer);
    ml_informer_put(informer);
}

void ml_revision_unref(struct ml_revision *self)
{
    if (!self || --self->refs > 0)
        return;
    ml_revision_retire(self);
    /* A webhook that waits for its slice may still have the script: its reads fail from now on. */
    ml_script_bind(self->script, &(struct ml_script_binding){.kinds = NULL});
    for (size_t i = 0; i < self->declaration->kind_count; i++) {
        ml_informer_unlisten(&self->watched[i].listener);
        release_informer(self, i);
        free(self->watched[i].trouble);
    }
    ml_script_on_index_failed(self->script, NULL, NULL);
    ml_unkept_fini(&self->unkept); /* before the script, to which it is charged */
    ml_script_unref(self->script);
    free(self->watched);
    free(self->kinds);
    free(self->informers);
    free(self);
}

size_t ml_revision_kind_index(const struct ml_revision *self, const struct ml_informer *informer)
{
    size_t index = 0;
    while (self->informers[index] != informer)
        ml_assert(++index < self->declaration->kind_count);
    return index;
}

bool ml_revision_stays_synced(const struct ml_revision *self, struct ml_buf *why)
{
    bool synced = true;
    for (size_t i = 0; i < self->declaration->kind_count; i++) {
        if (!self->informers[i] || !ml_informer_is_degraded(self->informers[i]))
            continue;
        synced = false;
        ml_append_line(why, "%s: cannot watch %s: %s", self->declaration->file,
                       self->kinds[i]->plural, ml_informer_trouble(self->informers[i])->message);
    }
    return synced;
}

bool ml_revision_misses_kind(const struct ml_revision *self)
{
    for (size_t i = 0; i < self->declaration->kind_count; i++) {
        const struct ml_err *trouble = self->informers[i] ? ml_informer_trouble(self->informers[i])
                                                          : NULL;
        if ((!self->kinds[i] && self->watched[i].is_missing) ||
            (trouble && trouble->kind == ML_ENOT_FOUND))
            return true;
    }
    return false;
}

/* Appends a line unless the kind of this index is in the cache. */
static bool kind_is_synced(const struct ml_revision *self, size_t index, struct ml_buf *why)
{
    const struct watched_kind *watched = &self->watched[index];
    const struct ml_informer *informer = self->informers[index];
    const char *file = self->declaration->file;
    if (!self->kinds[index] && watched->trouble) {
        ml_append_line(why, "%s: %s", file, watched->trouble);
        return false;
    }
    if (!self->kinds[index]) {
        ml_append_line(why, "%s: kind " ML_STR_FMT " is being looked up", file,
                       ML_STR_ARG(watched->declared->gvk.kind));
        return false;
    }
    if (!informer || ml_informer_synced(informer))
        return true;
    const struct ml_err *trouble = ml_informer_trouble(informer);
    if (trouble)
        ml_append_line(why, "%s: cannot watch %s: %s", file, self->kinds[index]->plural,
                       trouble->message);
    else
        ml_append_line(why, "%s: the first list of %s is not complete yet", file,
                       self->kinds[index]->plural);
    return false;
}

bool ml_revision_is_synced(const struct ml_revision *self, struct ml_buf *why)
{
    bool synced = true;
    for (size_t i = 0; i < self->declaration->kind_count; i++)
        synced = kind_is_synced(self, i, why) && synced;
    if (synced && !self->live && ml_script_index_pending(self->script)) {
        ml_append_line(why, "%s: its indexes are not complete yet", self->declaration->file);
        synced = false;
    }
    return synced;
}
