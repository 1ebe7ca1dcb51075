/* moonloop check: what a running host would say of these scripts, without one, and whether the
 * kinds that they declare are among the given CRDs. */
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "include/moonloop.h"
#include "operator/loader.h"

#include <stdio.h>

#define JSON_MAX ((size_t)16 * 1024 * 1024) /* of one file */

/* The kinds that a set of CRD manifests defines. */
struct crds {
    char **kinds; /* "group/version/Kind" */
    size_t count;
};

static void add_version(struct crds *crds, const char *group, const char *kind,
                        struct ml_str version)
{
    ML_AUTO_FREE char *name = ml_json_find_string(version, "name", NULL);
    struct ml_str served;
    if (!name || !ml_json_find(version, &served, "served", NULL) || !ml_str_is(served, "true"))
        return;
    crds->kinds = ml_realloc(crds->kinds, (crds->count + 1) * sizeof *crds->kinds);
    crds->kinds[crds->count++] = ml_asprintf("%s/%s/%s", group, name, kind);
}

static void add_manifest(struct crds *crds, struct ml_str json)
{
    ML_AUTO_FREE char *what = ml_json_find_string(json, "kind", NULL);
    ML_AUTO_FREE char *group = ml_json_find_string(json, "spec", "group", NULL);
    ML_AUTO_FREE char *kind = ml_json_find_string(json, "spec", "names", "kind", NULL);
    struct ml_str versions;
    if (!what || strcmp(what, "CustomResourceDefinition") != 0 || !group || !kind ||
        !ml_json_find(json, &versions, "spec", "versions", NULL))
        return;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, versions, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    for (struct ml_str version; (version = ml_json_skip(&reader)).len;)
        add_version(crds, group, kind, version);
}

/* Adds the CRDs of a YAML file, or of the manifests of a folder; others in them are passed over. */
static int read_crds(struct crds *crds, const char *path, struct ml_err *err)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    int r = ml_files_read(&files, &ml_files_manifests, path, err);
    if (r == 0 && files.refused_count) {
        *err = files.refused[0].err;
        r = err->kind;
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < files.count; i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
        if (ml_yaml_to_json(files.files[i].text, JSON_MAX, &json, err) < 0)
            return ml_err_wrap(err, "%s: " ML_STR_FMT, path, ML_STR_ARG(files.files[i].name));
        for (struct ml_str rest = ml_buf_str(&json); rest.len;)
            add_manifest(crds, ml_str_cut(&rest, '\n'));
    }
    return 0;
}

static void crds_fini(struct crds *crds)
{
    for (size_t i = 0; i < crds->count; i++)
        free(crds->kinds[i]);
    free(crds->kinds);
    *crds = (struct crds){0};
}

/* True for a kind of the API server itself (core, or a group without a dot or of k8s.io), and for
 * one that a manifest serves. */
static bool have_kind(const struct crds *crds, const struct ml_gvk *gvk)
{
    bool built_in = !gvk->group.len || !memchr(gvk->group.ptr, '.', gvk->group.len) ||
                    ml_str_ends(gvk->group, ".k8s.io");
    if (built_in)
        return true;
    ML_AUTO_FREE char *wanted = ml_asprintf(ML_STR_FMT "/" ML_STR_FMT "/" ML_STR_FMT,
                                            ML_STR_ARG(gvk->group), ML_STR_ARG(gvk->version),
                                            ML_STR_ARG(gvk->kind));
    for (size_t i = 0; i < crds->count; i++)
        if (strcmp(crds->kinds[i], wanted) == 0)
            return true;
    return false;
}

struct check {
    const struct crds *crds; /* NULL: not given */
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

static void count_bad(struct check *check, const struct ml_err *err)
{
    check->bad++;
    ml_print_line(stderr, "%s", err->message);
}

static void check_controller(struct check *check, const struct ml_script *script)
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
    check->bad += missing > 0;
    if (missing)
        return;
    check->good++;
    ml_print_line(stdout, "%s: controller %s is fine", declaration->file, declaration->name);
}

static void check_path(struct check *check, const struct ml_script_limits *limits, const char *path)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_batch_fini) struct ml_batch batch = {.files = ML_FILES_INIT};
    const struct ml_batch_opts opts = {.limits = limits};
    struct ml_err err = ML_ERR_INIT;
    if (ml_files_read(&files, &ml_files_scripts, path, &err) < 0) {
        count_bad(check, &err);
        return;
    }
    ml_batch_load(&batch, &files, &opts);
    for (size_t i = 0; i < files.refused_count; i++)
        count_bad(check, &files.refused[i].err);
    for (size_t i = 0; i < files.count; i++) {
        if (batch.entries[i].verdict == ML_BATCH_REFUSED)
            count_bad(check, &batch.entries[i].err);
        else if (batch.entries[i].verdict == ML_BATCH_CONTROLLER)
            check_controller(check, batch.entries[i].script);
    }
    if (files.count + files.refused_count == 0) {
        ml_err_set(&err, ML_EINVALID, "%s: no script in it", path);
        count_bad(check, &err);
    }
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
    ML_AUTO(crds_fini) struct crds crds = {0};
    for (size_t i = 0; i < crd_paths.count; i++) {
        if (read_crds(&crds, crd_paths.values[i], &err) < 0) {
            ml_print_line(stderr, "%s", err.message);
            return MOONLOOP_EXIT_BAD;
        }
    }
    struct check check = {.crds = crd_paths.count ? &crds : NULL};
    for (size_t i = 0; i < paths.count; i++)
        check_path(&check, &limits, paths.values[i]);
    return check.bad ? MOONLOOP_EXIT_BAD : MOONLOOP_EXIT_OK;
}
