/* All scripts of a host: its sources, each with the loader of its files, and the entry of each file
 * (scripts_slot.c). */
#include "operator/scripts_internal.h"

#include "base/escape.h"

/* An editor or git may put a file back that it has just taken away. */
#define MISSING_NS ML_NS_PER_S

/* ---- one source: each file that was judged goes to its slot ---- */

/* A version that runs is not loaded again while the files it was made from are unchanged; one that
 * was refused, while the whole set is. */
static bool feed_knows(void *context, const struct ml_batch *batch, size_t index,
                       struct ml_batch_entry *entry)
{
    const struct feed *feed = context;
    const struct slot *slot = slot_find(feed, batch->files.files[index].name);
    struct ml_script *script = slot ? slot_script(slot) : NULL;
    if (slot && slot->refused && slot->refused == batch->fingerprint) {
        entry->verdict = ML_BATCH_REFUSED;
        entry->err = slot->why;
        return true;
    }
    if (!script || slot->refused ||
        ml_files_fingerprint(&batch->files, script) != slot->fingerprint)
        return false;
    entry->script = ml_script_ref(script);
    entry->verdict = ML_BATCH_SKIPPED;
    return true;
}

/* A file that was refused and not edited since would most likely be refused again, and may use up
 * the time that is left for loading. */
static bool feed_loads_late(void *context, const struct ml_script_file *file)
{
    const struct slot *slot = slot_find(context, file->name);
    return slot && slot->refused && slot->refused_text == ml_str_hash(file->text);
}

static void feed_on_judged(void *context, const struct ml_batch *batch, size_t index)
{
    struct feed *feed = context;
    const struct ml_batch_entry *entry = &batch->entries[index];
    if (entry->verdict == ML_BATCH_MODULE) {
        slot_free_unless_controller(slot_find(feed, batch->files.files[index].name));
        return;
    }
    struct slot *slot = slot_get(feed, batch->files.files[index].name);
    slot->missing = false;
    if (entry->verdict == ML_BATCH_SKIPPED)
        return;
    if (entry->err.kind && slot->refused != batch->fingerprint)
        slot_refuse(slot, &entry->err, entry->quarantined, entry->script);
    if (entry->verdict == ML_BATCH_CONTROLLER)
        slot_offer(slot, ml_script_ref(entry->script),
                   ml_files_fingerprint(&batch->files, entry->script));
    if (!entry->err.kind)
        return;
    slot->why = entry->err;
    slot_show_refused(slot, true);
    if (entry->quarantined && entry->script) /* only an edit of it has it loaded again */
        return;
    slot->refused = batch->fingerprint;
    slot->refused_text = ml_str_hash(batch->files.files[index].text);
}

/* Reported again only when something else is wrong with the file. */
static void feed_refuse_file(struct feed *feed, const struct ml_file_refused *refused)
{
    struct slot *slot = slot_get(feed, ml_str_of(refused->name));
    uint64_t fingerprint = ml_str_hash(ml_str_of(refused->err.message));
    slot->missing = false;
    if (slot->refused != fingerprint)
        slot_refuse(slot, &refused->err, false, NULL);
    slot->refused = fingerprint;
}

static void feed_report_missing(struct feed *feed, const struct ml_files *files)
{
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots) {
        if (slot->feed != feed || slot->missing || ml_files_have(files, slot->file))
            continue;
        struct ml_err err;
        slot->missing = true;
        if (!slot->controller) { /* a file that was refused is gone: nothing is wrong any more */
            ml_info(feed->scripts->services->log, "scripts", "a script that never ran is gone",
                    ML_S("source", feed->source->name), ML_S("script", slot->file));
            slot_free(slot);
            continue;
        }
        ml_err_set(&err, ML_ENOT_FOUND, "%s: is no longer in %s", slot->file, feed->source->name);
        slot_refuse(slot, &err, false, NULL);
    }
}

/* ---- controllers that the source wants removed ---- */

