/* One file of a source and its controller: the versions that the controller is offered or that are
 * refused, what the controller reports, and its end. A controller ends because its author wants it
 * removed or because its script has another name now: its finalizers go first, then it stops, and
 * the author reads what stays behind. */
#include "operator/scripts_internal.h"

struct ml_script *slot_script(const struct slot *slot)
{
    const struct ml_controller *controller = slot->successor ? slot->successor : slot->controller;
    if (!controller)
        return NULL;
    struct ml_script *offered = ml_controller_offered(controller);
    return offered ? offered : ml_controller_current(controller);
}

bool slot_works(const struct slot *slot)
{
    return slot->controller && ml_controller_current(slot->controller);
}

struct slot *slot_find(const struct feed *feed, struct ml_str file)
{
    ml_list_each_entry (struct slot, slot, &feed->scripts->slots)
        if (slot->feed == feed && ml_str_is(file, slot->file))
            return slot;
    return NULL;
}

struct slot *slot_get(struct feed *feed, struct ml_str file)
{
    struct slot *slot = slot_find(feed, file);
    if (slot)
        return slot;
    slot = ml_new(struct slot);
    slot->feed = feed;
    slot->file = ml_str_dup(file);
    slot->why = ML_ERR_INIT;
    ml_list_push(&feed->scripts->slots, &slot->node);
    /* At 0 until it happens: increase() sees the first refusal of a file that was good before. */
    (void)ml_metric_with(feed->scripts->refusals, ml_metric_labels(slot->file));
    (void)ml_metric_with(feed->scripts->quarantines, ml_metric_labels(slot->file));
    return slot;
}

void slot_show_refused(const struct slot *slot, bool refused)
{
    ml_metric_set(ml_metric_with(slot->feed->scripts->refused, ml_metric_labels(slot->file)),
                  refused);
}

void slot_refuse(struct slot *slot, const struct ml_err *err, bool quarantined,
                 const struct ml_script *last_good)
{
    struct ml_scripts *self = slot->feed->scripts;
    const char *message = slot_works(slot) || last_good
                              ? "script refused; the last good version keeps running"
                              : "script refused";
    slot->why = *err;
    ml_error(self->services->log, "scripts", message, ML_S("source", slot->feed->source->name),
             ML_ERR_FIELDS(err), ML_S("script", slot->file));
    ml_metric_add(ml_metric_with(self->refusals, ml_metric_labels(slot->file)), 1);
    slot_show_refused(slot, true);
    if (quarantined)
        ml_metric_add(ml_metric_with(self->quarantines, ml_metric_labels(slot->file)), 1);
    ml_source_report(slot->feed->source, true, quarantined ? "ScriptQuarantined" : "ScriptRefused",
                     err->message);
}

static void slot_drop_successor(struct slot *slot)
{
    if (!slot->successor)
        return;
    slot->feed->scripts->running--;
    ml_controller_free(ml_take(&slot->successor));
}

void slot_free(struct slot *slot)
{
    ml_list_remove(&slot->node);
    if (!slot->dead)
        slot_show_refused(slot, false);
    slot_drop_successor(slot);
    ml_controller_free(ml_take(&slot->controller));
    if (slot->draining > 0) { /* they refer to it */
        slot->dead = true;
        ml_list_push(&slot->feed->scripts->dead, &slot->node);
        return;
    }
    free(slot->removed);
    free(slot->file);
    free(slot);
}

void slot_free_unless_controller(struct slot *slot)
{
    if (slot && !slot->controller)
        slot_free(slot);
}

/* ---- the end of a controller ---- */

/* The controller of the slot ends: first its finalizers go, if it `removes_finalizers` and no other
 * one takes them over, then it stops. */
