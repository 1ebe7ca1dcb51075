/* The built-in kinds in `moonloop check`: cluster/analysis/schemas.lua knows them. */
#include "cli/check.h"

#include "cluster/cli/commands.h"
#include "cluster/host/server_lua.h"
#include "codec/json.h"

static void put_kinds(struct ml_json_writer *writer, const struct ml_analysis *analysis)
{
    ml_json_key(writer, ML_STR("kinds"));
    ml_json_begin_array(writer);
    for (size_t i = 0; i < ml_analysis_kind_count(analysis); i++) {
        const struct ml_gvk gvk = ml_analysis_kind(analysis, i);
        ml_json_begin_object(writer);
        ml_json_put_string(writer, "group", gvk.group);
        ml_json_put_string(writer, "version", gvk.version);
        ml_json_put_string(writer, "kind", gvk.kind);
        ml_json_end_object(writer);
    }
    ml_json_end_array(writer);
}

static void give_schemas(struct ml_analysis *analysis, struct ml_str documents)
{
    for (size_t i = 0; i < ml_analysis_kind_count(analysis); i++) {
        const struct ml_gvk gvk = ml_analysis_kind(analysis, i);
        ML_AUTO_FREE char *key = ml_asprintf(ML_STR_FMT "%s" ML_STR_FMT "/" ML_STR_FMT,
                                             ML_STR_ARG(gvk.group), gvk.group.len ? "/" : "",
                                             ML_STR_ARG(gvk.version), ML_STR_ARG(gvk.kind));
        struct ml_str document;
        if (ml_json_find(documents, &document, key, NULL))
            ml_analysis_give_schema(analysis, i, document);
    }
}

static void give_known(struct ml_analysis *analysis, struct ml_str known)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, known, 0);
    ml_json_next(&reader);
    for (struct ml_str each; (each = ml_json_skip(&reader)).len;) {
        ML_AUTO_FREE char *group = ml_json_find_string(each, "group", NULL);
        ML_AUTO_FREE char *version = ml_json_find_string(each, "version", NULL);
        ML_AUTO_FREE char *kind = ml_json_find_string(each, "kind", NULL);
        const struct ml_gvk gvk = {ml_str_of(group), ml_str_of(version), ml_str_of(kind)};
        ml_analysis_give_kind(analysis, &gvk);
    }
}

static int give_builtin_kinds(struct ml_analysis *analysis, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf request = ML_BUF_INIT, answer = ML_BUF_INIT;
    struct ml_json_writer writer;
    struct ml_str documents, known;
    ml_json_writer_init(&writer, &request);
    ml_json_begin_object(&writer);
    put_kinds(&writer, analysis);
    ml_json_end_object(&writer);
    struct ml_server_lua *lua = ml_server_lua_new(&(struct ml_server_lua_options){.loop = NULL});
    int r = ml_server_lua_call(lua, "cluster.analysis.schemas", "answer", ml_buf_str(&request),
                               &answer, err);
    ml_server_lua_free(lua);
    if (r < 0)
        return r;
    if (ml_json_find(ml_buf_str(&answer), &documents, "documents", NULL))
        give_schemas(analysis, documents);
    if (ml_json_find(ml_buf_str(&answer), &known, "known", NULL))
        give_known(analysis, known);
    return 0;
}

int ml_check_run_with_builtin_kinds(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    return ml_check_run(values, give_builtin_kinds, err);
}
