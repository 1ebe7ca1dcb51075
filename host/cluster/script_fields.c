/* Fields that scripts read and that their kinds do not have: passes the texts of scripts to
 * lua/cluster/fields, and gives what it found to `moonloop check` and `types`, or to the log of
 * `moonloop dev`. */
#include "cluster/script_fields.h"

void ml_script_fields_put(struct ml_json_writer *writer, const struct ml_files *files,
                          const bool *wanted)
{
    for (size_t i = 0; i < files->count; i++) {
        if (wanted ? !wanted[i] : !ml_files_asked_for(files, i))
            continue;
        ml_json_begin_object(writer);
        ml_json_put_string(writer, "name", files->files[i].name);
        ml_json_put_string(writer, "text", files->files[i].text);
        ml_json_end_object(writer);
    }
}

int ml_script_fields_ask(struct ml_server_lua *lua, const char *module, struct ml_str asked,
                         void (*each)(void *context, const char *file, const char *text),
                         void *context, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf answer = ML_BUF_INIT;
    int r = ml_server_lua_call(lua, module, "check", asked, &answer, err);
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

/* ---- in the log of moonloop dev ---- */

static void log_problem(void *context, const char *file, const char *text)
{
    struct ml_log *log = context;
    ml_warn(log, "dev", "a script reads a field that its kind does not have", ML_S("file", file),
            ML_S("error", text));
}

static int log_path(struct ml_server_lua *lua, const char *path, struct ml_log *log,
                    struct ml_err *err)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf asked = ML_BUF_INIT;
    struct ml_json_writer writer;
    struct ml_err unread = ML_ERR_INIT;
    if (ml_files_read(&files, &ml_files_scripts, path, &unread) < 0)
        return 0; /* the operator says so */
    ml_json_writer_init(&writer, &asked);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "path", ml_str_of(path));
    ml_json_key(&writer, ML_STR("files"));
    ml_json_begin_array(&writer);
    ml_script_fields_put(&writer, &files, NULL);
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
    return ml_script_fields_ask(lua, "cluster.dev.fields", ml_buf_str(&asked), log_problem, log,
                                err);
}

int ml_script_fields_log(struct ml_server_lua *lua, const char *const *paths, struct ml_log *log,
                         struct ml_err *err)
{
    int r = 0;
    for (size_t i = 0; paths[i] && r == 0; i++)
        r = log_path(lua, paths[i], log, err);
    return r;
}
