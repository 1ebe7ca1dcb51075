/* All scripts of a host: which file has which controller, which versions are offered to it, which
 * are refused. Sources notify it of files, loaders load them, controllers run them. operator.c owns
 * the one instance. */
#include "operator/scripts_internal.h"

#include "base/escape.h"

/* The newest good version: offered, or else current. */
static struct ml_script *slot_script(const struct slot *slot)
{
    const struct ml_controller *controller = slot->successor ? slot->successor : slot->controller;
    if (!controller)
        return NULL;
    struct ml_script *offered = ml_controller_offered(controller);
    return offered ? offered : ml_controller_current(controller);
}

static bool slot_works(const struct slot *slot)
{
    return slot->controller && ml_controller_current(slot->controller);
}

static struct slot *slot_find(const struct feed *feed, struct ml_str file)
{
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots)
        if (slot->feed == feed && ml_str_is(file, slot->file))
            return slot;
    return NULL;
}

static struct slot *slot_get(struct feed *feed, struct ml_str file)
{
    struct slot *slot = slot_find(feed, file);
    if (slot)
        return slot;
    slot = ml_new(struct slot);
    slot->feed = feed;
    slot->file = ml_str_dup(file);
    slot->why = ML_ERR_INIT;
    ml_list_push(&feed->scripts->slots, &slot->node);
    return slot;
}

/* In the log, as a metric, and as an Event for the author. */
static void slot_refuse(struct slot *slot, const struct ml_err *err, bool quarantined)
{
    struct ml_scripts *self = slot->feed->scripts;
    const char *message = slot_works(slot) ? "script refused; the last good version keeps running"
                                           : "script refused";
    slot->why = *err;
    ml_error(self->cluster->log, "scripts", message, ML_S("source", slot->feed->source->name),
             ML_ERR_FIELDS(err), ML_S("script", slot->file));
    ml_metric_add(ml_metric_with(self->refusals, ml_metric_labels(slot->file)), 1);
    if (quarantined)
        ml_metric_add(ml_metric_with(self->quarantines, ml_metric_labels(slot->file)), 1);
    ml_source_report(slot->feed->source, true, quarantined ? "ScriptQuarantined" : "ScriptRefused",
                     err->message);
}

static bool controller_has_name(const struct ml_controller *controller, const char *name)
{
    return controller && strcmp(ml_controller_name(controller), name) == 0;
}

/* Another file whose controller has the name, or NULL. */
static const struct slot *slot_with_name(const struct slot *mine, const char *name)
{
    ml_list_each_entry (struct slot, slot, &mine->feed->scripts->slots)
        if (slot != mine && (controller_has_name(slot->controller, name) ||
                             controller_has_name(slot->successor, name)))
            return slot;
    return NULL;
}

static void slot_on_live(void *context, struct ml_controller *controller, bool first)
{
    struct slot *slot = context;
    struct ml_scripts *self = slot->feed->scripts;
    if (controller == slot->successor) {
        if (slot->controller) /* it was not removed meanwhile */
            slot_drain(slot, slot->controller);
        slot->controller = ml_take(&slot->successor);
        free(ml_take(&slot->removed));
    }
    const char *name = ml_controller_name(controller);
    ML_AUTO_FREE char *note = ml_asprintf("%s: controller %s runs the new version", slot->file,
                                          name);
    ml_info(self->cluster->log, "scripts", first ? "script is live" : "new version is live",
            ML_S("controller", name), ML_S("source", slot->feed->source->name),
            ML_S("script", slot->file));
    ml_metric_add(ml_metric_with(self->loads, ml_metric_labels(name)), 1);
    ml_source_report(slot->feed->source, false, "ScriptLoaded", note);
    if (self->live)
        self->live(self->live_context);
}

static void slot_on_circuit(void *context, struct ml_controller *controller, bool open,
                            const char *note)
{
    struct slot *slot = context;
    if (controller == slot->controller)
        ml_source_report(slot->feed->source, open, open ? "CircuitOpen" : "CircuitClosed", note);
}

static void slot_on_stopped(void *context, struct ml_controller *controller)
{
    struct slot *slot = context;
    struct ml_scripts *self = slot->feed->scripts;
    for (size_t i = 0; i < self->draining_count; i++) {
        if (self->draining[i] != controller)
            continue;
        self->draining[i] = self->draining[--self->draining_count];
        ml_controller_free(controller);
        if (--slot->draining == 0 && slot->dead)
            slot_free(slot);
        break;
    }
    if (--self->running == 0 && self->stopping)
        ml_task_defer(&self->stopped_task, self->cluster->loop);
}

