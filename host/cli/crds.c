#include "cli/crds.h"

#include "codec/json.h"
#include "codec/yaml.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define MANIFEST_MAX ((size_t)4 * 1024 * 1024)

static void add_version(struct ml_crds *crds, const char *group, const char *kind,
                        struct ml_str version)
{
    ML_AUTO_FREE char *name = ml_json_find_string(version, "name", NULL);
    struct ml_str served;
    if (!name || !ml_json_find(version, &served, "served", NULL) || !ml_str_is(served, "true"))
        return;
    crds->kinds = ml_realloc(crds->kinds, (crds->count + 1) * sizeof *crds->kinds);
    crds->kinds[crds->count++] = ml_asprintf("%s/%s/%s", group, name, kind);
}

static void add_manifest(struct ml_crds *crds, struct ml_str json)
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

static void close_file(FILE **file)
{
    if (*file)
        fclose(*file);
}

static int read_file(struct ml_crds *crds, const char *path, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf json = ML_BUF_INIT;
    ML_AUTO(close_file) FILE *file = fopen(path, "re");
    if (!file)
        return ml_err_set(err, ML_EIO, "%s: %s", path, strerror(errno));
    ml_buf_init(&text, MANIFEST_MAX);
    char piece[4096];
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        ml_buf_append(&text, piece, got);
    if (text.failed)
        return ml_err_set(err, ML_ELIMIT, "%s: larger than %zu bytes", path, MANIFEST_MAX);
    if (ml_yaml_to_json(ml_buf_str(&text), MANIFEST_MAX * 4, &json, err) < 0)
        return ml_err_wrap(err, "%s", path);
    for (struct ml_str rest = ml_buf_str(&json); rest.len;)
        add_manifest(crds, ml_str_cut(&rest, '\n'));
    return 0;
}

static void close_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

int ml_crds_read(struct ml_crds *crds, const char *path, struct ml_err *err)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return ml_err_set(err, ML_EIO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return read_file(crds, path, err);
    ML_AUTO(close_dir) DIR *dir = opendir(path);
    if (!dir)
        return ml_err_set(err, ML_EIO, "%s: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct ml_str name = ml_str_of(entry->d_name);
        if (!ml_str_ends(name, ".yaml") && !ml_str_ends(name, ".yml") &&
            !ml_str_ends(name, ".json"))
            continue;
        ML_AUTO_FREE char *inner = ml_asprintf("%s/%s", path, entry->d_name);
        int r = read_file(crds, inner, err);
        if (r < 0)
            return r;
    }
    return 0;
}

void ml_crds_fini(struct ml_crds *crds)
{
    for (size_t i = 0; i < crds->count; i++)
        free(crds->kinds[i]);
    free(crds->kinds);
    *crds = (struct ml_crds){0};
}

bool ml_crds_have(const struct ml_crds *crds, const struct ml_gvk *gvk)
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
