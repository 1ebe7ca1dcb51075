/* The manifests of `moonloop dev --apply`, applied again whenever their files change. */
#include "cluster/host/dev_manifests.h"

#include "codec/json.h"
#include "operator/files.h"

struct manifest_path {
    struct ml_dev_manifests *all;
    const char *path;
    struct ml_path_watch *watch;
    bool was_tried;
    bool is_read;
    struct ml_err last;
};

struct ml_dev_manifests {
    struct ml_dev_manifests_opts opts;
    struct manifest_path *paths;
    size_t count, untried_count;
    struct ml_task all_tried;
};

static void write_apply_argument(struct ml_buf *out, const char *path, const struct ml_files *files)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "path", ml_str_of(path));
    ml_json_key(&writer, ML_STR("files"));
    ml_json_begin_array(&writer);
    for (size_t i = 0; i < files->count; i++) {
        ml_json_begin_object(&writer);
        ml_json_put_string(&writer, "name", files->files[i].name);
        ml_json_put_string(&writer, "text", files->files[i].text);
        ml_json_end_object(&writer);
    }
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
}

/* Lua logs manifests that fail, each with its file. After an entry that cannot be read the
 * others follow; the first such entry is the error. */
static int apply_path(const struct manifest_path *path, struct ml_err *err)
{
    struct ml_server_lua *lua = path->all->opts.lua;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf argument = ML_BUF_INIT;
    int r = ml_files_read(&files, &ml_files_manifests, path->path, err);
    if (r < 0)
        return r;
    write_apply_argument(&argument, path->path, &files);
    r = ml_server_lua_call(lua, "cluster.dev", "apply", ml_buf_str(&argument), NULL, err);
    if (r == 0 && files.refused_count) {
        *err = files.refused[0].err;
        r = err->kind;
    }
    return r;
}

static bool on_path_changed(void *context)
{
    struct manifest_path *path = context;
    struct ml_dev_manifests *self = path->all;
    struct ml_err err = ML_ERR_INIT;
    path->is_read = apply_path(path, &err) == 0;
    if (err.kind && strcmp(err.message, path->last.message) != 0)
        ml_error(self->opts.log, "dev", "manifests", ML_ERR(&err));
    path->last = err;
    if (!path->was_tried && --self->untried_count == 0)
        ml_task_defer(&self->all_tried, self->opts.loop);
    path->was_tried = true;
    return err.kind != ML_EIO;
}

struct ml_dev_manifests *ml_dev_manifests_new(const struct ml_dev_manifests_opts *opts)
{
    struct ml_dev_manifests *self = ml_new(struct ml_dev_manifests);
    self->opts = *opts;
    while (opts->paths[self->count])
        self->count++;
    self->untried_count = self->count;
    self->paths = ml_zalloc((self->count + 1) * sizeof *self->paths);
    ml_task_init(&self->all_tried, opts->all_tried, opts->context);
    for (size_t i = 0; i < self->count; i++) {
        struct manifest_path *path = &self->paths[i];
        *path = (struct manifest_path){.all = self, .path = opts->paths[i], .last = ML_ERR_INIT};
        path->watch = ml_path_watch_new(opts->loop, path->path, on_path_changed, path);
    }
    if (self->count == 0)
        ml_task_defer(&self->all_tried, opts->loop);
    return self;
}

void ml_dev_manifests_free(struct ml_dev_manifests *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++)
        ml_path_watch_free(self->paths[i].watch);
    ml_task_cancel(&self->all_tried);
    free(self->paths);
    free(self);
}

bool ml_dev_manifests_are_read(const struct ml_dev_manifests *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (!self->paths[i].is_read)
            return false;
    return true;
}
