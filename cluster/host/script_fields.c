/* Fields that scripts read and that their kinds do not have: passes the texts of scripts to
 * cluster/analysis/fields, and gives what it found to `moonloop check`, `types` and `dev`. */
#include "cluster/host/script_fields.h"

void ml_script_fields_put(struct ml_json_writer *writer, const struct ml_files *files,
                          const bool *is_selected)
{
    for (size_t i = 0; i < files->count; i++) {
        if (is_selected ? !is_selected[i] : !ml_files_asked_for(files, i))
            continue;
        ml_json_begin_object(writer);
        ml_json_put_string(writer, "name", files->files[i].name);
        ml_json_put_string(writer, "text", files->files[i].text);
        ml_json_end_object(writer);
    }
}

int ml_script_fields_ask(struct ml_server_lua *lua, const char *module, struct ml_str request,
                         void (*each)(void *context, const char *file, const char *text),
                         void *context, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    int r = ml_server_lua_call(lua, module, "check", request, &answer, err);
    if (r < 0)
        return r;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, ml_buf_str(&answer), 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return 0;
    for (struct ml_str problem; (problem = ml_json_skip(&reader)).len;) {
        ML_AUTO_FREE char *file = ml_json_find_string(problem, "file", NULL);
        ML_AUTO_FREE char *text = ml_json_find_string(problem, "text", NULL);
        if (file && text)
            each(context, file, text);
    }
    return 0;
}
