/* From files to scripts. A batch loads one set of files and decides what each is: a controller, a
 * module, or refused, and why. A loader does so in turns of the event loop; scripts.c has one for
 * each source, `moonloop check` loads a batch at once. */
#include "operator/loader.h"

/* ---- a batch ---- */

static bool file_is_quarantined(const struct ml_batch *batch, const struct ml_script_file *file)
{
    return batch->opts.marker &&
           ml_crash_marker_quarantined(batch->opts.marker, ml_file_fingerprint(file));
}

static void batch_load_file(const struct ml_batch *batch, const struct ml_files *files,
                            size_t index, struct ml_batch_entry *entry)
{
    const struct ml_batch_opts *opts = &batch->opts;
    const struct ml_script_files view = {files->files, files->count};
    struct ml_script_limits limits = opts->limits ? *opts->limits : (struct ml_script_limits){0};
    struct ml_script *script = NULL;
    if (opts->marker) {
        limits.at_work = ml_crash_marker_at_work(opts->marker);
        limits.version = ml_file_fingerprint(&files->files[index]);
    }
    if (ml_script_load(opts->services, &limits, &view, index, &script, &entry->err) < 0) {
        entry->verdict = ML_BATCH_REFUSED;
        return;
    }
    entry->script = script;
    entry->verdict = ml_script_declaration(script) ? ML_BATCH_CONTROLLER : ML_BATCH_MODULE;
}

struct ml_script *ml_batch_load_last_good(const struct ml_batch *batch, struct ml_str file)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_batch_entry entry = {.err = ML_ERR_INIT};
    const struct ml_batch_opts *opts = &batch->opts;
    if (!opts->last_good || !opts->last_good(opts->context, file, &files))
        return NULL;
    for (size_t i = 0; i < files.count && !entry.script; i++)
        if (ml_str_eq(files.files[i].name, file) && !file_is_quarantined(batch, &files.files[i]))
            batch_load_file(batch, &files, i, &entry);
    if (entry.verdict == ML_BATCH_CONTROLLER)
        return entry.script;
    ml_script_unref(entry.script);
    return NULL;
}

/* Its `err` says why. */
static void entry_refuse(struct ml_batch_entry *entry)
{
    ml_script_unref(ml_take(&entry->script));
    entry->verdict = ML_BATCH_REFUSED;
}

/* Likewise; the last good version takes its place, if there is one and none runs. */
static void batch_refuse(struct ml_batch *batch, size_t index)
{
    struct ml_batch_entry *entry = &batch->entries[index];
    entry_refuse(entry);
    entry->script = ml_batch_load_last_good(batch, batch->files.files[index].name);
    if (entry->script)
        entry->verdict = ML_BATCH_CONTROLLER;
}

static void batch_refuse_quarantined(struct ml_batch *batch, size_t index)
{
    struct ml_batch_entry *entry = &batch->entries[index];
    entry->quarantined = true;
    batch_refuse(batch, index);
    ml_err_set(&entry->err, ML_ESCRIPT,
               ML_STR_FMT ": this version was at work when the process died twice in a row; change "
                          "it to have it loaded again%s",
               ML_STR_ARG(batch->files.files[index].name),
               entry->script ? "; till then the last good version runs" : "");
}

static void batch_load_next(struct ml_batch *batch, size_t index)
{
    struct ml_batch_entry *entry = &batch->entries[index];
    if (file_is_quarantined(batch, &batch->files.files[index])) {
        batch_refuse_quarantined(batch, index);
        return;
    }
    batch_load_file(batch, &batch->files, index, entry);
    if (entry->verdict == ML_BATCH_REFUSED)
        batch_refuse(batch, index);
}

static bool module_is_required(const struct ml_batch *batch, size_t index)
{
    struct ml_str name = batch->files.files[index].name;
    for (size_t i = 0; i < batch->files.count; i++) {
        const struct ml_batch_entry *entry = &batch->entries[i];
        /* A broken file may be the one that requires it: blame only one of the two. */
        if (i != index && (entry->verdict == ML_BATCH_REFUSED || entry->err.kind ||
                           (entry->script && ml_script_loaded_file(entry->script, name))))
            return true;
    }
    return false;
}