static const struct ml_controller_handler controller_handler = {
    .live = slot_on_live,
    .circuit = slot_on_circuit,
    .removed = slot_on_removed,
    .stopped = slot_on_stopped,
};

static struct ml_controller *slot_new_controller(struct slot *slot, const char *name)
{
    struct ml_scripts *self = slot->feed->scripts;
    self->running++;
    return ml_controller_new(self->cluster, name, &controller_handler, slot);
}

static void slot_drop_successor(struct slot *slot)
{
    if (!slot->successor)
        return;
    slot->feed->scripts->running--;
    ml_controller_free(ml_take(&slot->successor));
}

/* Names of the controllers that keep running without a file: "a, b, c". */
static size_t scripts_list_without_file(const struct ml_scripts *self, struct ml_buf *names)
{
    size_t count = 0;
    ml_list_each_entry (const struct slot, slot, &self->slots) {
        if (!slot->missing || !slot->controller)
            continue;
        ml_buf_printf(names, "%s%s", count++ ? ", " : "", ml_controller_name(slot->controller));
    }
    return count;
}

static bool slot_has_room(struct slot *slot, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    if (slot->feed->scripts->running < CONTROLLERS_MAX)
        return true;
    scripts_list_without_file(slot->feed->scripts, &names);
    ml_err_set(
        err, ML_ELIMIT,
        "%s: the limit of %d controllers is reached; a restart ends those whose file is gone: "
        "%s",
        slot->file, CONTROLLERS_MAX, names.len ? ml_buf_cstr(&names) : "none");
    return false;
}

/* Nobody would watch the objects any more that carry the finalizer. */
static bool slot_changes_kind(const struct slot *slot, const struct ml_script *script,
                              struct ml_err *err)
{
    struct ml_script *runs = slot->controller ? ml_controller_current(slot->controller) : NULL;
    const struct ml_declaration *new = ml_script_declaration(script);
    const struct ml_declaration *old = runs ? ml_script_declaration(runs) : NULL;
    if (!old || !old->finalizes || strcmp(old->name, new->name) != 0)
        return false;
    const struct ml_gvk *was = &old->kinds[0].gvk, *is = &new->kinds[0].gvk;
    if (ml_str_eq(was->group, is->group) && ml_str_eq(was->kind, is->kind))
        return false;
    ml_err_set(err, ML_ESCRIPT,
               "%s: controller %s reconciles " ML_STR_FMT " now, and objects of " ML_STR_FMT
               " carry its finalizer %s; give the controller of " ML_STR_FMT " another name",
               slot->file, new->name, ML_STR_ARG(is->kind), ML_STR_ARG(was->kind), old->finalizer,
               ML_STR_ARG(is->kind));
    return true;
}

/* Takes over the reference to `script`. */
static void slot_offer(struct slot *slot, struct ml_script *script, uint64_t fingerprint)
{
    const char *name = ml_script_declaration(script)->name;
    const struct slot *other = slot_with_name(slot, name);
    bool renamed = slot->controller && !controller_has_name(slot->controller, name);
    if (slot_stays_removed(slot, name)) {
        slot->refused = 0;
        slot->why = ML_ERR_INIT;
        ml_script_unref(script);
        return;
    }
    struct ml_controller **place = renamed ? &slot->successor : &slot->controller;
    struct ml_err err = ML_ERR_INIT;
    if (other)
        ml_err_set(&err, ML_ESCRIPT, "%s: the name \"%s\" is taken by %s of %s", slot->file, name,
                   other->file, other->feed->source->name);
    else if (scripts_remove_name(slot->feed->scripts, name))
        ml_err_set(&err, ML_ESCRIPT,
                   "%s: controller %s is being removed; this script is loaded after that",
                   slot->file, name);
    if (err.kind || slot_changes_kind(slot, script, &err) ||
        (!*place && !slot_has_room(slot, &err))) {
        slot_refuse(slot, &err, false);
        ml_script_unref(script);
        return;
    }
    slot->fingerprint = fingerprint;
    slot->refused = 0;
    slot->why = ML_ERR_INIT;
    slot_drop_successor(slot);
    if (!*place)
        *place = slot_new_controller(slot, name);
    ml_controller_offer(*place, script);
    free(ml_take(&slot->removed));
    if (ml_source_removes(slot->feed->source, name))
        slot_remove(slot);
}

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

void slot_free(struct slot *slot)
{
    ml_list_remove(&slot->node);
    slot_drop_successor(slot);
    ml_controller_free(ml_take(&slot->controller));
    if (slot->draining > 0) { /* they refer to it */
        slot->dead = true;
        ml_list_push(&slot->feed->scripts->dead, &slot->node);
        return;
    }
    free(slot->removed);
    free(slot->file);
    free(slot);
}

