/* Runs one or two revisions over the cached objects, each on a mirror, and compares the worlds that
 * result. */
#include "operator/plan.h"

#include "operator/reconcile.h"

#include <malloc.h>

#define RUNS_MAX         4 /* of one object */
#define SERVER_READS_MAX 500
#define VALUE_LEN_MAX    60 /* for people */

const char *const ml_plan_verbs[ML_PLAN_VERBS] = {
    [ML_PLAN_CREATE] = "create", [ML_PLAN_CHANGE] = "change", [ML_PLAN_DELETE] = "delete"};

struct note {
    char *key, *text;
};

struct notes {
    struct note *items;
    size_t len;
};

/* One object of the sample. */
struct sampled {
    char *key;
    bool writes; /* its last run did */
    bool fails;  /* likewise */
    bool is_unknown;
};

/* One of the revisions. */
struct side {
    struct ml_plan *plan;
    struct ml_files files;
    struct ml_revision *watched; /* fills the caches */
    bool is_synced;

    struct ml_mirror *mirror;
    struct ml_revision *revision; /* on it */
    struct ml_keys keys;
    struct ml_expectations *expectations;
    struct ml_cpu_account cpu_account;
    bool has_account;

    struct sampled *objects; /* in the order of their keys */
    size_t object_count, at;
    unsigned run; /* each object has had so many */
    struct ml_reconcile *reconcile;
    size_t writes_before;
    struct notes notes[ML_PLAN_NOTES];
};

struct ml_plan {
    struct ml_plan_opts opts;
    struct ml_script_limits limits;
    struct side runs, next; /* the first one may have no files */
    size_t objects;         /* in the cache */
    struct ml_task begin, finish;
};

/* ---- notes ---- */

static void add_note(struct side *side, enum ml_plan_notes which, const char *key, char *text)
{
    struct notes *notes = &side->notes[which];
    notes->items = ml_realloc(notes->items, (notes->len + 1) * sizeof *notes->items);
    notes->items[notes->len++] = (struct note){ml_strdup(key), text};
}

static void notes_fini(struct notes *notes)
{
    for (size_t i = 0; i < notes->len; i++) {
        free(notes->items[i].key);
        free(notes->items[i].text);
    }
    free(notes->items);
}

