/* The check of fields in `moonloop check`: cluster/analysis/fields reads the texts of the scripts.
 */
#include "cli/check.h"

#include "cli/crds.h"
#include "cluster/cli/commands.h"
#include "cluster/host/script_fields.h"

static int put_manifests(struct ml_json_writer *writer, const struct ml_option_list *crd_paths,
                         struct ml_err *err)
{
    int r = 0;
    ml_json_key(writer, ML_STR("manifests"));
    ml_json_begin_array(writer);
    for (size_t i = 0; r == 0 && i < crd_paths->count; i++)
        r = ml_crds_put(writer, crd_paths->values[i], err);
    ml_json_end_array(writer);
    return r;
}

static int find_wrong_reads(const struct ml_files *files, const bool *used,
                            const struct ml_option_list *crd_paths, ml_wrong_read *wrong,
                            void *context, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf request = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &request);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("files"));
    ml_json_begin_array(&writer);
    ml_script_fields_put(&writer, files, used);
    ml_json_end_array(&writer);
    int r = put_manifests(&writer, crd_paths, err);
    ml_json_end_object(&writer);
    if (r < 0)
        return r;
    struct ml_server_lua *lua = ml_server_lua_new(&(struct ml_server_lua_options){.loop = NULL});
    r = ml_script_fields_ask(lua, "cluster.analysis.fields", ml_buf_str(&request), wrong, context,
                             err);
    ml_server_lua_free(lua);
    return r;
}

int ml_check_run_with_fields(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    return ml_check_run(values, find_wrong_reads, err);
}