/* Readiness does not wait for a file that never was a controller and is gone, or is a module. */
static void slot_free_unless_controller(struct slot *slot)
{
    if (slot && !slot->controller)
        slot_free(slot);
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
    if (entry->verdict == ML_BATCH_CONTROLLER) {
        uint64_t fingerprint = ml_files_fingerprint(&batch->files, entry->script);
        if (entry->quarantined)
            slot_refuse(slot, &entry->err, true);
        slot_offer(slot, ml_script_ref(entry->script), fingerprint);
    } else if (entry->verdict == ML_BATCH_REFUSED) {
        if (slot->refused != batch->fingerprint)
            slot_refuse(slot, &entry->err, entry->quarantined);
        slot->refused = batch->fingerprint;
        slot->refused_text = ml_str_hash(batch->files.files[index].text);
    }
}

/* Reported again only when something else is wrong with the file. */
static void feed_refuse_file(struct feed *feed, const struct ml_file_refused *refused)
{
    struct slot *slot = slot_get(feed, ml_str_of(refused->name));
    uint64_t fingerprint = ml_str_hash(ml_str_of(refused->err.message));
    slot->missing = false;
    if (slot->refused != fingerprint)
        slot_refuse(slot, &refused->err, false);
    slot->refused = fingerprint;
}

static void feed_report_missing(struct feed *feed, const struct ml_files *files)
{
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots) {
        if (slot->feed != feed || slot->missing || ml_files_have(files, slot->file))
            continue;
        struct ml_err err;
        slot->missing = true;
        ml_err_set(&err, ML_ENOT_FOUND, "%s: is no longer in %s", slot->file, feed->source->name);
        slot_refuse(slot, &err, false);
        slot_free_unless_controller(slot);
    }
}

/* ---- the last good set ---- */

static bool feed_read_last_good(void *context, const struct ml_batch *batch, size_t index,
                                struct ml_files *out)
{
    const struct feed *feed = context;
    const struct slot *slot = slot_find(feed, batch->files.files[index].name);
    bool runs = slot && slot_script(slot); /* and that version is at least as good */
    return !runs && ml_last_good_read(feed->last_good, out);
}

/* Every file of the source runs in its newest version, and this process reconciles. */
static bool feed_works(void *context)
{
    const struct feed *feed = context;
    const struct ml_scripts *self = feed->scripts;
    if (self->cluster->standby)
        return false;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        if (slot->feed == feed && !slot->missing && !slot->removed &&
            (!slot_works(slot) || slot->refused || slot->successor ||
             ml_controller_offered(slot->controller)))
            return false;
    return true;
}

static void feed_on_loaded(void *context, const struct ml_batch *batch)
{
    struct feed *feed = context;
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    ml_last_good_propose(feed->last_good, &batch->files, ml_batch_is_good(batch));
    feed->loaded = true;
    feed_report_missing(feed, &batch->files);
    feed_remove_controllers(feed);
    ml_metric_set(feed->scripts->without_file,
                  (double)scripts_list_without_file(feed->scripts, &names));
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
    ml_error(self->cluster->log, "scripts", "no scripts to read; running scripts keep running",
             ML_S("source", source->name), ML_ERR(err));
    ml_metric_add(ml_metric_with(self->refusals, ml_metric_labels("")), 1);
    ml_source_report(source, true, "ScriptsMissing", err->message);
    feed_remove_controllers(feed);
}

static const struct ml_source_handler source_handler = {feed_on_files, feed_on_trouble};

static void scripts_on_all_stopped(void *context)
{
    struct ml_scripts *self = context;
    self->stopped(self->stopped_context);
}

struct ml_scripts *ml_scripts_new(struct ml_cluster *cluster, const struct ml_script_limits *limits,
                                  struct ml_crash_marker *marker)
{
    struct ml_scripts *self = ml_new(struct ml_scripts);
    self->cluster = cluster;
    self->limits = *limits;
    self->marker = marker;
    ml_task_init(&self->stopped_task, scripts_on_all_stopped, self);
    ml_list_init(&self->slots);
    ml_list_init(&self->dead);
    self->refusals = ml_metrics_counter(cluster->metrics, "moonloop_script_refused_total",
                                        "Script versions refused, by file.",
                                        ml_metric_labels("file"));
    self->quarantines = ml_metrics_counter(
        cluster->metrics, "moonloop_script_quarantined_total",
        "Script versions refused because the process died while running them, by file.",
        ml_metric_labels("file"));
    self->loads = ml_metrics_counter(cluster->metrics, "moonloop_script_loaded_total",
                                     "Script versions that went live.",
                                     ml_metric_labels("controller"));
    self->without_file = ml_metric_only(ml_metrics_gauge(
        cluster->metrics, "moonloop_controllers_without_file",
        "Controllers that keep running although their script file is gone.", NULL));
    return self;
}

