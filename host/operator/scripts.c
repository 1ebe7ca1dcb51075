#include "operator/scripts_internal.h"

#include "base/escape.h"

static const struct ml_controller_handler controller_handler;

static struct slot *slot_find(struct ml_scripts *self, struct ml_source *source, struct ml_str file)
{
    ml_list_each (node, &self->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->source == source && ml_str_is(file, slot->file))
            return slot;
    }
    return NULL;
}

static struct slot *slot_get(struct ml_scripts *self, struct ml_source *source, struct ml_str file)
{
    struct slot *slot = slot_find(self, source, file);
    if (slot)
        return slot;
    slot = ml_new(struct slot);
    slot->scripts = self;
    slot->source = source;
    slot->file = ml_str_dup(file);
    slot->why = ML_ERR_INIT;
    ml_list_push(&self->slots, &slot->node);
    return slot;
}

static struct slot *slot_of(struct ml_scripts *self, const struct ml_controller *controller)
{
    ml_list_each (node, &self->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->controller == controller || slot->successor == controller)
            return slot;
    }
    return NULL;
}

/* Says it three times: in the log, as a metric, and to the author. */
static void refuse_as(struct slot *slot, const char *reason, const struct ml_err *err)
{
    struct ml_scripts *self = slot->scripts;
    const char *message = slot_works(slot) ? "script refused; the last good version keeps running"
                                           : "script refused";
    slot->why = *err;
    ml_error(self->cluster->log, "scripts", message, ML_S("source", slot->source->name),
             ML_S("file", slot->file), ML_ERR(err));
    ml_metric_add(ml_metric_with(self->refusals, ml_metric_labels(slot->file)), 1);
    ml_source_report(slot->source, true, reason, err->message);
}

static void refuse(struct slot *slot, const struct ml_err *err)
{
    refuse_as(slot, "ScriptRefused", err);
}

static void quarantine(struct slot *slot, const struct ml_err *err)
{
    ml_metric_add(ml_metric_with(slot->scripts->quarantines, ml_metric_labels(slot->file)), 1);
    refuse_as(slot, "ScriptQuarantined", err);
}

/* Another file that has the name already, or NULL. */
static const struct slot *name_taken(struct slot *mine, const char *name)
{
    ml_list_each (node, &mine->scripts->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot == mine)
            continue;
        if ((slot->controller && !strcmp(ml_controller_name(slot->controller), name)) ||
            (slot->successor && !strcmp(ml_controller_name(slot->successor), name)))
            return slot;
    }
    return NULL;
}

static struct ml_controller *new_controller(struct ml_scripts *self, const char *name)
{
    self->running++;
    return ml_controller_new(self->cluster, name, &controller_handler, self);
}

static void drop_successor(struct slot *slot)
{
    if (!slot->successor)
        return;
    slot->scripts->running--;
    ml_controller_free(ml_take(&slot->successor));
}

/* The controllers that work on without a file: "a, b, c". */
static size_t list_without_file(const struct ml_scripts *self, struct ml_buf *names)
{
    size_t count = 0;
    ml_list_each (node, &self->slots) {
        const struct slot *slot = ml_container_of(node, struct slot, node);
        if (!slot->missing || !slot->controller)
            continue;
        ml_buf_printf(names, "%s%s", count++ ? ", " : "", ml_controller_name(slot->controller));
    }
    return count;
}

static bool has_room(struct slot *slot, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    if (slot->scripts->running < CONTROLLERS_MAX)
        return true;
    list_without_file(slot->scripts, &names);
    ml_err_set(err, ML_ELIMIT,
               "%s: %d controllers are at work, which is the limit; a restart ends those without a "
               "file: %s",
               slot->file, CONTROLLERS_MAX, names.len ? ml_buf_cstr(&names) : "none");
    return false;
}

static bool needs_controller(const struct slot *slot, const char *name)
{
    return !slot->controller ||
           (!slot->successor && strcmp(ml_controller_name(slot->controller), name));
}