static struct sampled *find_sampled(const struct side *side, const char *key)
{
    for (size_t low = 0, high = side->object_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(side->objects[middle].key, key);
        if (order == 0)
            return &side->objects[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Does the revision that works now fail for this object as well? */
static bool failed_before(const struct side *side, const char *key)
{
    const struct sampled *before = find_sampled(&side->plan->runs, key);
    return before && before->fails;
}

/* ---- one run ---- */

static void side_go_on(struct side *side);

/* The run of the current object has ended. */
static void side_end_run(struct side *side)
{
    struct sampled *object = &side->objects[side->at++];
    object->writes = ml_mirror_writes(side->mirror) != side->writes_before;
    ml_expectations_ended(side->expectations, ml_str_of(object->key), true);
    ml_reconcile_free(ml_take(&side->reconcile));
    side_go_on(side);
}

static void side_finish_run(struct side *side, const struct ml_result *result)
{
    struct sampled *object = &side->objects[side->at];
    bool was_told = object->fails;
    object->fails = result->outcome != ML_OUTCOME_OK;
    if (object->fails && !was_told && !failed_before(side, object->key))
        add_note(side, ML_PLAN_FAILS, object->key, ml_strdup(result->err->message));
    side_end_run(side);
}

static void on_ran(void *context, struct ml_result *result)
{
    struct side *side = context;
    const struct ml_result *end = ml_reconcile_ran(side->reconcile, result);
    if (end)
        side_finish_run(side, end);
}

static void on_written(void *context, struct ml_str body, const struct ml_err *err)
{
    struct side *side = context;
    const struct ml_result *end = ml_reconcile_written(side->reconcile, body, err);
    if (end)
        side_finish_run(side, end);
}

/* A failure is in the plan; it does not have to last. */
static bool on_asked_if_lasting(void *context ML_UNUSED)
{
    return true;
}

static const struct ml_reconcile_handler reconcile_handler = {
    .ran = on_ran, .written = on_written, .lasts = on_asked_if_lasting};

static void on_unknown(void *context, const char *what)
{
    struct side *side = context;
    struct sampled *object = &side->objects[side->at];
    if (!side->reconcile) /* it has ended without the answer */
        return;
    if (!object->is_unknown)
        add_note(side, ML_PLAN_UNKNOWN, object->key, ml_strdup(what));
    object->is_unknown = true;
    side_end_run(side);
}

static void on_shown(void *context ML_UNUSED, struct ml_str key ML_UNUSED)
{
}

/* False: nothing is called for it: it is gone, paused, or going without our finalizer. */
static bool side_begin_run(struct side *side)
{
    struct sampled *object = &side->objects[side->at];
    struct ml_str key = ml_str_of(object->key);
    struct ml_object *cached = ml_store_get(ml_revision_store(side->revision), key);
    enum ml_reconcile_call call;
    if (!cached || !ml_reconcile_choose(side->revision, cached, false, &call) ||
        call == ML_CALL_PAUSE ||
        !ml_expectations_satisfied(side->expectations, key, on_shown, side))
        return false;
    side->writes_before = ml_mirror_writes(side->mirror);
    ml_mirror_begin(side->mirror, key);
    side->reconcile = ml_reconcile_start(side->revision, cached, call, "plan", &reconcile_handler,
                                         side);
    return true;
}

/* ---- all runs of a revision ---- */

static void plan_next_side(struct ml_plan *self, struct side *ended);

/* False: no object needs another run. */
static bool side_begin_round(struct side *side)
{
    bool any = side->run == 0;
    for (size_t i = 0; i < side->object_count; i++)
        any = any || (side->objects[i].writes && !side->objects[i].is_unknown);
    if (!any || side->run == RUNS_MAX)
        return false;
    side->run++;
    side->at = 0;
    return true;
}

static bool needs_run(const struct side *side, const struct sampled *object)
{
    return side->run == 1 || (object->writes && !object->is_unknown);
}

static void side_end(struct side *side)
{
    for (size_t i = 0; side->run == RUNS_MAX && i < side->object_count; i++) {
        const struct sampled *object = &side->objects[i];
        const struct sampled *before = find_sampled(&side->plan->runs, object->key);
        if (object->writes && !object->is_unknown && side == &side->plan->next &&
            !(before && before->writes))
            add_note(side, ML_PLAN_ENDLESS, object->key,
                     ml_asprintf("run %d still writes", RUNS_MAX));
    }
    plan_next_side(side->plan, side);
}

static void side_go_on(struct side *side)
{
    do {
        for (; side->at < side->object_count; side->at++) {
            struct sampled *object = &side->objects[side->at];
            if (!needs_run(side, object))
                continue;
            if (side_begin_run(side))
                return;
            object->writes = false;
        }
    } while (side_begin_round(side));
    side_end(side);
}

/* ---- the sample ---- */

static int order_by_key(const void *a, const void *b)
{
    return strcmp(((const struct sampled *)a)->key, ((const struct sampled *)b)->key);
}

static uint64_t hash_of(const struct ml_object *object)
{
    return ml_str_hash(ml_object_key(object));
}

static int order_by_hash(const void *a, const void *b)
{
    uint64_t one = hash_of(*(struct ml_object *const *)a);
    uint64_t other = hash_of(*(struct ml_object *const *)b);
    return (one > other) - (one < other);
}

static int order_by_age(const void *a, const void *b)
{
    uint64_t one = ml_object_rv_number(*(struct ml_object *const *)a);
    uint64_t other = ml_object_rv_number(*(struct ml_object *const *)b);
    return (one < other) - (one > other);
}

/* Puts the tenth of the sample that changed last in front, and others by their hash: each process
 * takes the same. */
static void choose_sample(struct ml_object **objects, size_t count, size_t max)
{
    size_t newest = max / 10;
    qsort(objects, count, sizeof(struct ml_object *), order_by_age);
    qsort(objects + newest, count - newest, sizeof(struct ml_object *), order_by_hash);
}

static void side_choose_objects(struct side *side)
{
    const struct ml_store *store = ml_revision_store(side->revision);
    size_t count = 0, cursor = 0, max = side->plan->opts.objects_max;
    ML_AUTO_FREE struct ml_object **objects = ml_alloc((ml_store_len(store) + 1) *
                                                       sizeof(struct ml_object *));
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        objects[count++] = object;
    side->plan->objects = count;
    if (max > 0 && count > max) {
        choose_sample(objects, count, max);
        count = max;
    }
    side->objects = ml_zalloc((count + 1) * sizeof *side->objects);
    side->object_count = count;
    for (size_t i = 0; i < count; i++)
        side->objects[i].key = ml_str_dup(ml_object_key(objects[i]));
    qsort(side->objects, count, sizeof *side->objects, order_by_key);
}

/* ---- a revision on its mirror ---- */

static void on_mirrored_ready(void *context, struct ml_revision *revision)
{
    struct side *side = context;
    ml_revision_live(revision, side->expectations, &side->cpu_account);
    side_choose_objects(side);
    side->run = 1;
    side_go_on(side);
}

/* Keeps the indexes of the script up to date. Each key has its run, so those that the
 * change concerns do not matter. */
static void on_mirrored_change(void *watched, struct ml_informer *informer, struct ml_object *old,
                               struct ml_object *new)
{
    struct ml_affected affected;
    if (ml_revision_changed(watched, informer, old, new, &affected))
        ml_buf_fini(&affected.keys);
}

static void on_mapped(void *context ML_UNUSED, struct ml_revision *revision ML_UNUSED,
                      const struct ml_buf *keys ML_UNUSED, const struct ml_change *change ML_UNUSED)
{
}

static void on_nothing(void *context ML_UNUSED)
{
}

static void on_function_failed(void *context, struct ml_revision *revision ML_UNUSED,
                               const struct ml_kind *kind, struct ml_object *object,
                               const struct ml_err *err)
{
    ML_AUTO_FREE char *key = ml_asprintf("%s " ML_STR_FMT, kind->kind,
                                         ML_STR_ARG(ml_object_key(object)));
    add_note(context, ML_PLAN_FAILS, key, ml_strdup(err->message));
}

static const struct ml_revision_handler mirrored_handler = {
    .ready = on_mirrored_ready,
    .change = on_mirrored_change,
    .mapped = on_mapped,
    .concerns_all = on_nothing,
    .mended = on_nothing,
    .index_failed = on_function_failed,
    .function_failed = on_function_failed,
};

static struct ml_script *side_load(const struct side *side, struct ml_services *services,
                                   struct ml_err *err)
{
    const struct ml_load_opts opts = {
        .services = services, .limits = &side->plan->limits, .marker = side->plan->opts.marker};
    return ml_load_kept(&opts, &side->files, err);
}

static void side_begin(struct side *side)
{
    struct ml_plan *plan = side->plan;
    struct ml_err err = ML_ERR_INIT;
    const struct ml_mirror_opts opts = {
        .services = plan->opts.services,
        .before = side == &plan->next ? plan->runs.mirror : NULL,
        .reads_max = plan->opts.reads_max ? plan->opts.reads_max : SERVER_READS_MAX,
        .unknown = on_unknown,
        .context = side,
    };
    side->mirror = ml_mirror_new(&opts);
    struct ml_services *services = ml_mirror_services(side->mirror);
    struct ml_script *script = side_load(side, services, &err);
    if (!script) { /* it could be loaded before: memory is short */
        add_note(side, ML_PLAN_FAILS, "", ml_strdup(err.message));
        plan_next_side(plan, side);
        return;
    }
    ml_cpu_account_init(&side->cpu_account, services->slices, on_nothing, side);
    side->has_account = true;
    side->expectations = ml_expectations_new(&side->keys, services->loop, services->client,
                                             services->metrics,
                                             ml_script_declaration(script)->name);
    side->revision = ml_revision_new(services, script, &mirrored_handler, side);
}

static void side_fini(struct side *side)
{
    ml_reconcile_free(side->reconcile);
    ml_revision_unref(side->revision);
    ml_expectations_free(side->expectations);
    ml_keys_fini(&side->keys);
    if (side->has_account)
        ml_cpu_account_fini(&side->cpu_account);
    ml_mirror_free(side->mirror);
    ml_revision_unref(side->watched);
    for (size_t i = 0; i < side->object_count; i++)
        free(side->objects[i].key);
    free(side->objects);
    for (size_t i = 0; i < ML_PLAN_NOTES; i++)
        notes_fini(&side->notes[i]);
    ml_files_fini(&side->files);
}

/* ---- the caches ---- */

static bool side_is_wanted(const struct side *side)
{
    return side->files.count > 0;
}

static void begin_when_synced(void *context)
{
    struct ml_plan *self = context;
    if ((side_is_wanted(&self->runs) && !self->runs.is_synced) || !self->next.is_synced)
        return;
    side_begin(side_is_wanted(&self->runs) ? &self->runs : &self->next);
}

static void on_watched_ready(void *context, struct ml_revision *revision ML_UNUSED)
{
    struct side *side = context;
    side->is_synced = true;
    ml_task_defer(&side->plan->begin, side->plan->opts.services->loop);
}

static void on_watched_change(void *watched ML_UNUSED, struct ml_informer *informer ML_UNUSED,
                              struct ml_object *old ML_UNUSED, struct ml_object *new ML_UNUSED)
{
}

static void on_watched_function_failed(void *context ML_UNUSED,
                                       struct ml_revision *revision ML_UNUSED,
                                       const struct ml_kind *kind ML_UNUSED,
                                       struct ml_object *object ML_UNUSED,
                                       const struct ml_err *err ML_UNUSED)
{
}

/* It never goes live: nothing runs on it, and the mirrored revision reports what fails. */
static const struct ml_revision_handler watched_handler = {
    .ready = on_watched_ready,
    .change = on_watched_change,
    .mapped = on_mapped,
    .concerns_all = on_nothing,
    .mended = on_nothing,
    .index_failed = on_watched_function_failed,
    .function_failed = on_watched_function_failed,
};

static int side_watch(struct side *side, struct ml_err *err)
{
    struct ml_services *services = side->plan->opts.services;
    struct ml_script *script = side_load(side, services, err);
    if (!script)
        return err->kind;
    side->watched = ml_revision_new(services, script, &watched_handler, side);
    return 0;
}

/* ---- life ---- */

static void plan_finish(void *context)
{
    struct ml_plan *self = context;
    self->opts.done(self->opts.context);
}

static void plan_next_side(struct ml_plan *self, struct side *ended)
{
    if (ended == &self->runs)
        side_begin(&self->next);
    else
        ml_task_defer(&self->finish, self->opts.services->loop);
}

int ml_plan_new(const struct ml_plan_opts *opts, struct ml_plan **out, struct ml_err *err)
{
    struct ml_plan *self = ml_new(struct ml_plan);
    self->opts = *opts;
    self->limits = opts->limits ? *opts->limits : (struct ml_script_limits){0};
    self->runs.plan = self->next.plan = self;
    ml_task_init(&self->begin, begin_when_synced, self);
    ml_task_init(&self->finish, plan_finish, self);
    ml_files_copy(&self->next.files, opts->files);
    if (opts->runs)
        ml_files_copy(&self->runs.files, opts->runs);
    if ((opts->runs && side_watch(&self->runs, err) < 0) || side_watch(&self->next, err) < 0) {
        ml_plan_free(self);
        return err->kind;
    }
    *out = self;
    return 0;
}

void ml_plan_free(struct ml_plan *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->begin);
    ml_task_cancel(&self->finish);
    side_fini(&self->next);
    side_fini(&self->runs);
    free(self);
    malloc_trim(0); /* the process does not need it again before the next edit */
}

const struct ml_declaration *ml_plan_declaration(const struct ml_plan *self)
{
    return self->next.watched->declaration;
}

const struct ml_declaration *ml_plan_predecessor(const struct ml_plan *self)
{
    return self->runs.watched ? self->runs.watched->declaration : NULL;
}

void ml_plan_waits(const struct ml_plan *self, struct ml_buf *why)
{
    if (side_is_wanted(&self->runs) && !self->runs.is_synced)
        (void)ml_revision_is_synced(self->runs.watched, why);
    if (!self->next.is_synced)
        (void)ml_revision_is_synced(self->next.watched, why);
}

bool ml_plan_misses_kind(const struct ml_plan *self)
{
    return (side_is_wanted(&self->runs) && ml_revision_misses_kind(self->runs.watched)) ||
           ml_revision_misses_kind(self->next.watched);
}

/* ---- what it says ---- */

size_t ml_plan_objects(const struct ml_plan *self, size_t *out_tried)
{
    *out_tried = self->next.object_count;
    return self->objects;
}

/* Of one kind. */
static size_t count_owned(const struct side *side, const struct ml_store *owned)
{
    const struct ml_store *owners = ml_revision_store(side->watched);
    size_t count = 0;
    for (size_t i = 0; i < side->object_count; i++) {
        size_t cursor = 0;
        const struct ml_object *owner = ml_store_get(owners, ml_str_of(side->objects[i].key));
        while (owner && ml_store_next_owned(owned, ml_object_uid(owner), &cursor))
            count++;
    }
    return count;
}

size_t ml_plan_owned(const struct ml_plan *self)
{
    const struct ml_revision *watched = self->next.watched;
    size_t count = 0;
    for (size_t i = 1; i < watched->declaration->kind_count; i++)
        if (watched->declaration->kinds[i].use == ML_USE_OWNS)
            count += count_owned(&self->next, ml_informer_store(watched->informers[i]));
    return count;
}

/* The object as the revision that works now would leave it. */
static struct ml_object *state_before(const struct ml_plan *self, const struct ml_mirrored *changed)
{
    const struct ml_mirrored *record = self->runs.mirror
                                           ? ml_mirror_find(self->runs.mirror, changed->id)
                                           : NULL;
    return record ? record->after : changed->before;
}

static bool is_hidden(const struct ml_kind *kind)
{
    return strcmp(kind->kind, "Secret") == 0 && *kind->group == '\0';
}

struct comparison {
    ml_json_differs *differs;
    void *context;
    bool hides; /* values of a Secret */
};

static bool is_set_by_server(struct ml_str field)
{
    static const char *const fields[] = {"metadata.uid", "metadata.resourceVersion",
                                         "metadata.generation", "metadata.creationTimestamp",
                                         "metadata.managedFields"};
    for (size_t i = 0; i < ML_COUNT(fields); i++)
        if (ml_str_is(field, fields[i]))
            return true;
    return false;
}

static struct ml_str hide(struct ml_str value)
{
    return value.len > 0 ? ML_STR("\"(hidden)\"") : value;
}

static void on_difference(void *context, struct ml_str field, struct ml_str from, struct ml_str to)
{
    const struct comparison *self = context;
    bool secret = self->hides && (ml_str_is(field, "data") || ml_str_is(field, "stringData") ||
                                  ml_str_starts(field, "data.") || ml_str_starts(field, "data[") ||
                                  ml_str_starts(field, "stringData.") ||
                                  ml_str_starts(field, "stringData[") || field.len == 0);
    if (!is_set_by_server(field))
        self->differs(self->context, field, secret ? hide(from) : from, secret ? hide(to) : to);
}

void ml_plan_differences(const struct ml_plan_change *change, ml_json_differs *differs,
                         void *context)
{
    ML_AUTO(ml_buf_fini) struct ml_buf before = ML_BUF_INIT, after = ML_BUF_INIT;
    struct comparison comparison = {differs, context, is_hidden(change->kind)};
    if (change->before)
        ml_object_json(change->before, &before);
    if (change->stored.len > 0)
        ml_buf_append_str(&after, change->stored);
    else if (change->after)
        ml_object_json(change->after, &after);
    ml_json_differences(change->before ? ml_buf_str(&before) : ML_STR("{\"metadata\":{}}"),
                        change->after ? ml_buf_str(&after) : ML_STR("{\"metadata\":{}}"),
                        on_difference, &comparison);
}

static void append_value(struct ml_buf *out, struct ml_str value)
{
    if (value.len == 0)
        ml_buf_puts(out, "nothing");
    else
        ml_buf_printf(out, ML_STR_FMT "%s", ML_STR_ARG(ml_str_head(value, VALUE_LEN_MAX)),
                      value.len > VALUE_LEN_MAX ? "…" : "");
}

void ml_plan_append_difference(struct ml_buf *out, struct ml_str field, struct ml_str from,
                               struct ml_str to)
{
    ml_buf_printf(out, ML_STR_FMT ": ", ML_STR_ARG(field));
    append_value(out, from);
    ml_buf_puts(out, " → ");
    append_value(out, to);
}

static void on_any_difference(void *context, struct ml_str field ML_UNUSED,
                              struct ml_str from ML_UNUSED, struct ml_str to ML_UNUSED)
{
    *(bool *)context = true;
}

bool ml_plan_next_change(const struct ml_plan *self, size_t *cursor, struct ml_plan_change *out)
{
    const struct ml_mirrored *changed;
    while (self->next.mirror && (changed = ml_mirror_next(self->next.mirror, cursor))) {
        struct ml_str key = ml_str_of(changed->id);
        struct ml_object *before = state_before(self, changed);
        bool differs = false;
        ml_str_cut(&key, ' ');
        ml_str_cut(&key, ' ');
        *out = (struct ml_plan_change){
            .verb = !before           ? ML_PLAN_CREATE
                    : !changed->after ? ML_PLAN_DELETE
                                      : ML_PLAN_CHANGE,
            .kind = changed->kind,
            .key = key,
            .by = changed->by,
            .why = changed->after ? NULL : changed->why,
            .before = before,
            .after = changed->after,
        };
        if (before == changed->after)
            continue;
        if (before && changed->after)
            ml_plan_differences(out, on_any_difference, &differs);
        if (differs || !before || !changed->after)
            return true;
    }
    return false;
}

bool ml_plan_note(const struct ml_plan *self, enum ml_plan_notes which, size_t index,
                  struct ml_plan_note *out)
{
    const struct notes *notes = &self->next.notes[which];
    if (index >= notes->len)
        return false;
    *out = (struct ml_plan_note){notes->items[index].key, notes->items[index].text};
    return true;
}

const struct ml_mirrored_event *ml_plan_next_event(const struct ml_plan *self, size_t *cursor)
{
    return self->next.mirror ? ml_mirror_next_event(self->next.mirror, cursor) : NULL;
}