static void batch_notify_judged(const struct ml_batch *batch, size_t index)
{
    if (batch->opts.judged)
        batch->opts.judged(batch->opts.context, batch, index);
}

static const struct ml_declaration *entry_declaration(const struct ml_batch *batch, size_t index)
{
    const struct ml_script *script = batch->entries[index].script;
    return script ? ml_script_declaration(script) : NULL;
}

/* The file, loaded before, whose controller has the name of this one's, or the number of files. */
static size_t find_name_before(const struct ml_batch *batch, size_t index)
{
    const struct ml_declaration *second = entry_declaration(batch, index);
    for (size_t i = 0; second && i < batch->next; i++) {
        const struct ml_declaration *first = entry_declaration(batch, batch->order[i]);
        if (batch->order[i] != index && first && strcmp(first->name, second->name) == 0)
            return batch->order[i];
    }
    return batch->files.count;
}

/* The last good version may have the name of another file, too. */
static void batch_refuse_second_name(struct ml_batch *batch, size_t index)
{
    const struct ml_script_file *files = batch->files.files;
    struct ml_batch_entry *entry = &batch->entries[index];
    size_t other = find_name_before(batch, index);
    if (other == batch->files.count)
        return;
    if (entry->err.kind) { /* it is the last good one */
        entry_refuse(entry);
        return;
    }
    ml_err_set(&entry->err, ML_ESCRIPT,
               ML_STR_FMT ": the name \"%s\" is taken by " ML_STR_FMT
                          "; give this controller another one",
               ML_STR_ARG(files[index].name), entry_declaration(batch, index)->name,
               ML_STR_ARG(files[other].name));
    batch_refuse(batch, index);
    if (find_name_before(batch, index) < batch->files.count)
        entry_refuse(entry);
}

/* The users of a module are known when all files are loaded. */
static void batch_refuse_unused_modules(struct ml_batch *batch)
{
    for (size_t i = 0; i < batch->files.count; i++) {
        if (batch->entries[i].verdict != ML_BATCH_MODULE || !ml_files_asked_for(&batch->files, i))
            continue;
        if (!module_is_required(batch, i)) {
            ml_err_set(&batch->entries[i].err, ML_ESCRIPT,
                       ML_STR_FMT ": returns a table that is not a moonloop.controller{…}, and no "
                                  "other script requires it",
                       ML_STR_ARG(batch->files.files[i].name));
            batch_refuse(batch, i);
            batch_refuse_second_name(batch, i);
        }
        batch_notify_judged(batch, i);
    }
}

static void batch_sort(struct ml_batch *batch)
{
    const struct ml_batch_opts *opts = &batch->opts;
    const struct ml_files *files = &batch->files;
    for (int late = 0; late <= 1; late++)
        for (size_t i = 0; i < files->count; i++)
            if (ml_files_asked_for(files, i) &&
                (opts->late && opts->late(opts->context, &files->files[i])) == (late == 1))
                batch->order[batch->order_count++] = i;
}

static void batch_begin(struct ml_batch *batch, const struct ml_files *files,
                        const struct ml_batch_opts *opts)
{
    *batch = (struct ml_batch){.opts = *opts};
    ml_files_copy(&batch->files, files);
    batch->fingerprint = ml_files_fingerprint(files, NULL);
    batch->entries = ml_zalloc(files->count * sizeof *batch->entries);
    batch->order = ml_zalloc(files->count * sizeof *batch->order);
    for (size_t i = 0; i < files->count; i++) {
        batch->entries[i].err = ML_ERR_INIT;
        if (!ml_files_asked_for(files, i))
            batch->entries[i].verdict = ML_BATCH_MODULE;
    }
    batch_sort(batch);
}

/* Takes what the replaced batch has loaded already from the same text. */
static bool entry_copy_from_before(struct ml_batch *batch, size_t index)
{
    const struct ml_batch *before = batch->before;
    struct ml_str name = batch->files.files[index].name;
    for (size_t i = 0; before && i < before->files.count; i++) {
        struct ml_script *script = before->entries[i].script;
        if (!script || !ml_str_eq(before->files.files[i].name, name) ||
            ml_files_fingerprint(&before->files, script) !=
                ml_files_fingerprint(&batch->files, script))
            continue;
        batch->entries[index] = before->entries[i];
        ml_script_ref(script);
        return true;
    }
    return false;
}