/* Takes over the reference to `script`. */
static void offer(struct slot *slot, struct ml_script *script, uint64_t fingerprint)
{
    const char *name = ml_script_declaration(script)->name;
    const struct slot *other = name_taken(slot, name);
    struct ml_err err = ML_ERR_INIT;
    if (other)
        ml_err_set(&err, ML_ESCRIPT, "%s: the name \"%s\" is taken by %s of %s", slot->file, name,
                   other->file, other->source->name);
    if (other || (needs_controller(slot, name) && !has_room(slot, &err))) {
        refuse(slot, &err);
        ml_script_unref(script);
        return;
    }
    slot->fingerprint = fingerprint;
    slot->refused = 0;
    slot->why = ML_ERR_INIT;
    drop_successor(slot);
    if (!slot->controller)
        slot->controller = new_controller(slot->scripts, name);
    if (!strcmp(ml_controller_name(slot->controller), name)) {
        ml_controller_offer(slot->controller, script);
        return;
    }
    slot->successor = new_controller(slot->scripts, name);
    ml_controller_offer(slot->successor, script);
}

/* Neither what works nor what was refused is loaded again as long as all it was made from is the
 * same: for what was refused, that is the whole set. */
static bool known(void *context, struct ml_source *source, const struct ml_batch *batch,
                  size_t index, struct ml_batch_entry *entry)
{
    const struct slot *slot = slot_find(context, source, batch->files->files[index].name);
    struct ml_script *script = slot ? slot_script(slot) : NULL;
    if (slot && slot->refused && slot->refused == batch->fingerprint) {
        entry->verdict = ML_BATCH_REFUSED;
        entry->err = slot->why;
        return true;
    }
    if (!script || slot->refused || ml_batch_fingerprint(batch->files, script) != slot->fingerprint)
        return false;
    entry->script = ml_script_ref(script);
    entry->verdict = ML_BATCH_SKIPPED;
    return true;
}

static void slot_free(struct slot *slot)
{
    ml_list_remove(&slot->node);
    ml_controller_free(slot->successor);
    ml_controller_free(slot->controller);
    free(slot->file);
    free(slot);
}

/* What never was a controller, and is not to become one, is not waited for. */
static void drop_unless_controller(struct slot *slot)
{
    if (slot && !slot->controller)
        slot_free(slot);
}

/* What was refused, and has not been edited since, is seldom better now, and may use up all the
 * time that there is for loading. */
static bool late(void *context, struct ml_source *source, const struct ml_script_file *file)
{
    const struct slot *slot = slot_find(context, source, file->name);
    return slot && slot->refused && slot->refused_text == ml_str_hash(file->text);
}

static void on_judged(void *context, struct ml_source *source, const struct ml_batch *batch,
                      size_t index)
{
    struct ml_scripts *self = context;
    const struct ml_batch_entry *entry = &batch->entries[index];
    if (entry->verdict == ML_BATCH_MODULE) {
        drop_unless_controller(slot_find(self, source, batch->files->files[index].name));
        return;
    }
    struct slot *slot = slot_get(self, source, batch->files->files[index].name);
    slot->missing = false;
    if (entry->verdict == ML_BATCH_CONTROLLER) {
        uint64_t fingerprint = ml_batch_fingerprint(batch->files, entry->script);
        if (entry->quarantined)
            quarantine(slot, &entry->err);
        offer(slot, ml_script_ref(entry->script), fingerprint);
    } else if (entry->verdict == ML_BATCH_REFUSED) {
        if (slot->refused != batch->fingerprint)
            (entry->quarantined ? quarantine : refuse)(slot, &entry->err);
        slot->refused = batch->fingerprint;
        slot->refused_text = ml_str_hash(batch->files->files[index].text);
    }
}

