/* Changes on their way to the queue, and what is said of a script that wakes itself. */
#include "operator/controller_internal.h"
#include "operator/object_warning.h"

void controller_on_write(void *context, struct ml_str key, const struct ml_informer *informer,
                         uint64_t rv, bool shown)
{
    struct ml_controller *self = context;
    ml_enqueue_filter_wrote(self->filter, key, informer, rv, shown);
}

static void on_wake(void *context, struct ml_str key, int64_t delay_ns)
{
    struct ml_controller *self = context;
    if (delay_ns > 0)
        ml_workqueue_add_after(self->queue, key, ML_PRIORITY_NORMAL, delay_ns);
    else
        ml_workqueue_add(self->queue, key, ML_PRIORITY_NORMAL);
}

static void on_slowed(void *context, struct ml_str key, const char *fields, int64_t delay_ns)
{
    struct ml_controller *self = context;
    const struct ml_informer *informer = ml_revision_informer(self->current);
    struct ml_object *object = ml_store_get(ml_informer_store(informer), key);
    ml_metric_add(self->metrics.slowed, 1);
    ml_warn(self->cluster->log, self->name, "script wakes itself; slowing it down",
            ML_STR_FIELD("object", key), ML_S("changes", fields),
            ML_F("pause_seconds", (double)delay_ns / (double)ML_NS_PER_S));
    if (!object)
        return;
    ML_AUTO_FREE char *note = ml_asprintf(
        "each run changes what brings the next one: %s; the next run waits %d s", fields,
        (int)(delay_ns / ML_NS_PER_S));
    ml_object_warning(self->cluster, ml_informer_kind(informer), object, "SelfTriggered", note);
}

static void on_hot(void *context, struct ml_str key)
{
    struct ml_controller *self = context;
    const struct ml_informer *informer = ml_revision_informer(self->current);
    struct ml_object *object = ml_store_get(ml_informer_store(informer), key);
    ml_metric_add(self->metrics.slowed, 1);
    ml_warn(self->cluster->log, self->name,
            "script asks to be called again at once, again and again; slowing it down",
            ML_STR_FIELD("object", key));
    if (object)
        ml_object_warning(self->cluster, ml_informer_kind(informer), object, "SelfTriggered",
                          "each run asks to be called again at once (requeue_after, requeue_at): "
                          "after 100 of them the next ones wait, up to 1 s");
}

const struct ml_enqueue_filter_handler controller_enqueue_handler = {
    .wake = on_wake,
    .slowed = on_slowed,
    .hot = on_hot,
};

/* In virtual time nobody's core is taken, and what has no end is told as that. */
const struct ml_enqueue_filter_handler controller_enqueue_handler_of_virtual_time = {
    .wake = on_wake,
    .slowed = on_slowed,
};
