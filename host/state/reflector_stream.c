/* LIST by a watch that begins with what is there (KEP-3157): the initial events fill a shadow of
 * the store, which is published at the bookmark that says it is whole. */
#include "state/reflector_internal.h"

void reflector_stream_begin(struct ml_reflector *self)
{
    reflector_stream_drop(self);
    self->shadow = ml_store_new();
    if (self->step.any_version)
        self->opts.handler->listing(self->opts.context);
}

void reflector_stream_drop(struct ml_reflector *self)
{
    ml_store_free(ml_take(&self->shadow));
}

static void put(struct ml_reflector *self, struct ml_object *object)
{
    ml_object_unref(ml_store_put(self->shadow, object));
    ml_object_unref(object);
}

/* Changes of meanwhile may come among the initial events. */
void reflector_stream_take(struct ml_reflector *self, const struct watch_event *event)
{
    struct ml_object *object = reflector_list_read(&self->opts, event->object);
    if (object && event->type != WATCH_DELETED) {
        put(self, object);
        return;
    }
    ML_AUTO_FREE char *key = watch_event_key(event->object);
    if (event->type == WATCH_DELETED)
        ml_object_unref(ml_store_remove(self->shadow, ml_str_of(key)));
    ml_object_unref(object);
}

int reflector_stream_complete(struct ml_reflector *self, const char *version, struct ml_err *err)
{
    size_t count = ml_store_len(self->shadow), cursor = 0;
    ML_AUTO_FREE struct ml_object **objects = ml_zalloc(ML_MAX(count, 1) * sizeof *objects);
    for (size_t i = 0; i < count; i++)
        objects[i] = ml_store_next(self->shadow, &cursor);
    int r = reflector_publish(self, objects, count, version, err);
    reflector_stream_drop(self);
    return r;
}