/* An entry that is no good as a file: told again when something else is wrong with it. */
static void judge_refused(struct ml_scripts *self, struct ml_source *source,
                          const struct ml_file_refused *refused)
{
    struct slot *slot = slot_get(self, source, ml_str_of(refused->name));
    uint64_t fingerprint = ml_str_hash(ml_str_of(refused->err.message));
    slot->missing = false;
    if (slot->refused != fingerprint)
        refuse(slot, &refused->err);
    slot->refused = fingerprint;
}

static bool has_file(const struct ml_files *files, const char *name)
{
    for (size_t i = 0; i < files->count; i++)
        if (ml_str_is(files->files[i].name, name))
            return true;
    for (size_t i = 0; i < files->refused_count; i++)
        if (strcmp(files->refused[i].name, name) == 0)
            return true;
    return false;
}

static void tell_missing(struct ml_scripts *self, struct ml_source *source,
                         const struct ml_files *files)
{
    ml_list_each (node, &self->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->source != source || slot->missing || has_file(files, slot->file))
            continue;
        struct ml_err err;
        slot->missing = true;
        ml_err_set(&err, ML_ENOT_FOUND, "%s: is no longer in %s", slot->file, source->name);
        refuse(slot, &err);
        drop_unless_controller(slot);
    }
}

static struct feed *feed_of(struct ml_scripts *self, const struct ml_source *source)
{
    for (size_t i = 0; i < self->feed_count; i++)
        if (self->feeds[i].source == source)
            return &self->feeds[i];
    ML_UNREACHABLE();
}

/* ---- the last good set ---- */

static void tell_not_kept(const struct feed *feed, const struct ml_err *err)
{
    ml_warn(feed->scripts->cluster->log, "scripts", "the last good version is not kept",
            ML_S("source", feed->source->name), ML_ERR(err));
}

static bool last_good(void *context, struct ml_source *source, const struct ml_batch *batch,
                      size_t index, struct ml_files *out)
{
    const struct feed *feed = feed_of(context, source);
    const struct slot *slot = slot_find(context, source, batch->files->files[index].name);
    if (!feed->last_good || (slot && slot_script(slot))) /* what runs is at least as good */
        return false;
    return ml_last_good_read(feed->last_good, out);
}

static void accept_last_good(struct feed *feed)
{
    struct ml_err err = ML_ERR_INIT;
    feed->proposed = 0;
    if (ml_last_good_accept(feed->last_good, &err) < 0)
        tell_not_kept(feed, &err);
}

static void on_proven(void *context)
{
    struct feed *feed = context;
    if (scripts_of_source_work(feed->scripts, feed->source))
        accept_last_good(feed);
    else
        ml_timer_start(&feed->proof, ML_CRASH_MARKER_WORKED_NS);
}

static bool is_all_good(const struct ml_scripts *self, const struct ml_batch *batch)
{
    for (size_t i = 0; i < batch->files->count; i++)
        if (batch->entries[i].verdict == ML_BATCH_REFUSED ||
            ml_crash_marker_quarantined(self->marker,
                                        ml_crash_marker_version(&batch->files->files[i])))
            return false;
    return batch->files->refused_count == 0;
}

static void propose_last_good(struct feed *feed, const struct ml_batch *batch)
{
    struct ml_err err = ML_ERR_INIT;
    if (!feed->last_good || feed->proposed == batch->fingerprint)
        return;
    feed->proposed = 0;
    ml_timer_stop(&feed->proof);
    if (!is_all_good(feed->scripts, batch))
        return;
    if (ml_last_good_propose(feed->last_good, batch->files, &err) < 0) {
        tell_not_kept(feed, &err);
        return;
    }
    feed->proposed = batch->fingerprint;
    ml_timer_start(&feed->proof, ML_CRASH_MARKER_WORKED_NS);
}

static void on_loaded(void *context, struct ml_source *source, const struct ml_batch *batch)
{
    struct ml_scripts *self = context;
    propose_last_good(feed_of(self, source), batch);
    feed_of(self, source)->loaded = true;
    tell_missing(self, source, batch->files);
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    ml_metric_set(self->without_file, (double)list_without_file(self, &names));
}