static bool feed_knows_controller(const struct feed *feed, struct ml_str name)
{
    ml_list_each_entry (const struct slot, slot, &feed->scripts->slots) {
        const struct ml_controller *controller = slot->controller;
        if (slot->feed == feed &&
            ((controller && ml_str_is(name, ml_controller_name(controller))) ||
             (slot->removed && ml_str_is(name, slot->removed))))
            return true;
    }
    return false;
}

/* Its kind is only known from its script. */
static void feed_report_unknown(struct feed *feed, struct ml_str name)
{
    ML_AUTO_FREE char *note = ml_asprintf(
        "moonloop.dev/remove: no script here has the controller '" ML_STR_FMT
        "'; put its script back to have its finalizers taken off",
        ML_STR_ARG(name));
    ml_warn(feed->scripts->services->log, "scripts", "no such controller to remove",
            ML_S("source", feed->source->name), ML_S("error", note));
    ml_source_report(feed->source, true, "ControllerUnknown", note);
}

static void feed_check_names(struct feed *feed)
{
    struct ml_str names = ml_str_of(feed->source->removed);
    uint64_t hash = names.len > 0 ? ml_str_hash(names) : 0;
    if (hash == feed->removals_told)
        return;
    feed->removals_told = hash;
    for (struct ml_str rest = names; rest.ptr;) {
        struct ml_str name = ml_str_trim(ml_str_cut(&rest, ','));
        if (name.len > 0 && !feed_knows_controller(feed, name))
            feed_report_unknown(feed, name);
    }
}

static bool slot_is_orphan(const struct slot *slot)
{
    return slot->missing && slot->controller && slot->feed->source->removes_missing;
}

/* A set was loaded, or there is none: removes the controllers that its source wants removed. The
 * annotation moonloop.dev/remove of a ConfigMap names them; in `moonloop dev` a file that is gone
 * does. */
static void feed_remove_controllers(struct feed *feed)
{
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots) {
        if (slot->feed != feed || !slot->controller)
            continue;
        if (ml_source_removes(feed->source, ml_controller_name(slot->controller)))
            slot_remove(slot);
        else if (slot_is_orphan(slot) && !ml_timer_active(&feed->missing))
            ml_timer_start(&feed->missing, MISSING_NS);
    }
    feed_check_names(feed);
}

/* A controller that was never live is dropped at once. */
static void feed_remove_missing(void *context)
{
    struct feed *feed = context;
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots) {
        if (slot->feed != feed || !slot_is_orphan(slot))
            continue;
        if (ml_controller_current(slot->controller))
            slot_remove(slot);
        else
            slot_on_removed(slot, slot->controller, 0);
    }
}

/* ---- the last good set ---- */

static bool feed_read_last_good(void *context, struct ml_str file, struct ml_files *out)
{
    const struct feed *feed = context;
    const struct slot *slot = slot_find(feed, file);
    bool runs = slot && slot_script(slot); /* and that version is at least as good */
    return !runs && ml_last_good_read(feed->last_good, out);
}

/* Every file of the source runs in its newest version, and this process reconciles. */
static bool feed_works(void *context)
{
    const struct feed *feed = context;
    const struct ml_scripts *self = feed->scripts;
    if (self->services->standby)
        return false;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        if (slot->feed == feed && !slot->missing && !slot->removed &&
            (!slot_works(slot) || slot->refused || slot->successor ||
             ml_controller_offered(slot->controller)))
            return false;
    return true;
}

static void show_controllers_without_file(const struct ml_scripts *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    ml_metric_set(self->without_file, (double)scripts_list_without_file(self, &names));
}

/* Of files that are too large, or cannot be read at all. */
static void feed_replace_refused(struct feed *feed, const struct ml_batch *batch)
{
    for (size_t i = 0; i < batch->files.refused_count; i++) {
        const struct ml_file_refused *file = &batch->files.refused[i];
        struct ml_script *script = ml_batch_load_last_good(batch, ml_str_of(file->name));
        if (!script)
            continue;
        struct slot *slot = slot_get(feed, ml_str_of(file->name));
        uint64_t refused = slot->refused;
        slot_offer(slot, script, 0);
        slot->refused = refused;
        slot->why = file->err;
        slot_show_refused(slot, true);
    }
}