void ml_scripts_free(struct ml_scripts *self)
{
    if (!self)
        return;
    ml_task_cancel(&self->stopped_task);
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
    for (size_t i = 0; i < self->feed_count; i++) {
        ml_timer_stop(&self->feeds[i].missing);
        ml_loader_free(self->feeds[i].loader);
        ml_last_good_close(self->feeds[i].last_good);
        ml_source_free(self->feeds[i].source);
    }
    free(self);
}

static void feed_open_last_good(struct feed *feed)
{
    const struct ml_scripts *self = feed->scripts;
    struct ml_err err;
    if (!self->marker)
        return;
    const struct ml_last_good_opts opts = {
        .loop = self->cluster->loop,
        .log = self->cluster->log,
        .folder = ml_crash_marker_folder(self->marker),
        .source = feed->source->name,
        .works = feed_works,
        .context = feed,
    };
    ml_last_good_open(&opts, &feed->last_good, &err);
}

void ml_scripts_add_source(struct ml_scripts *self, struct ml_source *source)
{
    ml_assert(self->feed_count < SOURCES_MAX);
    struct feed *feed = &self->feeds[self->feed_count++];
    const struct ml_batch_opts opts = {
        .cluster = self->cluster,
        .limits = &self->limits,
        .marker = self->marker,
        .known = feed_knows,
        .last_good = feed_read_last_good,
        .late = feed_loads_late,
        .judged = feed_on_judged,
        .context = feed,
    };
    *feed = (struct feed){
        .scripts = self,
        .source = source,
        .trouble = ML_ERR_INIT,
        .loader = ml_loader_new(&opts, feed_on_loaded),
    };
    feed_removal_init(feed);
    feed_open_last_good(feed);
}

void ml_scripts_start(struct ml_scripts *self)
{
    for (size_t i = 0; i < self->feed_count; i++)
        ml_source_start(self->feeds[i].source, &source_handler, &self->feeds[i]);
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
    for (size_t i = 0; i < self->feed_count; i++) {
        struct feed *feed = &self->feeds[i];
        ml_timer_stop(&feed->missing);
        ml_loader_free(ml_take(&feed->loader));
        ml_last_good_end(feed->last_good);
    }
    self->stopped = done;
    self->stopped_context = context;
    if (self->running == 0)
        ml_task_defer(&self->stopped_task, self->cluster->loop);
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
    for (size_t i = 0; i < self->feed_count; i++) {
        const struct feed *feed = &self->feeds[i];
        if (feed->loaded)
            continue;
        ready = false;
        if (feed->trouble.kind)
            ml_append_line(why, "%s", feed->trouble.message);
        else
            ml_append_line(why, "%s %s", feed->source->name,
                           feed->source->read ? "is being loaded" : "has not been read yet");
    }
    ml_list_each_entry (const struct slot, slot, &self->slots) {
        if (slot->removed)
            continue;
        if (slot_works(slot)) {
            ready = ml_controller_sees(slot->controller, why) && ready;
            continue;
        }
        ready = false;
        bool lacks = slot->controller && ml_controller_lacks(slot->controller, why);
        if (slot->why.kind)
            ml_append_line(why, "%s", slot->why.message);
        else if (!lacks)
            ml_append_line(why, "%s: is about to go live", slot->file);
    }
    return ready;
}

/* A successor answers as soon as it is asked by its name. */
static bool slot_webhook(const struct slot *slot, size_t which, struct ml_webhook_target *out)
{
    struct ml_controller *controller = which == 0 ? slot->controller : slot->successor;
    return controller && ml_controller_webhook(controller, out);
}

bool ml_scripts_webhook(const struct ml_scripts *self, struct ml_str name,
                        struct ml_webhook_target *out)
{
    struct ml_webhook_target target;
    ml_list_each_entry (const struct slot, slot, &self->slots)
        for (size_t which = 0; which < 2; which++)
            if (slot_webhook(slot, which, &target) &&
                ml_str_is(name, ml_script_declaration(target.script)->name)) {
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

static bool feed_is_empty(const struct feed *feed)
{
    ml_list_each_entry (const struct slot, slot, &feed->scripts->slots)
        if (slot->feed == feed)
            return false;
    return feed->loaded;
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