static bool entry_is_known(struct ml_batch *batch, size_t index)
{
    const struct ml_batch_opts *opts = &batch->opts;
    return (opts->known && opts->known(opts->context, batch, index, &batch->entries[index])) ||
           entry_copy_from_before(batch, index);
}

/* Loads one file. False when all are loaded and the verdicts on the modules are final. */
static bool batch_step(struct ml_batch *batch)
{
    for (bool loaded = false; batch->next < batch->order_count; batch->next++) {
        size_t index = batch->order[batch->next];
        if (!entry_is_known(batch, index)) {
            if (loaded)
                return true;
            batch_load_next(batch, index);
            loaded = true;
        }
        batch_refuse_second_name(batch, index);
        if (batch->entries[index].verdict != ML_BATCH_MODULE)
            batch_notify_judged(batch, index);
    }
    batch_refuse_unused_modules(batch);
    return false;
}

void ml_batch_load(struct ml_batch *batch, const struct ml_files *files,
                   const struct ml_batch_opts *opts)
{
    batch_begin(batch, files, opts);
    while (batch_step(batch))
        ;
}

void ml_batch_fini(struct ml_batch *batch)
{
    for (size_t i = 0; i < batch->files.count; i++)
        ml_script_unref(batch->entries[i].script);
    free(batch->entries);
    free(batch->order);
    ml_files_fini(&batch->files);
    *batch = (struct ml_batch){0};
}

bool ml_batch_is_good(const struct ml_batch *batch)
{
    for (size_t i = 0; i < batch->files.count; i++)
        if (batch->entries[i].verdict == ML_BATCH_REFUSED || batch->entries[i].err.kind)
            return false;
    return batch->files.refused_count == 0;
}

/* ---- in turns of the loop ---- */

struct ml_loader {
    struct ml_batch_opts opts;
    struct ml_script_limits limits; /* of `opts`, with our payer */
    void (*loaded)(void *context, const struct ml_batch *batch);
    struct ml_payer payer;
    struct ml_turn turn;
    struct ml_batch *now;    /* NULL: nothing is being loaded */
    struct ml_batch *before; /* the unfinished one that `now` replaced, or NULL */
};

static void batch_free(struct ml_batch *batch)
{
    if (batch)
        ml_batch_fini(batch);
    free(batch);
}

static void loader_on_turn(void *context)
{
    struct ml_loader *self = context;
    if (batch_step(self->now)) {
        ml_turn_wait(&self->turn, &self->payer);
        return;
    }
    struct ml_batch *done = ml_take(&self->now);
    batch_free(ml_take(&self->before));
    self->loaded(self->opts.context, done);
    batch_free(done);
}

static void loader_on_idle(void *context)
{
    (void)context; /* whenever there is something to load, a turn waits */
}

struct ml_loader *ml_loader_new(const struct ml_batch_opts *opts,
                                void (*loaded)(void *context, const struct ml_batch *batch))
{
    struct ml_loader *self = ml_new(struct ml_loader);
    self->opts = *opts;
    self->limits = *opts->limits;
    self->limits.load_payer = &self->payer;
    self->opts.limits = &self->limits;
    self->loaded = loaded;
    ml_payer_init(&self->payer, opts->services->turns, loader_on_idle, self);
    ml_turn_init(&self->turn, loader_on_turn, self);
    return self;
}

void ml_loader_free(struct ml_loader *self)
{
    if (!self)
        return;
    ml_turn_cancel(&self->turn);
    ml_payer_fini(&self->payer);
    batch_free(self->now);
    batch_free(self->before);
    free(self);
}

void ml_loader_load(struct ml_loader *self, const struct ml_files *files)
{
    if (self->now && ml_files_same(&self->now->files, files))
        return;
    if (self->now) {
        batch_free(self->before);
        self->before = ml_take(&self->now);
    }
    self->now = ml_new(struct ml_batch);
    batch_begin(self->now, files, &self->opts);
    self->now->before = self->before;
    if (!ml_turn_waits(&self->turn))
        ml_turn_wait(&self->turn, &self->payer);
}

bool ml_loader_busy(const struct ml_loader *self)
{
    return self && self->now;
}