static void feed_on_loaded(void *context, const struct ml_batch *batch)
{
    struct feed *feed = context;
    feed_replace_refused(feed, batch);
    ml_last_good_propose(feed->last_good, &batch->files, ml_batch_is_good(batch));
    feed->loaded = true;
    feed_report_missing(feed, &batch->files);
    feed_remove_controllers(feed);
    show_controllers_without_file(feed->scripts);
}

static void feed_on_files(void *context, struct ml_source *source, const struct ml_files *files)
{
    struct feed *feed = context;
    (void)source;
    if (feed->scripts->stopping)
        return;
    feed->trouble = ML_ERR_INIT;
    for (size_t i = 0; i < files->refused_count; i++)
        feed_refuse_file(feed, &files->refused[i]);
    ml_loader_load(feed->loader, files);
}

static void feed_on_trouble(void *context, struct ml_source *source, const struct ml_err *err)
{
    struct feed *feed = context;
    struct ml_scripts *self = feed->scripts;
    feed->trouble = *err;
    ml_error(self->services->log, "scripts", "no scripts to read; running scripts keep running",
             ML_S("source", source->name), ML_ERR(err));
    ml_source_report(source, true, "ScriptsMissing", err->message);
    feed_remove_controllers(feed);
    show_controllers_without_file(self);
}

static void feed_open_last_good(struct feed *feed)
{
    const struct ml_scripts *self = feed->scripts;
    struct ml_err err;
    if (!self->marker)
        return;
    const struct ml_last_good_opts opts = {
        .loop = self->services->loop,
        .log = self->services->log,
        .folder = ml_crash_marker_folder(self->marker),
        .source = feed->source->name,
        .works = feed_works,
        .context = feed,
    };
    ml_last_good_open(&opts, &feed->last_good, &err);
}

/* It was loaded, and there is no script in it. */
static bool feed_is_empty(const struct feed *feed)
{
    ml_list_each_entry (const struct slot, slot, &feed->scripts->slots)
        if (slot->feed == feed)
            return false;
    return feed->loaded;
}

/* Takes over the source. */
static void feed_init(struct feed *feed, struct ml_scripts *scripts, struct ml_source *source)
{
    const struct ml_batch_opts opts = {
        .services = scripts->services,
        .limits = &scripts->limits,
        .marker = scripts->marker,
        .known = feed_knows,
        .last_good = feed_read_last_good,
        .late = feed_loads_late,
        .judged = feed_on_judged,
        .context = feed,
    };
    *feed = (struct feed){
        .scripts = scripts,
        .source = source,
        .trouble = ML_ERR_INIT,
        .loader = ml_loader_new(&opts, feed_on_loaded),
    };
    ml_timer_init(&feed->missing, scripts->services->loop, feed_remove_missing, feed);
    feed_open_last_good(feed);
}

static void feed_start(struct feed *feed)
{
    static const struct ml_source_handler handler = {feed_on_files, feed_on_trouble};
    ml_source_start(feed->source, &handler, feed);
}

/* Nothing is loaded any more. */
static void feed_stop(struct feed *feed)
{
    ml_timer_stop(&feed->missing);
    ml_loader_free(ml_take(&feed->loader));
    ml_last_good_end(feed->last_good);
}

static void feed_fini(struct feed *feed)
{
    ml_timer_stop(&feed->missing);
    ml_loader_free(feed->loader);
    ml_last_good_close(feed->last_good);
    ml_source_free(feed->source);
}

/* False: not yet, and `why` gets a line. */
static bool feed_is_loaded(const struct feed *feed, struct ml_buf *why)
{
    if (feed->loaded)
        return true;
    if (feed->trouble.kind)
        ml_append_line(why, "%s", feed->trouble.message);
    else
        ml_append_line(why, "%s %s", feed->source->name,
                       feed->source->read ? "is being loaded" : "has not been read yet");
    return false;
}

/* ---- all of them ---- */

static void count_slot(const struct slot *slot, struct ml_scripts_count *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    bool works = slot_works(slot);
    if (works && ml_controller_stays_synced(slot->controller, &why))
        out->live++;
    else if (!works && slot->why.kind)
        out->refused++;
    else if (slot->controller && ml_controller_misses_kind(slot->controller))
        out->missing_kind++;
    else if (works)
        out->blocked++;
    else
        out->pending++;
}

