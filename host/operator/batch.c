#include "operator/batch.h"

uint64_t ml_batch_fingerprint(const struct ml_files *files, const struct ml_script *script)
{
    uint64_t print = 0;
    for (size_t i = 0; i < files->count; i++) {
        const struct ml_script_file *file = &files->files[i];
        if (script && !ml_script_loaded_file(script, file->name))
            continue;
        /* Rotated so that two files that change places do not cancel out. */
        print = (print << 7 | print >> 57) ^ ml_str_hash(file->name);
        print = (print << 7 | print >> 57) ^ ml_str_hash(file->text);
    }
    return print;
}

static bool is_quarantined(const struct ml_batch *batch, const struct ml_script_file *file)
{
    return batch->opts.marker &&
           ml_crash_marker_quarantined(batch->opts.marker, ml_crash_marker_version(file));
}

static void load_from(struct ml_batch *batch, const struct ml_files *files, size_t index,
                      struct ml_batch_entry *entry)
{
    const struct ml_batch_opts *opts = &batch->opts;
    const struct ml_script_files view = ml_files_view(files);
    struct ml_script_limits limits = opts->limits ? *opts->limits : (struct ml_script_limits){0};
    struct ml_script *script = NULL;
    if (opts->marker) {
        limits.at_work = ml_crash_marker_at_work(opts->marker);
        limits.version = ml_crash_marker_version(&files->files[index]);
    }
    if (ml_script_load(opts->cluster, &limits, &view, index, &script, &entry->err) < 0) {
        entry->verdict = ML_BATCH_REFUSED;
        return;
    }
    entry->script = script;
    entry->verdict = ml_script_declaration(script) ? ML_BATCH_CONTROLLER : ML_BATCH_MODULE;
}

/* A controller of this name in the last good set, or NULL. */
static struct ml_script *load_last_good(struct ml_batch *batch, size_t index)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_batch_entry entry = {.err = ML_ERR_INIT};
    const struct ml_batch_opts *opts = &batch->opts;
    if (!opts->last_good || !opts->last_good(opts->context, index, &files))
        return NULL;
    for (size_t i = 0; i < files.count && !entry.script; i++)
        if (ml_str_eq(files.files[i].name, batch->files->files[index].name) &&
            !is_quarantined(batch, &files.files[i]))
            load_from(batch, &files, i, &entry);
    if (entry.verdict == ML_BATCH_CONTROLLER)
        return entry.script;
    ml_script_unref(entry.script);
    return NULL;
}

static void replace_quarantined(struct ml_batch *batch, size_t index)
{
    struct ml_batch_entry *entry = &batch->entries[index];
    entry->quarantined = true;
    entry->script = load_last_good(batch, index);
    entry->verdict = entry->script ? ML_BATCH_CONTROLLER : ML_BATCH_REFUSED;
    ml_err_set(&entry->err, ML_ESCRIPT,
               ML_STR_FMT ": this version was at work when the process died twice in a row; change "
                          "it to have it loaded again%s",
               ML_STR_ARG(batch->files->files[index].name),
               entry->script ? "; till then the last good version runs" : "");
}

static void load(struct ml_batch *batch, size_t index)
{
    if (is_quarantined(batch, &batch->files->files[index]))
        replace_quarantined(batch, index);
    else
        load_from(batch, batch->files, index, &batch->entries[index]);
}

static bool required(const struct ml_batch *batch, size_t index)
{
    struct ml_str name = batch->files->files[index].name;
    for (size_t i = 0; i < batch->files->count; i++) {
        const struct ml_batch_entry *entry = &batch->entries[i];
        /* A broken file may be the one that requires it: blame only one of the two. */
        if (i != index && (entry->verdict == ML_BATCH_REFUSED ||
                           (entry->script && ml_script_loaded_file(entry->script, name))))
            return true;
    }
    return false;
}

static void refuse(struct ml_batch_entry *entry, struct ml_err *err)
{
    ml_script_unref(ml_take(&entry->script));
    entry->verdict = ML_BATCH_REFUSED;
    entry->err = *err;
}