static const struct ml_loader_handler loader_handler = {
    .known = known,
    .last_good = last_good,
    .late = late,
    .judged = on_judged,
    .loaded = on_loaded,
};

static void on_files(void *context, struct ml_source *source, const struct ml_files *files)
{
    struct ml_scripts *self = context;
    if (self->stopping)
        return;
    for (size_t i = 0; i < files->refused_count; i++)
        judge_refused(self, source, &files->refused[i]);
    ml_loader_load(feed_of(self, source)->loader, files);
}

static void on_trouble(void *context, struct ml_source *source, const struct ml_err *err)
{
    struct ml_scripts *self = context;
    ml_error(self->cluster->log, "scripts", "no scripts to read; what runs keeps running",
             ML_S("source", source->name), ML_ERR(err));
    ml_metric_add(ml_metric_with(self->refusals, ml_metric_labels("")), 1);
    ml_source_report(source, true, "ScriptsMissing", err->message);
}

static const struct ml_source_handler source_handler = {.files = on_files, .trouble = on_trouble};

static void leave(struct ml_scripts *self, struct ml_controller *controller)
{
    struct draining *draining = ml_new(struct draining);
    draining->controller = controller;
    ml_list_push(&self->draining, &draining->node);
    ml_controller_stop(controller);
}

static void on_live(void *context, struct ml_controller *controller, bool first)
{
    struct ml_scripts *self = context;
    struct slot *slot = slot_of(self, controller);
    ml_assert(slot != NULL);
    if (controller == slot->successor) {
        leave(self, slot->controller);
        slot->controller = ml_take(&slot->successor);
    }
    const char *name = ml_controller_name(controller);
    ML_AUTO_FREE char *note = ml_asprintf("%s: controller %s runs the new version", slot->file,
                                          name);
    ml_info(self->cluster->log, "scripts", first ? "script is live" : "new version is live",
            ML_S("source", slot->source->name), ML_S("file", slot->file), ML_S("controller", name));
    ml_metric_add(ml_metric_with(self->loads, ml_metric_labels(name)), 1);
    ml_source_report(slot->source, false, "ScriptLoaded", note);
}

static void on_circuit(void *context, struct ml_controller *controller, bool open, const char *note)
{
    struct slot *slot = slot_of(context, controller);
    if (slot)
        ml_source_report(slot->source, open, open ? "CircuitOpen" : "CircuitClosed", note);
}

static void on_stopped(void *context, struct ml_controller *controller)
{
    struct ml_scripts *self = context;
    ml_list_each (node, &self->draining) {
        struct draining *draining = ml_container_of(node, struct draining, node);
        if (draining->controller != controller)
            continue;
        ml_list_remove(&draining->node);
        ml_controller_free(draining->controller);
        free(draining);
        break;
    }
    if (--self->running == 0 && self->stopping)
        self->stopped(self->stopped_context);
}

static const struct ml_controller_handler controller_handler = {
    .live = on_live,
    .circuit = on_circuit,
    .stopped = on_stopped,
};

struct ml_scripts *ml_scripts_new(struct ml_cluster *cluster, const struct ml_script_limits *limits)
{
    struct ml_scripts *self = ml_new(struct ml_scripts);
    self->cluster = cluster;
    self->limits = *limits;
    ml_list_init(&self->slots);
    ml_list_init(&self->draining);
    self->refusals = ml_metrics_counter(cluster->metrics, "moonloop_script_refused_total",
                                        "Versions of a script that were refused, by file.",
                                        ml_metric_labels("file"));
    self->quarantines = ml_metrics_counter(
        cluster->metrics, "moonloop_script_quarantined_total",
        "Versions of a script that were refused as the process had died in them, by file.",
        ml_metric_labels("file"));
    self->loads = ml_metrics_counter(cluster->metrics, "moonloop_script_loaded_total",
                                     "Versions of a script that went live.",
                                     ml_metric_labels("controller"));
    self->without_file = ml_metric_only(ml_metrics_gauge(
        cluster->metrics, "moonloop_controllers_without_file",
        "Controllers that work on though the file of their script is gone.", NULL));
    return self;
}

