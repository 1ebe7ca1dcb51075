#include "cluster/world_source.h"

struct world_source {
    struct ml_source source;
    struct ml_loop *loop;
    struct ml_task read;
};

static void on_read(void *context)
{
    struct world_source *self = context;
    ML_AUTO(ml_files_fini) struct ml_files files = ML_FILES_INIT;
    struct ml_err err = ML_ERR_INIT;
    if (ml_files_read(&files, &ml_files_scripts, self->source.name, &err) == 0)
        ml_source_tell_files(&self->source, &files);
    else
        ml_source_tell_trouble(&self->source, &err);
}

static void world_source_start(struct ml_source *source)
{
    struct world_source *self = ml_container_of(source, struct world_source, source);
    ml_task_defer(&self->read, self->loop);
}

static void world_source_free(struct ml_source *source)
{
    struct world_source *self = ml_container_of(source, struct world_source, source);
    ml_task_cancel(&self->read);
    free(self);
}

static const struct ml_source_class world_source_class = {.start = world_source_start,
                                                          .free = world_source_free};

struct ml_source *world_source_new(struct ml_loop *loop, const char *path)
{
    struct world_source *self = ml_new(struct world_source);
    self->source.class = &world_source_class;
    self->source.name = ml_strdup(path);
    self->loop = loop;
    ml_task_init(&self->read, on_read, self);
    return &self->source;
}
