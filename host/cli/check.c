/* moonloop check: what a running host would say of these scripts, without one. */
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/crds.h"
#include "cli/options.h"
#include "include/moonloop.h"
#include "operator/loader.h"

#include <stdio.h>

struct check {
    const struct ml_crds *crds; /* NULL: not given */
    size_t bad;
    size_t good;
};

static void print_help(const struct ml_option *options, size_t count)
{
    printf("Usage: moonloop check PATH… [--crds PATH…]\n\n"
           "Compiles the scripts, loads them in the sandbox and checks what they declare.\n"
           "Prints file:line: message for each that is no good and exits 1 then.\n\nOptions:\n");
    ml_options_help(options, count);
    printf("\nExample:\n  moonloop check reconcilers/ --crds crds/\n");
}

static void on_bad(void *context, const struct ml_err *err)
{
    struct check *check = context;
    check->bad++;
    ml_print_line(stderr, "%s", err->message);
}

static void on_good(void *context, const struct ml_script *script)
{
    struct check *check = context;
    const struct ml_declaration *declaration = ml_script_declaration(script);
    size_t missing = 0;
    for (size_t i = 0; check->crds && i < declaration->kind_count; i++) {
        const struct ml_script_kind *kind = &declaration->kinds[i];
        if (ml_crds_have(check->crds, &kind->gvk))
            continue;
        missing++;
        ml_print_line(
            stderr, "%s:%d: kind %.*s of %.*s%s%.*s is not built in and not among the given CRDs",
            declaration->file, kind->line, ML_STR_ARG(kind->gvk.kind), ML_STR_ARG(kind->gvk.group),
            kind->gvk.group.len ? "/" : "", ML_STR_ARG(kind->gvk.version));
    }
    check->bad += missing > 0;
    if (missing)
        return;
    check->good++;
    ml_print_line(stdout, "%s: controller %s is fine", declaration->file, declaration->name);
}

static void check_path(struct check *check, const struct ml_script_limits *limits, const char *path)
{
    struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (ml_files_read(&files, &ml_files_scripts, path, &err) < 0) {
        on_bad(check, &err);
        return;
    }
    const struct ml_batch_check callbacks = {on_bad, on_good, check};
    ml_batch_check(limits, &files, &callbacks);
    if (files.count + files.refused_count == 0) {
        ml_err_set(&err, ML_EINVALID, "%s: no script in it", path);
        on_bad(check, &err);
    }
    ml_files_fini(&files);
}

int ml_command_check(int argc, char **argv)
{
    struct ml_option_list paths = {0}, crd_paths = {0};
    struct ml_script_limits limits = {0};
    const struct ml_option options[] = {
        {"--crds", "PATH", "CRDs (YAML file or folder) that the declared kinds must be in (repeat)",
         ML_OPTION_LIST, &crd_paths},
        {"--script-memory", "BYTES", "limit of one script's memory; default 16Mi", ML_OPTION_SIZE,
         &limits.memory_max},
    };
    struct ml_err err = ML_ERR_INIT;
    bool help = false;
    if (ml_options_parse(options, ML_COUNT(options), argc, argv, &paths, &help, &err) < 0)
        return ml_command_usage_error("check", &err);
    if (help) {
        print_help(options, ML_COUNT(options));
        return MOONLOOP_EXIT_OK;
    }
    if (paths.count == 0) {
        ml_err_set(&err, ML_EINVALID, "no scripts given: moonloop check PATH");
        return ml_command_usage_error("check", &err);
    }
    ML_AUTO(ml_crds_fini) struct ml_crds crds = {0};
    for (size_t i = 0; i < crd_paths.count; i++) {
        if (ml_crds_read(&crds, crd_paths.values[i], &err) < 0) {
            ml_print_line(stderr, "%s", err.message);
            return MOONLOOP_EXIT_BAD;
        }
    }
    struct check check = {.crds = crd_paths.count ? &crds : NULL};
    for (size_t i = 0; i < paths.count; i++)
        check_path(&check, &limits, paths.values[i]);
    return check.bad ? MOONLOOP_EXIT_BAD : MOONLOOP_EXIT_OK;
}
