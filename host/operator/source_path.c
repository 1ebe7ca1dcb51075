/* A path as a source: read again whenever it may have changed. */
#include "operator/path_watch.h"
#include "operator/source.h"

struct path_source {
    struct ml_source source;
    struct ml_loop *loop;
    char *path;
    struct ml_path_watch *watch;
    struct ml_err last;
};

static struct path_source *of(struct ml_source *source)
{
    return ml_container_of(source, struct path_source, source);
}

static bool on_change(void *context)
{
    struct path_source *self = context;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    bool read = ml_files_read(&files, &ml_files_scripts, self->path, &err) == 0;
    if (read)
        ml_source_tell_files(&self->source, &files);
    else if (strcmp(err.message, self->last.message) != 0)
        ml_source_tell_trouble(&self->source, &err);
    self->last = err;
    return read && !ml_files_may_mend(&files);
}

static void path_start(struct ml_source *source)
{
    struct path_source *self = of(source);
    self->watch = ml_path_watch_new(self->loop, self->path, on_change, self);
}

static void path_free(struct ml_source *source)
{
    struct path_source *self = of(source);
    ml_path_watch_free(self->watch);
    free(self->path);
    free(self);
}

static const struct ml_source_class path_class = {.start = path_start, .free = path_free};

struct ml_source *ml_source_path_new(struct ml_loop *loop, const char *path)
{
    struct path_source *self = ml_new(struct path_source);
    self->source.class = &path_class;
    self->source.name = ml_strdup(path);
    self->loop = loop;
    self->path = ml_strdup(path);
    self->last = ML_ERR_INIT;
    return &self->source;
}