void ml_scripts_free(struct ml_scripts *self)
{
    if (!self)
        return;
    ml_list_each (node, &self->slots) {
        slot_free(ml_container_of(node, struct slot, node));
    }
    ml_list_each (node, &self->draining) {
        struct draining *draining = ml_container_of(node, struct draining, node);
        ml_controller_free(draining->controller);
        free(draining);
    }
    for (size_t i = 0; i < self->feed_count; i++) {
        ml_loader_free(self->feeds[i].loader);
        ml_timer_stop(&self->feeds[i].proof);
        ml_last_good_close(self->feeds[i].last_good);
        ml_source_free(self->feeds[i].source);
    }
    free(self);
}

void ml_scripts_mark(struct ml_scripts *self, struct ml_crash_marker *marker)
{
    ml_assert(self->feed_count == 0);
    self->marker = marker;
}

static void open_last_good(struct feed *feed)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_crash_marker *marker = feed->scripts->marker;
    if (marker && ml_last_good_open(ml_crash_marker_folder(marker), feed->source->name,
                                    &feed->last_good, &err) < 0)
        tell_not_kept(feed, &err);
}

void ml_scripts_add_source(struct ml_scripts *self, struct ml_source *source)
{
    const struct ml_loader_opts opts = {
        .cluster = self->cluster,
        .limits = &self->limits,
        .marker = self->marker,
        .source = source,
        .handler = &loader_handler,
        .context = self,
    };
    ml_assert(self->feed_count < SOURCES_MAX);
    struct feed *feed = &self->feeds[self->feed_count++];
    *feed = (struct feed){.scripts = self, .source = source, .loader = ml_loader_new(&opts)};
    ml_timer_init(&feed->proof, self->cluster->loop, on_proven, feed);
    open_last_good(feed);
}

void ml_scripts_start(struct ml_scripts *self)
{
    for (size_t i = 0; i < self->feed_count; i++)
        ml_source_start(self->feeds[i].source, &source_handler, self);
}

void ml_scripts_resync(struct ml_scripts *self)
{
    ml_list_each (node, &self->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->controller)
            ml_controller_resync(slot->controller);
        if (slot->successor)
            ml_controller_resync(slot->successor);
    }
}

void ml_scripts_reshard(struct ml_scripts *self)
{
    ml_list_each (node, &self->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->controller)
            ml_controller_reshard(slot->controller);
    }
}

/* A successor has no work before it is live; one that leaves may still have some. */
bool ml_scripts_hand_over(struct ml_scripts *self, bool cut)
{
    bool idle = true;
    ml_list_each (node, &self->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->controller && !ml_controller_hand_over(slot->controller, cut))
            idle = false;
    }
    ml_list_each (node, &self->draining) {
        struct draining *draining = ml_container_of(node, struct draining, node);
        if (!ml_controller_hand_over(draining->controller, cut))
            idle = false;
    }
    return idle;
}

void ml_scripts_stop(struct ml_scripts *self, void (*done)(void *context), void *context)
{
    self->stopping = true;
    for (size_t i = 0; i < self->feed_count; i++) {
        struct feed *feed = &self->feeds[i];
        ml_loader_free(ml_take(&feed->loader));
        ml_timer_stop(&feed->proof);
        if (feed->proposed && scripts_of_source_work(self, feed->source))
            accept_last_good(feed);
    }
    self->stopped = done;
    self->stopped_context = context;
    if (self->running == 0) {
        done(context);
        return;
    }
    ml_list_each (node, &self->slots) {
        struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->successor)
            ml_controller_stop(slot->successor);
        if (slot->controller)
            ml_controller_stop(slot->controller);
    }
}
