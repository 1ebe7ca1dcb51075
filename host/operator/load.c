/* From files to scripts: loads the files of a set one by one, and decides what each is: a
 * controller, a module, or refused, and why. scripts.c does so in turns of the event loop,
 * `moonloop check` at once. */
#include "operator/load.h"

static bool file_is_quarantined(const struct ml_load_opts *opts, const struct ml_script_file *file)
{
    return opts->marker && ml_crash_marker_quarantined(opts->marker, ml_file_fingerprint(file));
}

static void load_file(const struct ml_load_opts *opts, const struct ml_files *files, size_t index,
                      struct ml_load_verdict *verdict)
{
    const struct ml_script_files view = {files->files, files->count};
    struct ml_script_limits limits = opts->limits ? *opts->limits : (struct ml_script_limits){0};
    struct ml_script *script = NULL;
    if (opts->marker) {
        limits.at_work = ml_crash_marker_at_work(opts->marker);
        limits.version = ml_file_fingerprint(&files->files[index]);
    }
    if (ml_script_load(opts->services, &limits, &view, index, &script, &verdict->err) < 0) {
        verdict->outcome = ML_LOAD_REFUSED;
        return;
    }
    verdict->script = script;
    verdict->outcome = ml_script_declaration(script) ? ML_LOAD_CONTROLLER : ML_LOAD_MODULE;
}

static struct ml_script *load_controller(const struct ml_load_opts *opts,
                                         const struct ml_files *files, struct ml_str file,
                                         struct ml_err *err)
{
    struct ml_load_verdict verdict = {.outcome = ML_LOAD_REFUSED, .err = ML_ERR_INIT};
    size_t i = 0;
    while (i < files->count && !ml_str_eq(files->files[i].name, file))
        i++;
    if (i == files->count)
        ml_err_set(&verdict.err, ML_ENOT_FOUND, ML_STR_FMT ": is missing", ML_STR_ARG(file));
    else if (file_is_quarantined(opts, &files->files[i]))
        ml_err_set(&verdict.err, ML_ESCRIPT,
                   ML_STR_FMT ": was at work when the process died twice in a row",
                   ML_STR_ARG(file));
    else
        load_file(opts, files, i, &verdict);
    if (verdict.outcome == ML_LOAD_CONTROLLER)
        return verdict.script;
    if (verdict.outcome == ML_LOAD_MODULE)
        ml_err_set(&verdict.err, ML_ESCRIPT, ML_STR_FMT ": is no controller", ML_STR_ARG(file));
    ml_script_unref(verdict.script);
    *err = verdict.err;
    return NULL;
}

struct ml_script *ml_load_kept(const struct ml_load_opts *opts, const struct ml_files *files,
                               struct ml_err *err)
{
    return load_controller(opts, files, ml_str_of(files->only), err);
}

struct ml_script *ml_load_older(const struct ml_load_opts *opts, struct ml_str file)
{
    struct ml_script *script = NULL;
    bool has_more = opts->older != NULL;
    for (size_t n = 0; has_more && !script; n++) {
        ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
        struct ml_err err = ML_ERR_INIT;
        has_more = opts->older(opts->context, file, n, &files);
        if (has_more)
            script = load_controller(opts, &files, file, &err);
    }
    return script;
}

/* Its `err` says why. */
static void refuse(struct ml_load_verdict *verdict)
{
    ml_script_unref(ml_take(&verdict->script));
    verdict->outcome = ML_LOAD_REFUSED;
}

/* Likewise; an older version takes its place, if there is one. */
static void refuse_or_replace(struct ml_load *load, size_t index)
{
    struct ml_load_verdict *verdict = &load->verdicts[index];
    refuse(verdict);
    verdict->script = ml_load_older(&load->opts, load->files.files[index].name);
    if (verdict->script)
        verdict->outcome = ML_LOAD_CONTROLLER;
}

static void refuse_quarantined(struct ml_load *load, size_t index)
{
    struct ml_load_verdict *verdict = &load->verdicts[index];
    verdict->quarantined = true;
    refuse_or_replace(load, index);
    ml_err_set(&verdict->err, ML_ESCRIPT,
               ML_STR_FMT ": this version was at work when the process died twice in a row; change "
                          "it to have it loaded again%s",
               ML_STR_ARG(load->files.files[index].name),
               verdict->script ? "; till then the last good version runs" : "");
}

static bool module_is_required(const struct ml_load *load, size_t index)
{
    struct ml_str name = load->files.files[index].name;
    for (size_t i = 0; i < load->files.count; i++) {
        const struct ml_load_verdict *verdict = &load->verdicts[i];
        /* A broken file may be the one that requires it: blame only one of the two. */
        if (i != index && (verdict->outcome == ML_LOAD_REFUSED || verdict->err.kind ||
                           (verdict->script && ml_script_loaded_file(verdict->script, name))))
            return true;
    }
    return false;
}