static void tell_judged(const struct ml_batch *batch, size_t index)
{
    if (batch->opts.judged)
        batch->opts.judged(batch->opts.context, index);
}

/* Who requires a module is known when all are loaded. */
static void judge_modules(struct ml_batch *batch)
{
    struct ml_err err;
    for (size_t i = 0; i < batch->files->count; i++) {
        if (batch->entries[i].verdict != ML_BATCH_MODULE)
            continue;
        if (!required(batch, i)) {
            ml_err_set(&err, ML_ESCRIPT,
                       ML_STR_FMT ": returns a table that is no moonloop.controller{…}, and no "
                                  "other script requires it",
                       ML_STR_ARG(batch->files->files[i].name));
            refuse(&batch->entries[i], &err);
        }
        tell_judged(batch, i);
    }
}

static const struct ml_declaration *declaration_of(const struct ml_batch *batch, size_t index)
{
    const struct ml_script *script = batch->entries[index].script;
    return script ? ml_script_declaration(script) : NULL;
}

static void refuse_second_name(struct ml_batch *batch, size_t index)
{
    const struct ml_script_file *files = batch->files->files;
    for (size_t i = 0; i < batch->next; i++) {
        const struct ml_declaration *first = declaration_of(batch, batch->order[i]);
        const struct ml_declaration *second = declaration_of(batch, index);
        if (!first || !second || strcmp(first->name, second->name) != 0)
            continue;
        struct ml_err err;
        ml_err_set(&err, ML_ESCRIPT,
                   ML_STR_FMT ": the name \"%s\" is taken by " ML_STR_FMT
                              "; give this controller another one",
                   ML_STR_ARG(files[index].name), second->name,
                   ML_STR_ARG(files[batch->order[i]].name));
        refuse(&batch->entries[index], &err);
    }
}

static void put_in_order(struct ml_batch *batch)
{
    const struct ml_batch_opts *opts = &batch->opts;
    const struct ml_files *files = batch->files;
    size_t count = 0;
    for (int late = 0; late <= 1; late++)
        for (size_t i = 0; i < files->count; i++)
            if ((opts->late && opts->late(opts->context, &files->files[i])) == (late == 1))
                batch->order[count++] = i;
    ml_assert(count == files->count);
}

void ml_batch_begin(struct ml_batch *batch, const struct ml_files *files,
                    const struct ml_batch_opts *opts)
{
    *batch = (struct ml_batch){.files = files, .opts = *opts};
    batch->fingerprint = ml_batch_fingerprint(files, NULL);
    batch->entries = ml_zalloc(ML_MAX(files->count, 1u) * sizeof *batch->entries);
    batch->order = ml_zalloc(ML_MAX(files->count, 1u) * sizeof *batch->order);
    for (size_t i = 0; i < files->count; i++)
        batch->entries[i].err = ML_ERR_INIT;
    put_in_order(batch);
}

static bool is_known(struct ml_batch *batch, size_t index)
{
    const struct ml_batch_opts *opts = &batch->opts;
    return opts->known && opts->known(opts->context, index, &batch->entries[index]);
}

bool ml_batch_step(struct ml_batch *batch)
{
    for (bool loaded = false; batch->next < batch->files->count; batch->next++) {
        size_t index = batch->order[batch->next];
        if (!is_known(batch, index)) {
            if (loaded)
                return true;
            load(batch, index);
            loaded = true;
        }
        refuse_second_name(batch, index);
        if (batch->entries[index].verdict != ML_BATCH_MODULE)
            tell_judged(batch, index);
    }
    judge_modules(batch);
    return false;
}

void ml_batch_load(struct ml_batch *batch, const struct ml_files *files,
                   const struct ml_batch_opts *opts)
{
    ml_batch_begin(batch, files, opts);
    while (ml_batch_step(batch))
        ;
}

void ml_batch_fini(struct ml_batch *batch)
{
    for (size_t i = 0; batch->files && i < batch->files->count; i++)
        ml_script_unref(batch->entries[i].script);
    free(batch->entries);
    free(batch->order);
    *batch = (struct ml_batch){0};
}
