#include "cluster/dev_manifests.h"

#include "codec/json.h"
#include "operator/files.h"
#include "operator/path_watch.h"

struct given {
    struct ml_dev_manifests *manifests;
    const char *path;
    struct ml_path_watch *watch;
    bool was_tried;
    bool is_read;
    struct ml_err last;
};

struct ml_dev_manifests {
    struct ml_dev_manifests_opts opts;
    struct given *given;
    size_t count;
    size_t untried;
    struct ml_task first; /* also when nothing was given */
};

static void describe(struct ml_buf *out, const char *path, const struct ml_files *files)
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

/* Manifests that fail are told of by Lua, each with its file. An entry that is no good as a file
 * keeps none of the others; the first such is told. */
static int apply(const struct given *given, struct ml_err *err)
{
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf argument = ML_BUF_INIT;
    int r = ml_files_read(&files, &ml_files_manifests, given->path, err);
    if (r < 0)
        return r;
    describe(&argument, given->path, &files);
    r = ml_trusted_call(given->manifests->opts.trusted, "cluster.dev", "apply",
                        ml_buf_str(&argument), NULL, err);
    if (r == 0 && files.refused_count) {
        *err = files.refused[0].err;
        r = err->kind;
    }
    return r;
}

static bool on_change(void *context)
{
    struct given *given = context;
    struct ml_dev_manifests *self = given->manifests;
    struct ml_err err = ML_ERR_INIT;
    given->is_read = apply(given, &err) == 0;
    if (err.kind && strcmp(err.message, given->last.message) != 0)
        ml_error(self->opts.log, "dev", "manifests", ML_ERR(&err));
    given->last = err;
    if (!given->was_tried && --self->untried == 0)
        ml_task_defer(&self->first, self->opts.loop);
    given->was_tried = true;
    return err.kind != ML_EIO;
}

static void on_first(void *context)
{
    struct ml_dev_manifests *self = context;
    self->opts.first(self->opts.context);
}

struct ml_dev_manifests *ml_dev_manifests_new(const struct ml_dev_manifests_opts *opts)
{
    struct ml_dev_manifests *self = ml_new(struct ml_dev_manifests);
    self->opts = *opts;
    ml_task_init(&self->first, on_first, self);
    while (opts->paths[self->count])
        self->count++;
    self->untried = self->count;
    self->given = ml_zalloc((self->count + 1) * sizeof *self->given);
    for (size_t i = 0; i < self->count; i++) {
        struct given *given = &self->given[i];
        *given = (struct given){.manifests = self, .path = opts->paths[i], .last = ML_ERR_INIT};
        given->watch = ml_path_watch_new(opts->loop, given->path, on_change, given);
    }
    if (self->count == 0)
        ml_task_defer(&self->first, opts->loop);
    return self;
}

void ml_dev_manifests_free(struct ml_dev_manifests *self)
{
    if (!self)
        return;
    for (size_t i = 0; i < self->count; i++)
        ml_path_watch_free(self->given[i].watch);
    ml_task_cancel(&self->first);
    free(self->given);
    free(self);
}

bool ml_dev_manifests_read(const struct ml_dev_manifests *self)
{
    for (size_t i = 0; i < self->count; i++)
        if (!self->given[i].is_read)
            return false;
    return true;
}