struct ml_scripts_count ml_scripts_count(const struct ml_scripts *self)
{
    ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
    struct ml_scripts_count count = {.read = true};
    for (size_t i = 0; i < self->feed_count; i++)
        count.read = feed_is_loaded(&self->feeds[i], &why) && count.read;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        if (!slot->removed)
            count_slot(slot, &count);
    return count;
}

static void collect_not_working(void *context)
{
    struct ml_scripts *self = context;
    struct ml_scripts_count count = ml_scripts_count(self);
    ml_metric_set(self->not_working,
                  (double)(count.missing_kind + count.refused + count.blocked + count.pending));
}

static void scripts_on_all_stopped(void *context)
{
    struct ml_scripts *self = context;
    self->stopped(self->stopped_context);
}

struct ml_scripts *ml_scripts_new(struct ml_services *services,
                                  const struct ml_script_limits *limits,
                                  struct ml_crash_marker *marker)
{
    struct ml_scripts *self = ml_new(struct ml_scripts);
    self->services = services;
    self->limits = *limits;
    self->marker = marker;
    ml_task_init(&self->stopped_task, scripts_on_all_stopped, self);
    ml_list_init(&self->slots);
    ml_list_init(&self->dead);
    self->refusals = ml_metrics_counter(services->metrics, "moonloop_script_refused_total",
                                        "Script versions refused, by file.",
                                        ml_metric_labels("file"));
    self->refused = ml_metrics_gauge(
        services->metrics, "moonloop_script_refused",
        "1 while the newest version of the file is refused, and an older one or none runs.",
        ml_metric_labels("file"));
    self->quarantines = ml_metrics_counter(
        services->metrics, "moonloop_script_quarantined_total",
        "Script versions refused because the process died while running them, by file.",
        ml_metric_labels("file"));
    self->loads = ml_metrics_counter(services->metrics, "moonloop_script_loaded_total",
                                     "Script versions that went live.",
                                     ml_metric_labels("controller"));
    self->without_file = ml_metric_only(ml_metrics_gauge(
        services->metrics, "moonloop_controllers_without_file",
        "Controllers that keep running although their script file is gone.", NULL));
    self->not_working = ml_metric_only(
        ml_metrics_gauge(services->metrics, "moonloop_scripts_not_working",
                         "Scripts that are not live, or lack a kind or a right.", NULL));
    self->collector = (struct ml_metrics_collector){.collect = collect_not_working,
                                                    .context = self};
    ml_metrics_on_collect(services->metrics, &self->collector);
    return self;
}

void ml_scripts_free(struct ml_scripts *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
    ml_metrics_collector_remove(&self->collector);
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_free(self->draining[i]);
    ml_list_each_entry (struct slot, slot, &self->slots) {
        slot->draining = 0;
        slot_free(slot);
    }
    ml_list_each_entry (struct slot, dead, &self->dead) {
        dead->draining = 0;
        slot_free(dead);
    }
    for (size_t i = 0; i < self->feed_count; i++)
        feed_fini(&self->feeds[i]);
    free(self);
}

void ml_scripts_add_source(struct ml_scripts *self, struct ml_source *source)
{
    ml_assert(self->feed_count < SOURCES_MAX);
    feed_init(&self->feeds[self->feed_count++], self, source);
}

void ml_scripts_start(struct ml_scripts *self)
{
    for (size_t i = 0; i < self->feed_count; i++)
        feed_start(&self->feeds[i]);
}

void ml_scripts_resync(struct ml_scripts *self)
{
    ml_list_each_entry (struct slot, slot, &self->slots)
        if (slot->controller)
            ml_controller_resync(slot->controller);
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_resync(self->draining[i]);
}

void ml_scripts_reshard(struct ml_scripts *self)
{
    ml_list_each_entry (struct slot, slot, &self->slots)
        if (slot->controller)
            ml_controller_reshard(slot->controller);
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_reshard(self->draining[i]);
}

