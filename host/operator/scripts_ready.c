#include "operator/scripts_internal.h"

#include "base/escape.h"

bool scripts_of_source_work(const struct ml_scripts *self, const struct ml_source *source)
{
    if (self->cluster->standby)
        return false;
    ml_list_each (node, &self->slots) {
        const struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->source == source && !slot->missing &&
            (!slot_works(slot) || slot->refused || slot->successor ||
             ml_controller_offered(slot->controller)))
            return false;
    }
    return true;
}

bool ml_scripts_ready(const struct ml_scripts *self, struct ml_buf *why)
{
    bool ready = true;
    for (size_t i = 0; i < self->feed_count; i++) {
        const struct feed *feed = &self->feeds[i];
        if (feed->loaded)
            continue;
        ready = false;
        ml_append_line(why, "%s %s", feed->source->name,
                       feed->source->read ? "is being loaded" : "has not been read yet");
    }
    ml_list_each (node, &self->slots) {
        const struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot_works(slot)) {
            ready = ml_controller_sees(slot->controller, why) && ready;
            continue;
        }
        ready = false;
        if (slot->why.kind)
            ml_append_line(why, "%s", slot->why.message);
        else
            ml_append_line(why, "%s: waits for the kinds it watches", slot->file);
    }
    return ready;
}

static bool loads(const struct feed *feed)
{
    return feed->loader && ml_loader_busy(feed->loader);
}

int64_t ml_scripts_next(const struct ml_scripts *self)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < self->feed_count; i++)
        if (!self->feeds[i].source->read || loads(&self->feeds[i]))
            return 0;
    ml_list_each (node, &self->slots) {
        const struct slot *slot = ml_container_of(node, struct slot, node);
        if (slot->controller)
            next = ML_MIN(next, ml_controller_next(slot->controller));
        if (slot->successor)
            next = ML_MIN(next, ml_controller_next(slot->successor));
    }
    return next;
}
