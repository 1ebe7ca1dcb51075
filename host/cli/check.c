/* moonloop check: the verdict of a running host on these scripts, without one, whether the kinds
 * that they declare are among the given CRDs, and, in the development binary, whether the fields
 * that they read are fields of their kinds. */
#include "cli/check.h"
#include "base/escape.h"
#include "cli/crds.h"
#include "include/moonloop.h"

#include <stdio.h>

/* True for a kind of the API server itself, and for one that a manifest serves. */
static bool have_kind(const struct ml_crds *crds, const struct ml_gvk *gvk)
{
    if (ml_group_is_built_in(gvk->group))
        return true;
    return ml_crds_plural(crds, gvk) != NULL;
}

struct check {
    const struct ml_crds *crds; /* NULL: not given */
    const struct ml_option_list *crd_paths;
    ml_find_wrong_reads *find; /* NULL: this binary does not know the fields of kinds */
    size_t bad;
    size_t good;
};

/* The scripts of one path. */
struct checked {
    struct ml_files files;
    struct ml_load load;
    bool *is_wrong; /* by file: it reads a field that there is not */
};

static void count_bad(struct check *check, const struct ml_err *err)
{
    check->bad++;
    ml_print_line(stderr, "%s", err->message);
}

/* The versions that `convert` is for: returns how many the CRDs do not serve. */
static size_t check_versions(const struct check *check, const struct ml_declaration *declaration)
{
    const struct ml_script_webhooks *webhooks = &declaration->webhooks;
    const struct ml_script_kind *kind = &declaration->kinds[0];
    struct ml_gvk gvk = kind->gvk;
    size_t missing = 0;
    for (size_t i = 0; check->crds && i < webhooks->version_count; i++) {
        gvk.version = ml_str_of(webhooks->versions[i]);
        if (have_kind(check->crds, &gvk))
            continue;
        missing++;
        ml_print_line(stderr, "%s:%d: convert.%s: the given CRD of %.*s serves no such version",
                      declaration->file, kind->line, webhooks->versions[i], ML_STR_ARG(gvk.kind));
    }
    return missing;
}

/* Does the script, or a module of it, read a field that its kind does not have? */
static bool reads_wrongly(const struct checked *checked, const struct ml_script *script)
{
    for (size_t i = 0; i < checked->files.count; i++)
        if (checked->is_wrong[i] && ml_script_loaded_file(script, checked->files.files[i].name))
            return true;
    return false;
}

static void check_controller(struct check *check, const struct ml_script *script, bool is_wrong)
{
    const struct ml_declaration *declaration = ml_script_declaration(script);
    size_t missing = 0;
    for (size_t i = 0; check->crds && i < declaration->kind_count; i++) {
        const struct ml_script_kind *kind = &declaration->kinds[i];
        if (have_kind(check->crds, &kind->gvk))
            continue;
        missing++;
        ml_print_line(
            stderr, "%s:%d: kind %.*s of %.*s%s%.*s is not built in and not among the given CRDs",
            declaration->file, kind->line, ML_STR_ARG(kind->gvk.kind), ML_STR_ARG(kind->gvk.group),
            kind->gvk.group.len ? "/" : "", ML_STR_ARG(kind->gvk.version));
    }
    missing += check_versions(check, declaration);
    check->bad += missing > 0 || is_wrong;
    if (missing > 0 || is_wrong)
        return;
    check->good++;
    ml_print_line(stdout, "%s: controller %s is fine", declaration->file, declaration->name);
}

static void print_wrong_read(void *context, const char *file, const char *text)
{
    struct checked *checked = context;
    ml_print_line(stderr, "%s", text);
    for (size_t i = 0; i < checked->files.count; i++)
        if (ml_str_is(checked->files.files[i].name, file))
            checked->is_wrong[i] = true;
}

/* Returns, by file, whether a script that loads has it. */
static bool *find_used_files(const struct checked *checked)
{
    bool *used = ml_zalloc((checked->files.count + 1) * sizeof *used);
    for (size_t i = 0; i < checked->files.count; i++)
        for (size_t j = 0; j < checked->files.count && !used[i]; j++)
            used[i] = checked->load.verdicts[j].outcome == ML_LOAD_CONTROLLER &&
                      ml_script_loaded_file(checked->load.verdicts[j].script,
                                            checked->files.files[i].name);
    return used;
}