/* A successor has no reconciles before it is live; a draining controller may still have some. */
bool ml_scripts_hand_over(struct ml_scripts *self, bool cut)
{
    bool idle = true;
    ml_list_each_entry (struct slot, slot, &self->slots)
        if (slot->controller && !ml_controller_hand_over(slot->controller, cut))
            idle = false;
    for (size_t i = self->draining_count; i-- > 0;) /* one that ends is taken out */
        if (!ml_controller_hand_over(self->draining[i], cut))
            idle = false;
    return idle;
}

void ml_scripts_stop(struct ml_scripts *self, void (*done)(void *context), void *context)
{
    self->stopping = true;
    for (size_t i = 0; i < self->feed_count; i++)
        feed_stop(&self->feeds[i]);
    self->stopped = done;
    self->stopped_context = context;
    if (self->running == 0)
        ml_task_defer(&self->stopped_task, self->services->loop);
    ml_list_each_entry (struct slot, slot, &self->slots) {
        if (slot->successor)
            ml_controller_stop(slot->successor);
        if (slot->controller)
            ml_controller_stop(slot->controller);
    }
    for (size_t i = 0; i < self->draining_count; i++)
        ml_controller_stop(self->draining[i]);
}

bool ml_scripts_ready(const struct ml_scripts *self, struct ml_buf *why)
{
    bool ready = true;
    for (size_t i = 0; i < self->feed_count; i++)
        ready = feed_is_loaded(&self->feeds[i], why) && ready;
    ml_list_each_entry (const struct slot, slot, &self->slots) {
        if (slot->removed)
            continue;
        if (slot_works(slot)) {
            ready = ml_controller_stays_synced(slot->controller, why) && ready;
            continue;
        }
        ready = false;
        bool synced = !slot->controller || ml_controller_is_synced(slot->controller, why);
        if (slot->why.kind)
            ml_append_line(why, "%s", slot->why.message);
        else if (synced)
            ml_append_line(why, "%s: is about to go live", slot->file);
    }
    return ready;
}

bool ml_scripts_webhook(const struct ml_scripts *self, struct ml_str name,
                        struct ml_webhook_target *out)
{
    struct ml_webhook_target target;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        for (size_t which = 0; which < 2; which++)
            if (slot_webhook(slot, which, &target) &&
                ml_declaration_is_called(ml_script_declaration(target.script), name)) {
                *out = target;
                return true;
            }
    return false;
}

void ml_scripts_webhooks(const struct ml_scripts *self,
                         void (*each)(void *context, const struct ml_webhook_target *target),
                         void *context)
{
    struct ml_webhook_target target;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        for (size_t which = 0; which < 2; which++) {
            if (!slot_webhook(slot, which, &target))
                continue;
            const struct ml_script_webhooks *has = &ml_script_declaration(target.script)->webhooks;
            if (has->defaults || has->validates || has->version_count > 0)
                each(context, &target);
        }
}

void ml_scripts_on_live(struct ml_scripts *self, void (*changed)(void *context), void *context)
{
    self->live = changed;
    self->live_context = context;
}

int64_t ml_scripts_next(const struct ml_scripts *self)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < self->feed_count; i++)
        if (!self->feeds[i].source->read || ml_loader_busy(self->feeds[i].loader))
            return 0;
    ml_list_each_entry (const struct slot, slot, &self->slots) {
        if (slot->controller)
            next = ML_MIN(next, ml_controller_next(slot->controller));
        if (slot->successor)
            next = ML_MIN(next, ml_controller_next(slot->successor));
    }
    for (size_t i = 0; i < self->draining_count; i++)
        next = ML_MIN(next, ml_controller_next(self->draining[i]));
    return next;
}

bool ml_scripts_fail(const struct ml_scripts *self, struct ml_buf *why)
{
    bool fail = false;
    for (size_t i = 0; i < self->feed_count; i++) {
        if (!feed_is_empty(&self->feeds[i]))
            continue;
        fail = true;
        ml_append_line(why, "%s: no script in it", self->feeds[i].source->name);
    }
    ml_list_each_entry (const struct slot, slot, &self->slots)
        fail = (slot->controller && ml_controller_fails(slot->controller, why)) || fail;
    return fail;
}
