/* One source of files and its loader: each file that was judged goes to its slot. scripts.c owns
 * the feeds. */
#include "operator/scripts_internal.h"

#include "base/escape.h"

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
            ml_info(feed->scripts->cluster->log, "scripts", "a script that never ran is gone",
                    ML_S("source", feed->source->name), ML_S("script", slot->file));
            slot_free(slot);
            continue;
        }
        ml_err_set(&err, ML_ENOT_FOUND, "%s: is no longer in %s", slot->file, feed->source->name);
        slot_refuse(slot, &err, false, NULL);
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
    if (self->cluster->standby)
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
    ml_error(self->cluster->log, "scripts", "no scripts to read; running scripts keep running",
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
        .loop = self->cluster->loop,
        .log = self->cluster->log,
        .folder = ml_crash_marker_folder(self->marker),
        .source = feed->source->name,
        .works = feed_works,
        .context = feed,
    };
    ml_last_good_open(&opts, &feed->last_good, &err);
}

bool feed_is_empty(const struct feed *feed)
{
    ml_list_each_entry (const struct slot, slot, &feed->scripts->slots)
        if (slot->feed == feed)
            return false;
    return feed->loaded;
}

void feed_init(struct feed *feed, struct ml_scripts *scripts, struct ml_source *source)
{
    const struct ml_batch_opts opts = {
        .cluster = scripts->cluster,
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
    feed_removal_init(feed);
    feed_open_last_good(feed);
}

void feed_start(struct feed *feed)
{
    static const struct ml_source_handler handler = {feed_on_files, feed_on_trouble};
    ml_source_start(feed->source, &handler, feed);
}

void feed_stop(struct feed *feed)
{
    ml_timer_stop(&feed->missing);
    ml_loader_free(ml_take(&feed->loader));
    ml_last_good_end(feed->last_good);
}

void feed_fini(struct feed *feed)
{
    ml_timer_stop(&feed->missing);
    ml_loader_free(feed->loader);
    ml_last_good_close(feed->last_good);
    ml_source_free(feed->source);
}

bool feed_is_loaded(const struct feed *feed, struct ml_buf *why)
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