static void slot_drain(struct slot *slot, struct ml_controller *controller, bool removes_finalizers)
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
    ml_info(self->services->log, "scripts", "controller is removed; its objects stay",
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

/* Is the finalizer of a controller of that name being taken off, as another one took over? One that
 * begins meanwhile would lose its own. */
static bool scripts_remove_name(const struct ml_scripts *self, const char *name)
{
    for (size_t i = 0; i < self->draining_count; i++)
        if (ml_controller_is_removed(self->draining[i]) &&
            strcmp(ml_controller_name(self->draining[i]), name) == 0)
            return true;
    return false;
}

/* The controller was removed, and its source still says so. */
static bool slot_stays_removed(const struct slot *slot, const char *name)
{
    return slot->removed && strcmp(slot->removed, name) == 0 &&
           ml_source_removes(slot->feed->source, name);
}

void slot_remove(struct slot *slot)
{
    struct ml_controller *controller = slot->controller;
    if (!controller || ml_controller_is_removed(controller))
        return;
    ml_info(slot->feed->scripts->services->log, "scripts", "controller is being removed",
            ML_S("controller", ml_controller_name(controller)),
            ML_S("source", slot->feed->source->name), ML_S("script", slot->file));
    ml_controller_remove(controller);
}

/* ---- versions ---- */

static bool controller_has_name(const struct ml_controller *controller, const char *name)
{
    return controller && strcmp(ml_controller_name(controller), name) == 0;
}

/* Another file whose controller has the name, or NULL. */
static const struct slot *slot_with_name(const struct slot *mine, const char *name)
{
    ml_list_each_entry (struct slot, slot, &mine->feed->scripts->slots)
        if (slot != mine && (controller_has_name(slot->controller, name) ||
                             controller_has_name(slot->successor, name)))
            return slot;
    return NULL;
}

/* Does it say that it was the other one formerly? */
static bool takes_over(const struct ml_controller *controller, const struct ml_controller *other)
{
    struct ml_script *script = ml_controller_current(controller);
    return script && ml_declaration_is_called(ml_script_declaration(script),
                                              ml_str_of(ml_controller_name(other)));
}

static void slot_on_live(void *context, struct ml_controller *controller, bool first)
{
    struct slot *slot = context;
    struct ml_scripts *self = slot->feed->scripts;
    if (controller == slot->successor) {
        if (slot->controller) /* it was not removed meanwhile */
            slot_drain(slot, slot->controller, !takes_over(controller, slot->controller));
        slot->controller = ml_take(&slot->successor);
        free(ml_take(&slot->removed));
    }
    const char *name = ml_controller_name(controller);
    ML_AUTO_FREE char *note = ml_asprintf("%s: controller %s runs the new version", slot->file,
                                          name);
    ml_info(self->services->log, "scripts", first ? "script is live" : "new version is live",
            ML_S("controller", name), ML_S("source", slot->feed->source->name),
            ML_S("script", slot->file));
    ml_metric_add(ml_metric_with(self->loads, ml_metric_labels(name)), 1);
    ml_source_report(slot->feed->source, false, "ScriptLoaded", note);
    if (self->live)
        self->live(self->live_context);
}

static void slot_on_circuit(void *context, struct ml_controller *controller, bool open,
                            const char *note)
{
    struct slot *slot = context;
    if (controller == slot->controller)
        ml_source_report(slot->feed->source, open, open ? "CircuitOpen" : "CircuitClosed", note);
}

static void slot_on_stopped(void *context, struct ml_controller *controller)
{
    struct slot *slot = context;
    struct ml_scripts *self = slot->feed->scripts;
    for (size_t i = 0; i < self->draining_count; i++) {
        if (self->draining[i] != controller)
            continue;
        self->draining[i] = self->draining[--self->draining_count];
        ml_controller_free(controller);
        if (--slot->draining == 0 && slot->dead)
            slot_free(slot);
        break;
    }
    if (--self->running == 0 && self->stopping)
        ml_task_defer(&self->stopped_task, self->services->loop);
}

static const struct ml_controller_handler controller_handler = {
    .live = slot_on_live,
    .circuit = slot_on_circuit,
    .removed = slot_on_removed,
    .stopped = slot_on_stopped,
};

static struct ml_controller *slot_new_controller(struct slot *slot, const char *name)
{
    struct ml_scripts *self = slot->feed->scripts;
    self->running++;
    (void)ml_metric_with(self->loads, ml_metric_labels(name));
    return ml_controller_new(self->services, name, &controller_handler, slot);
}

size_t scripts_list_without_file(const struct ml_scripts *self, struct ml_buf *names)
{
    size_t count = 0;
    ml_list_each_entry (const struct slot, slot, &self->slots) {
        if (!slot->controller || slot->removed || (!slot->missing && !slot->feed->trouble.kind))
            continue;
        ml_buf_printf(names, "%s%s", count++ ? ", " : "", ml_controller_name(slot->controller));
    }
    return count;
}

static bool slot_has_room(struct slot *slot, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf names = ML_BUF_INIT;
    if (slot->feed->scripts->running < CONTROLLERS_MAX)
        return true;
    scripts_list_without_file(slot->feed->scripts, &names);
    ml_err_set(
        err, ML_ELIMIT,
        "%s: the limit of %d controllers is reached; a restart ends those whose file is gone: "
        "%s",
        slot->file, CONTROLLERS_MAX, names.len ? ml_buf_cstr(&names) : "none");
    return false;
}

/* Another file whose controller has a name that the script says was its own, or says that of the
 * script's name, or NULL. Both would take the other's objects. */
static const struct slot *slot_in_formerly(const struct slot *mine,
                                           const struct ml_declaration *declaration)
{
    ml_list_each_entry (const struct slot, slot, &mine->feed->scripts->slots) {
        const struct ml_script *script = slot == mine ? NULL : slot_script(slot);
        const struct ml_declaration *other = script ? ml_script_declaration(script) : NULL;
        if (other && (ml_declaration_is_called(declaration, ml_str_of(other->name)) ||
                      ml_declaration_is_called(other, ml_str_of(declaration->name))))
            return slot;
    }
    return NULL;
}

/* Nobody would watch the objects any more that carry the finalizer. */
static bool slot_changes_kind(const struct slot *slot, const struct ml_script *script,
                              struct ml_err *err)
{
    struct ml_script *runs = slot->controller ? ml_controller_current(slot->controller) : NULL;
    const struct ml_declaration *new = ml_script_declaration(script);
    const struct ml_declaration *old = runs ? ml_script_declaration(runs) : NULL;
    if (!old || !old->finalizes || !ml_declaration_is_called(new, ml_str_of(old->name)))
        return false;
    const struct ml_gvk *was = &old->kinds[0].gvk, *is = &new->kinds[0].gvk;
    if (ml_str_eq(was->group, is->group) && ml_str_eq(was->kind, is->kind))
        return false;
    ml_err_set(err, ML_ESCRIPT,
               "%s: controller %s reconciles " ML_STR_FMT " now, and objects of " ML_STR_FMT
               " carry its finalizer %s; give the controller of " ML_STR_FMT " another name",
               slot->file, new->name, ML_STR_ARG(is->kind), ML_STR_ARG(was->kind), old->finalizer,
               ML_STR_ARG(is->kind));
    return true;
}

void slot_offer(struct slot *slot, struct ml_script *script, uint64_t fingerprint)
{
    const char *name = ml_script_declaration(script)->name;
    const struct slot *other = slot_with_name(slot, name);
    const struct slot *former = slot_in_formerly(slot, ml_script_declaration(script));
    bool renamed = slot->controller && !controller_has_name(slot->controller, name);
    if (slot_stays_removed(slot, name)) {
        slot->refused = 0;
        slot->why = ML_ERR_INIT;
        slot_show_refused(slot, false);
        ml_script_unref(script);
        return;
    }
    struct ml_controller **place = renamed ? &slot->successor : &slot->controller;
    struct ml_err err = ML_ERR_INIT;
    if (other)
        ml_err_set(&err, ML_ESCRIPT, "%s: the name \"%s\" is taken by %s of %s", slot->file, name,
                   other->file, other->feed->source->name);
    else if (former)
        ml_err_set(&err, ML_ESCRIPT,
                   "%s: formerly: controllers \"%s\" and \"%s\" of %s would be one, and both are "
                   "loaded; end one of them, or take its name out of formerly",
                   slot->file, name, ml_script_declaration(slot_script(former))->name,
                   former->file);
    else if (scripts_remove_name(slot->feed->scripts, name))
        ml_err_set(&err, ML_ESCRIPT,
                   "%s: controller %s is being removed; this script is loaded after that",
                   slot->file, name);
    if (err.kind || slot_changes_kind(slot, script, &err) ||
        (!*place && !slot_has_room(slot, &err))) {
        slot_refuse(slot, &err, false, NULL);
        ml_script_unref(script);
        return;
    }
    slot->fingerprint = fingerprint;
    slot->refused = 0;
    slot->why = ML_ERR_INIT;
    slot_show_refused(slot, false);
    slot_drop_successor(slot);
    if (!*place)
        *place = slot_new_controller(slot, name);
    ml_controller_offer(*place, script);
    free(ml_take(&slot->removed));
    if (ml_source_removes(slot->feed->source, name))
        slot_remove(slot);
}

bool slot_webhook(const struct slot *slot, size_t which, struct ml_webhook_target *out)
{
    struct ml_controller *controller = which == 0 ? slot->controller : slot->successor;
    return controller && ml_controller_webhook(controller, out);
}
