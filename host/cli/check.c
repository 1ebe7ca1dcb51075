/* moonloop check: the verdict of a running host on these scripts, without one: do they load, do the
 * names in them exist, and are the kinds that they declare among the given CRDs? */
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
    const struct ml_crds *crds;  /* NULL: none are given */
    ml_give_builtin_kinds *give; /* NULL: this binary does not know the built-in kinds */
    char **told;                 /* lines: two scripts may have a file in common */
    size_t told_count;
    size_t bad;
    size_t good;
};

/* The scripts of one path. */
struct checked {
    struct ml_files files;
    struct ml_load load;
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

/* ---- names ---- */

static void tell(struct check *check, const char *line)
{
    for (size_t i = 0; i < check->told_count; i++)
        if (strcmp(check->told[i], line) == 0)
            return;
    check->told = ml_realloc(check->told, (check->told_count + 1) * sizeof *check->told);
    check->told[check->told_count++] = ml_strdup(line);
    ml_print_line(stderr, "%s", line);
}

static void give_kinds(const struct check *check, struct ml_analysis *analysis)
{
    struct ml_err err = ML_ERR_INIT;
    if (check->crds)
        ml_crds_give(check->crds, analysis);
    if (check->give && check->give(analysis, &err) < 0)
        ml_print_line(stderr, "%s", err.message);
}

/* Tells each name in the texts of the script that does not exist, and returns how many there are.
 */
static size_t check_names(struct check *check, const struct checked *checked,
                          const struct ml_script *script)
{
    ML_AUTO(ml_files_fini) struct ml_files files;
    ml_files_copy_loaded(&files, &checked->files, script);
    const struct ml_script_files view = {files.files, files.count};
    struct ml_analysis *analysis = ml_analysis_new(&view, 0);
    enum ml_analysis_state state;
    while ((state = ml_analysis_step(analysis)) != ML_ANALYSIS_DONE && state != ML_ANALYSIS_GAVE_UP)
        if (state == ML_ANALYSIS_WANTS_KINDS)
            give_kinds(check, analysis);
    size_t count = ml_analysis_problem_count(analysis);
    for (size_t i = 0; i < count; i++)
        tell(check, ml_analysis_problem(analysis, i)->text);
    if (state == ML_ANALYSIS_GAVE_UP)
        ml_print_line(stderr, "%s: %s", ml_script_declaration(script)->file,
                      ml_analysis_why(analysis)->message);
    ml_analysis_free(analysis);
    return count;
}

static void check_controller(struct check *check, const struct checked *checked,
                             const struct ml_script *script)
{
    const struct ml_declaration *declaration = ml_script_declaration(script);
    size_t wrong = check_names(check, checked, script);
    for (size_t i = 0; check->crds && i < declaration->kind_count; i++) {
        const struct ml_script_kind *kind = &declaration->kinds[i];
        if (have_kind(check->crds, &kind->gvk))
            continue;
        wrong++;
        ml_print_line(
            stderr, "%s:%d: kind %.*s of %.*s%s%.*s is not built in and not among the given CRDs",
            declaration->file, kind->line, ML_STR_ARG(kind->gvk.kind), ML_STR_ARG(kind->gvk.group),
            kind->gvk.group.len ? "/" : "", ML_STR_ARG(kind->gvk.version));
    }
    wrong += check_versions(check, declaration);
    check->bad += wrong > 0;
    if (wrong > 0)
        return;
    check->good++;
    ml_print_line(stdout, "%s: controller %s is fine", declaration->file, declaration->name);
}

static void check_files(struct check *check, struct checked *checked)
{
    for (size_t i = 0; i < checked->files.refused_count; i++)
        count_bad(check, &checked->files.refused[i].err);
    for (size_t i = 0; i < checked->files.count; i++) {
        const struct ml_load_verdict *verdict = &checked->load.verdicts[i];
        if (verdict->outcome == ML_LOAD_REFUSED)
            count_bad(check, &verdict->err);
        else if (verdict->outcome == ML_LOAD_CONTROLLER)
            check_controller(check, checked, verdict->script);
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
    ml_load_all(&checked.load, &checked.files, &opts);
    check_files(check, &checked);
    if (checked.files.count + checked.files.refused_count == 0) {
        ml_err_set(&err, ML_EINVALID, "%s: no script in it", path);
        count_bad(check, &err);
    }
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

static int check_paths(const struct check_values *values, ml_give_builtin_kinds *give)
{
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO(ml_crds_fini) struct ml_crds crds = {0};
    if (ml_crds_read(&crds, &values->crd_paths, &err) < 0) {
        ml_print_line(stderr, "%s", err.message);
        return MOONLOOP_EXIT_BAD;
    }
    struct check check = {.crds = values->crd_paths.count ? &crds : NULL, .give = give};
    for (size_t i = 0; i < values->paths.count; i++)
        check_path(&check, &values->limits, values->paths.values[i]);
    for (size_t i = 0; i < check.told_count; i++)
        free(check.told[i]);
    free(check.told);
    return check.bad ? MOONLOOP_EXIT_BAD : MOONLOOP_EXIT_OK;
}

int ml_check_run(void *values, ml_give_builtin_kinds *give, struct ml_err *err)
{
    const struct check_values *given = values;
    if (given->paths.count > 0)
        return check_paths(given, give);
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
        "Compiles the scripts, loads them in the sandbox and checks what they declare, and the\n"
        "names in them: functions, fields of options and results, fields of the kinds that are\n"
        "among the CRDs, and, in the binary with `moonloop dev`, of built-in kinds.\n"
        "Prints file:line: message for each that is no good and exits 1 then.",
    .example = "reconcilers/ --crds crds/",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = offsetof(struct check_values, paths),
    .values_size = sizeof(struct check_values),
    .run = run,
};