static const struct ml_declaration *declaration_of(const struct ml_load *load, size_t index)
{
    const struct ml_script *script = load->verdicts[index].script;
    return script ? ml_script_declaration(script) : NULL;
}

/* The other file, loaded before, whose controller has the name of this one's, or the number of
 * files. */
static size_t find_same_name(const struct ml_load *load, size_t index)
{
    const struct ml_declaration *mine = declaration_of(load, index);
    size_t i = 0;
    for (; mine && i < load->files.count; i++) {
        const struct ml_declaration *other = i == index ? NULL : declaration_of(load, i);
        if (other && strcmp(other->name, mine->name) == 0)
            return i;
    }
    return load->files.count;
}

/* The older version may have the name of another file, too. */
static void refuse_second_name(struct ml_load *load, size_t index)
{
    const struct ml_script_file *files = load->files.files;
    struct ml_load_verdict *verdict = &load->verdicts[index];
    size_t other = find_same_name(load, index);
    if (other == load->files.count)
        return;
    if (verdict->err.kind) { /* it is the older one */
        refuse(verdict);
        return;
    }
    ml_err_set(&verdict->err, ML_ESCRIPT,
               ML_STR_FMT ": the name \"%s\" is taken by " ML_STR_FMT
                          "; give this controller another one",
               ML_STR_ARG(files[index].name), declaration_of(load, index)->name,
               ML_STR_ARG(files[other].name));
    refuse_or_replace(load, index);
    if (find_same_name(load, index) < load->files.count)
        refuse(verdict);
}

void ml_load_begin(struct ml_load *load, const struct ml_files *files,
                   const struct ml_load_opts *opts)
{
    *load = (struct ml_load){.opts = *opts};
    ml_files_copy(&load->files, files);
    load->fingerprint = ml_files_fingerprint(files, NULL);
    load->verdicts = ml_zalloc(files->count * sizeof *load->verdicts);
    load->order = ml_zalloc(files->count * sizeof *load->order);
    for (size_t i = 0; i < files->count; i++) {
        load->verdicts[i].err = ML_ERR_INIT;
        if (ml_files_asked_for(files, i))
            load->order[load->order_count++] = i;
        else
            load->verdicts[i].outcome = ML_LOAD_MODULE;
    }
}

bool ml_load_recall(const struct ml_load *load, size_t index, const struct ml_load *before,
                    struct ml_load_verdict *out)
{
    struct ml_str name = load->files.files[index].name;
    for (size_t i = 0; before && i < before->files.count; i++) {
        struct ml_script *script = before->verdicts[i].script;
        if (!script || !ml_str_eq(before->files.files[i].name, name) ||
            ml_files_fingerprint(&before->files, script) !=
                ml_files_fingerprint(&load->files, script))
            continue;
        *out = before->verdicts[i];
        ml_script_ref(script);
        return true;
    }
    return false;
}

void ml_load_next(struct ml_load *load, const struct ml_load_verdict *known)
{
    size_t index = load->order[load->next++];
    struct ml_load_verdict *verdict = &load->verdicts[index];
    if (known) {
        *verdict = *known;
    } else if (file_is_quarantined(&load->opts, &load->files.files[index])) {
        refuse_quarantined(load, index);
    } else {
        load_file(&load->opts, &load->files, index, verdict);
        if (verdict->outcome == ML_LOAD_REFUSED)
            refuse_or_replace(load, index);
    }
    refuse_second_name(load, index);
}

bool ml_load_check_module(struct ml_load *load, size_t index)
{
    struct ml_load_verdict *verdict = &load->verdicts[index];
    if (verdict->outcome != ML_LOAD_MODULE || !ml_files_asked_for(&load->files, index))
        return false;
    if (!module_is_required(load, index)) {
        ml_err_set(&verdict->err, ML_ESCRIPT,
                   ML_STR_FMT ": returns a table that is not a moonloop.controller{…}, and no "
                              "other script requires it",
                   ML_STR_ARG(load->files.files[index].name));
        refuse_or_replace(load, index);
        refuse_second_name(load, index);
    }
    return true;
}

void ml_load_all(struct ml_load *load, const struct ml_files *files,
                 const struct ml_load_opts *opts)
{
    ml_load_begin(load, files, opts);
    while (load->next < load->order_count)
        ml_load_next(load, NULL);
    for (size_t i = 0; i < files->count; i++)
        (void)ml_load_check_module(load, i);
}

void ml_load_fini(struct ml_load *load)
{
    for (size_t i = 0; i < load->files.count; i++)
        ml_script_unref(load->verdicts[i].script);
    free(load->verdicts);
    free(load->order);
    ml_files_fini(&load->files);
    *load = (struct ml_load){0};
}

bool ml_load_is_good(const struct ml_load *load)
{
    for (size_t i = 0; i < load->files.count; i++)
        if (load->verdicts[i].outcome == ML_LOAD_REFUSED || load->verdicts[i].err.kind)
            return false;
    return load->files.refused_count == 0;
}
