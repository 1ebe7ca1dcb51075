/* The end of a controller: its author wants it removed, or its script has another name now. First
 * its finalizers go, then it stops, and what stays behind is said. Who wants one removed: the
 * annotation moonloop.dev/remove of a ConfigMap, and in `moonloop dev` a file that is gone. Called
 * by scripts_feed.c and scripts_slot.c. */
#include "operator/scripts_internal.h"

/* An editor or git may put a file back that it has just taken away. */
#define MISSING_NS ML_NS_PER_S

void slot_drain(struct slot *slot, struct ml_controller *controller, bool removes_finalizers)
{
    struct ml_scripts *self = slot->feed->scripts;
    ml_assert(self->draining_count < CONTROLLERS_MAX);
    self->draining[self->draining_count++] = controller;
    slot->draining++;
    if (removes_finalizers && ml_controller_current(controller))
        ml_controller_remove(controller);
    else
        ml_controller_stop(controller);
}

static void slot_report_removed(const struct slot *slot, const struct ml_controller *controller,
                                size_t count)
{
    const struct ml_scripts *self = slot->feed->scripts;
    const char *name = ml_controller_name(controller), *kind;
    size_t objects = ml_controller_objects(controller, &kind);
    ML_AUTO_FREE char *note = ml_asprintf(
        "%s: controller %s is removed; moonloop.dev/%s was taken off %zu objects; what stays: %zu "
        "objects of %s, and the objects that they own",
        slot->file, name, name, count, objects, kind);
    ml_info(self->cluster->log, "scripts", "controller is removed; its objects stay",
            ML_S("controller", name), ML_S("controllerKind", kind),
            ML_S("source", slot->feed->source->name), ML_S("script", slot->file),
            ML_I("finalizers", (int64_t)count), ML_I("objects", (int64_t)objects));
    ml_source_report(slot->feed->source, false, "ControllerRemoved", note);
}

/* Files that were refused because of its name may be good now, and its own may be back. */
static void feed_look_again(struct feed *feed)
{
    struct ml_scripts *self = feed->scripts;
    ml_list_each_entry (struct slot, slot, &self->slots)
        slot->refused = 0;
    for (size_t i = 0; i < self->feed_count && !self->stopping; i++)
        ml_source_again(self->feeds[i].source);
}

void slot_on_removed(void *context, struct ml_controller *controller, size_t count)
{
    struct slot *slot = context;
    struct feed *feed = slot->feed;
    bool has_successor = controller != slot->controller; /* and drains */
    if (!has_successor || count > 0)
        slot_report_removed(slot, controller, count);
    ml_controller_stop(controller);
    if (!has_successor) {
        slot->controller = NULL;
        slot_drain(slot, controller, true);
        free(slot->removed);
        slot->removed = ml_strdup(ml_controller_name(controller));
        if (slot->missing)
            slot_free(slot);
    }
    feed_look_again(feed);
}

bool scripts_remove_name(const struct ml_scripts *self, const char *name)
{
    for (size_t i = 0; i < self->draining_count; i++)
        if (ml_controller_is_removed(self->draining[i]) &&
            strcmp(ml_controller_name(self->draining[i]), name) == 0)
            return true;
    return false;
}

bool slot_stays_removed(const struct slot *slot, const char *name)
{
    return slot->removed && strcmp(slot->removed, name) == 0 &&
           ml_source_removes(slot->feed->source, name);
}

void slot_remove(struct slot *slot)
{
    struct ml_controller *controller = slot->controller;
    if (!controller || ml_controller_is_removed(controller))
        return;
    ml_info(slot->feed->scripts->cluster->log, "scripts", "controller is being removed",
            ML_S("controller", ml_controller_name(controller)),
            ML_S("source", slot->feed->source->name), ML_S("script", slot->file));
    ml_controller_remove(controller);
}

static bool feed_knows_controller(const struct feed *feed, struct ml_str name)
{
    ml_list_each_entry (const struct slot, slot, &feed->scripts->slots) {
        const struct ml_controller *controller = slot->controller;
        if (slot->feed == feed &&
            ((controller && ml_str_is(name, ml_controller_name(controller))) ||
             (slot->removed && ml_str_is(name, slot->removed))))
            return true;
    }
    return false;
}

/* Its kind is only known from its script. */
static void feed_report_unknown(struct feed *feed, struct ml_str name)
{
    ML_AUTO_FREE char *note = ml_asprintf(
        "moonloop.dev/remove: no script here has the controller '" ML_STR_FMT
        "'; put its script back to have its finalizers taken off",
        ML_STR_ARG(name));
    ml_warn(feed->scripts->cluster->log, "scripts", "no such controller to remove",
            ML_S("source", feed->source->name), ML_S("error", note));
    ml_source_report(feed->source, true, "ControllerUnknown", note);
}

static void feed_check_names(struct feed *feed)
{
    struct ml_str names = ml_str_of(feed->source->removed);
    uint64_t hash = names.len > 0 ? ml_str_hash(names) : 0;
    if (hash == feed->removals_told)
        return;
    feed->removals_told = hash;
    for (struct ml_str rest = names; rest.ptr;) {
        struct ml_str name = ml_str_trim(ml_str_cut(&rest, ','));
        if (name.len > 0 && !feed_knows_controller(feed, name))
            feed_report_unknown(feed, name);
    }
}

static bool slot_is_orphan(const struct slot *slot)
{
    return slot->missing && slot->controller && slot->feed->source->removes_missing;
}

void feed_remove_controllers(struct feed *feed)
{
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots) {
        if (slot->feed != feed || !slot->controller)
            continue;
        if (ml_source_removes(feed->source, ml_controller_name(slot->controller)))
            slot_remove(slot);
        else if (slot_is_orphan(slot) && !ml_timer_active(&feed->missing))
            ml_timer_start(&feed->missing, MISSING_NS);
    }
    feed_check_names(feed);
}

/* One that never was live has done nothing. */
static void feed_remove_missing(void *context)
{
    struct feed *feed = context;
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots) {
        if (slot->feed != feed || !slot_is_orphan(slot))
            continue;
        if (ml_controller_current(slot->controller))
            slot_remove(slot);
        else
            slot_on_removed(slot, slot->controller, 0);
    }
}

void feed_removal_init(struct feed *feed)
{
    ml_timer_init(&feed->missing, feed->scripts->cluster->loop, feed_remove_missing, feed);
}