static int check_fields(const struct check *check, struct checked *checked, struct ml_err *err)
{
    ML_AUTO_FREE bool *used = find_used_files(checked);
    if (!check->find)
        return 0;
    return check->find(&checked->files, used, check->crd_paths, print_wrong_read, checked, err);
}

static void check_files(struct check *check, struct checked *checked)
{
    struct ml_err err = ML_ERR_INIT;
    if (check_fields(check, checked, &err) < 0)
        count_bad(check, &err);
    for (size_t i = 0; i < checked->files.refused_count; i++)
        count_bad(check, &checked->files.refused[i].err);
    for (size_t i = 0; i < checked->files.count; i++) {
        const struct ml_load_verdict *verdict = &checked->load.verdicts[i];
        if (verdict->outcome == ML_LOAD_REFUSED)
            count_bad(check, &verdict->err);
        else if (verdict->outcome == ML_LOAD_CONTROLLER)
            check_controller(check, verdict->script, reads_wrongly(checked, verdict->script));
    }
}

static void check_path(struct check *check, const struct ml_script_limits *limits, const char *path)
{
    struct checked checked = {.files = ML_FILES_INIT, .load = {.files = ML_FILES_INIT}};
    const struct ml_load_opts opts = {.limits = limits};
    struct ml_err err = ML_ERR_INIT;
    if (ml_files_read(&checked.files, &ml_files_scripts, path, &err) < 0) {
        count_bad(check, &err);
        return;
    }
    checked.is_wrong = ml_zalloc((checked.files.count + 1) * sizeof *checked.is_wrong);
    ml_load_all(&checked.load, &checked.files, &opts);
    check_files(check, &checked);
    if (checked.files.count + checked.files.refused_count == 0) {
        ml_err_set(&err, ML_EINVALID, "%s: no script in it", path);
        count_bad(check, &err);
    }
    free(checked.is_wrong);
    ml_load_fini(&checked.load);
    ml_files_fini(&checked.files);
}

struct check_values {
    struct ml_option_list paths, crd_paths;
    struct ml_script_limits limits;
};

static const struct ml_option options[] = {
    {"--crds", "PATH", "CRDs (YAML file or folder) that the declared kinds must be in (repeat)",
     ML_OPTION_LIST, offsetof(struct check_values, crd_paths)},
    {"--script-memory", "BYTES", "limit of one script's memory; default 16Mi", ML_OPTION_SIZE,
     offsetof(struct check_values, limits.memory_max)},
};

static int check_paths(const struct check_values *values, ml_find_wrong_reads *find)
{
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO(ml_crds_fini) struct ml_crds crds = {0};
    if (ml_crds_read(&crds, &values->crd_paths, &err) < 0) {
        ml_print_line(stderr, "%s", err.message);
        return MOONLOOP_EXIT_BAD;
    }
    struct check check = {.crds = values->crd_paths.count ? &crds : NULL,
                          .crd_paths = &values->crd_paths,
                          .find = find};
    for (size_t i = 0; i < values->paths.count; i++)
        check_path(&check, &values->limits, values->paths.values[i]);
    return check.bad ? MOONLOOP_EXIT_BAD : MOONLOOP_EXIT_OK;
}

int ml_check_run(void *values, ml_find_wrong_reads *find, struct ml_err *err)
{
    const struct check_values *given = values;
    if (given->paths.count > 0)
        return check_paths(given, find);
    ml_err_set(err, ML_EINVALID, "no scripts given: moonloop check PATH");
    return MOONLOOP_EXIT_USAGE;
}

static int run(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    return ml_check_run(values, NULL, err);
}

const struct ml_command ml_command_check = {
    .name = "check",
    .usage = "PATH… [--crds PATH…]",
    .summary = "compile and load scripts, say what is wrong, touch nothing",
    .description =
        "Compiles the scripts, loads them in the sandbox and checks what they declare, and, in\n"
        "the binary with `moonloop dev`, which fields they read of kinds that are built in or\n"
        "among the CRDs.\n"
        "Prints file:line: message for each that is no good and exits 1 then.",
    .example = "reconcilers/ --crds crds/",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = offsetof(struct check_values, paths),
    .values_size = sizeof(struct check_values),
    .run = run,
};
