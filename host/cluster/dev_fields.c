/* Called by dev.c when scripts have gone live. */
#include "cluster/dev_fields.h"

#include "cluster/script_fields.h"

static void log_problem(void *context, const char *file, const char *text)
{
    struct ml_log *log = context;
    ml_warn(log, "dev", "a script reads a field that its kind does not have", ML_S("file", file),
            ML_S("error", text));
}

static int log_path(struct ml_trusted *trusted, const char *path, struct ml_log *log,
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
    return ml_script_fields_ask(trusted, "cluster.dev.fields", ml_buf_str(&asked), log_problem, log,
                                err);
}

int ml_dev_fields_log(struct ml_trusted *trusted, const char *const *paths, struct ml_log *log,
                      struct ml_err *err)
{
    int r = 0;
    for (size_t i = 0; paths[i] && r == 0; i++)
        r = log_path(trusted, paths[i], log, err);
    return r;
}
