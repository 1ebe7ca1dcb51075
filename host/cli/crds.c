/* Reads CustomResourceDefinitions, and finds the kinds that they define. */
#include "cli/crds.h"

#include "codec/json.h"
#include "codec/yaml.h"
#include "operator/files.h"

#define JSON_MAX ((size_t)16 * 1024 * 1024) /* of one file */

static void add_version(struct ml_crds *crds, const char *group, const char *kind,
                        const char *plural, struct ml_str version)
{
    ML_AUTO_FREE char *name = ml_json_find_string(version, "name", NULL);
    struct ml_str served;
    if (!name || !ml_json_find(version, &served, "served", NULL) || !ml_str_is(served, "true"))
        return;
    crds->kinds = ml_realloc(crds->kinds, (crds->count + 1) * sizeof *crds->kinds);
    crds->kinds[crds->count++] = (struct ml_crd_kind){
        .name = ml_asprintf("%s/%s/%s", group, name, kind),
        .plural = ml_strdup(plural),
        .definition = crds->definition_count - 1, /* the last one */
    };
}

static void add_manifest(void *context, struct ml_str json)
{
    struct ml_crds *crds = context;
    ML_AUTO_FREE char *what = ml_json_find_string(json, "kind", NULL);
    ML_AUTO_FREE char *group = ml_json_find_string(json, "spec", "group", NULL);
    ML_AUTO_FREE char *kind = ml_json_find_string(json, "spec", "names", "kind", NULL);
    ML_AUTO_FREE char *plural = ml_json_find_string(json, "spec", "names", "plural", NULL);
    struct ml_str versions;
    if (!what || strcmp(what, "CustomResourceDefinition") != 0 || !group || !kind || !plural ||
        !ml_json_find(json, &versions, "spec", "versions", NULL))
        return;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, versions, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    crds->definitions = ml_realloc(crds->definitions,
                                   (crds->definition_count + 1) * sizeof *crds->definitions);
    crds->definitions[crds->definition_count++] = ml_str_dup(json);
    for (struct ml_str version; (version = ml_json_skip(&reader)).len;)
        add_version(crds, group, kind, plural, version);
}

/* Calls `each` for each manifest of the file or folder, as JSON. */
static int read_manifests(const char *path, void (*each)(void *context, struct ml_str json),
                          void *context, struct ml_err *err)
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
            each(context, ml_str_cut(&rest, '\n'));
    }
    return 0;
}

int ml_crds_read(struct ml_crds *crds, const struct ml_option_list *paths, struct ml_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < paths->count; i++)
        r = read_manifests(paths->values[i], add_manifest, crds, err);
    return r;
}

static void put_manifest(void *writer, struct ml_str json)
{
    ml_json_raw(writer, json);
}

int ml_crds_put(struct ml_json_writer *writer, const char *path, struct ml_err *err)
{
    return read_manifests(path, put_manifest, writer, err);
}

void ml_crds_fini(struct ml_crds *crds)
{
    for (size_t i = 0; i < crds->count; i++) {
        free(crds->kinds[i].name);
        free(crds->kinds[i].plural);
    }
    free(crds->kinds);
    for (size_t i = 0; i < crds->definition_count; i++)
        free(crds->definitions[i]);
    free(crds->definitions);
    *crds = (struct ml_crds){0};
}

static const struct ml_crd_kind *find_kind(const struct ml_crds *crds, const struct ml_gvk *gvk)
{
    ML_AUTO_FREE char *wanted = ml_asprintf(ML_STR_FMT "/" ML_STR_FMT "/" ML_STR_FMT,
                                            ML_STR_ARG(gvk->group), ML_STR_ARG(gvk->version),
                                            ML_STR_ARG(gvk->kind));
    for (size_t i = 0; i < crds->count; i++)
        if (strcmp(crds->kinds[i].name, wanted) == 0)
            return &crds->kinds[i];
    return NULL;
}

const char *ml_crds_plural(const struct ml_crds *crds, const struct ml_gvk *gvk)
{
    const struct ml_crd_kind *kind = find_kind(crds, gvk);
    return kind ? kind->plural : NULL;
}

const char *ml_crds_definition(const struct ml_crds *crds, const struct ml_gvk *gvk)
{
    const struct ml_crd_kind *kind = find_kind(crds, gvk);
    return kind ? crds->definitions[kind->definition] : NULL;
}

/* The schema of a version in a definition; empty: it has none. */
static struct ml_str find_schema(struct ml_str definition, struct ml_str version)
{
    struct ml_str versions, schema = {NULL, 0};
    if (!ml_json_find(definition, &versions, "spec", "versions", NULL))
        return schema;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, versions, 0);
    ml_json_next(&reader);
    for (struct ml_str each; (each = ml_json_skip(&reader)).len;) {
        ML_AUTO_FREE char *name = ml_json_find_string(each, "name", NULL);
        if (name && ml_str_is(version, name))
            (void)ml_json_find(each, &schema, "schema", "openAPIV3Schema", NULL);
    }
    return schema;
}

/* As ml_openapi_schema writes it. */
static void write_schema(const char *name, struct ml_str schema, struct ml_buf *out)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "root", ml_str_of(name));
    ml_json_key(&writer, ML_STR("definitions"));
    ml_json_begin_object(&writer);
    ml_json_put_raw(&writer, name, schema);
    ml_json_end_object(&writer);
    ml_json_end_object(&writer);
}

void ml_crds_give(const struct ml_crds *crds, struct ml_analysis *analysis)
{
    for (size_t i = 0; i < ml_analysis_kind_count(analysis); i++) {
        ML_AUTO(ml_buf_fini) struct ml_buf document = ML_BUF_INIT;
        const struct ml_gvk gvk = ml_analysis_kind(analysis, i);
        const struct ml_crd_kind *kind = find_kind(crds, &gvk);
        struct ml_str schema = {NULL, 0};
        if (kind)
            schema = find_schema(ml_str_of(crds->definitions[kind->definition]), gvk.version);
        if (schema.len == 0)
            continue;
        write_schema(kind->name, schema, &document);
        ml_analysis_give_schema(analysis, i, ml_buf_str(&document));
    }
    for (size_t i = 0; i < crds->count; i++) {
        struct ml_str rest = ml_str_of(crds->kinds[i].name);
        struct ml_gvk gvk = {.group = ml_str_cut(&rest, '/')};
        gvk.version = ml_str_cut(&rest, '/');
        gvk.kind = rest;
        ml_analysis_give_kind(analysis, &gvk);
    }
}
