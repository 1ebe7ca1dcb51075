#include "operator/source.h"

void ml_source_start(struct ml_source *source, const struct ml_source_handler *handler,
                     void *context)
{
    source->handler = handler;
    source->context = context;
    source->class->start(source);
}

void ml_source_free(struct ml_source *source)
{
    if (!source)
        return;
    char *name = source->name;
    source->class->free(source);
    free(name);
}

void ml_source_report(struct ml_source *source, bool warning, const char *reason, const char *note)
{
    if (source->class->report)
        source->class->report(source, warning, reason, note);
}

void ml_source_tell_files(struct ml_source *source, const struct ml_files *files)
{
    source->read = true;
    source->handler->files(source->context, source, files);
}

void ml_source_tell_trouble(struct ml_source *source, const struct ml_err *err)
{
    source->handler->trouble(source->context, source, err);
}
