/* Finalizers of a controller: what is to be called for an object, and the way of a controller that
 * is removed on purpose. It reconciles nothing any more and takes its finalizer off each object
 * that carries it, through the queue like all work; then scripts_removal.c stops it. */
#include "operator/controller_internal.h"

#include "operator/finalizer.h"

/* Reconciles that were under way may still add finalizers, and a replica that stands by waits for
 * the one that acts: so the cache is looked at again and again. */
#define CHECK_NS (100 * ML_NS_PER_MS)

bool controller_call_of(const struct ml_controller *self, const struct ml_object *object,
                        enum ml_reconcile_call *out)
{
    bool carries = ml_finalizer_carries(self->current, object);
    bool finalizes = self->current->declaration->finalizes && !self->removal.on;
    if (carries && !finalizes)
        *out = ML_CALL_RELEASE;
    else if (!ml_object_deleting(object) && ml_finalizer_is_former(self->current, object))
        *out = ML_CALL_TAKE_OVER;
    else if (ml_object_deleting(object))
        *out = ML_CALL_FINALIZE;
    else
        *out = ML_CALL_RECONCILE;
    return carries || (*out == ML_CALL_RECONCILE && !self->removal.on);
}

/* Each object that carries the finalizer, or only the first. Returns whether there is one. */
static bool find_carriers(struct ml_controller *self, bool enqueue)
{
    const struct ml_store *store = ml_revision_store(self->current);
    size_t cursor = 0;
    bool found = false;
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));) {
        if (!ml_finalizer_carries(self->current, object))
            continue;
        found = true;
        if (!enqueue)
            return true;
        if (controller_acts(self, ml_object_key(object)))
            controller_enqueue_at_start(self, ml_object_key(object));
    }
    return found;
}

/* What was begun before is over, and the cache shows what it wrote: from then on, no object gets a
 * finalizer of ours. */
static void check_removal(void *context)
{
    struct ml_controller *self = context;
    if (!self->current || self->in_flight > 0 || !ml_expectations_all_shown(self->expectations)) {
        ml_timer_start(&self->removal.check, CHECK_NS);
        return;
    }
    bool found = find_carriers(self, !self->removal.swept);
    self->removal.swept = true;
    if (found) {
        ml_timer_start(&self->removal.check, CHECK_NS);
        controller_pump(self);
        return;
    }
    self->handler->removed(self->context, self, self->removal.released);
}

void controller_removal_init(struct ml_controller *self)
{
    ml_timer_init(&self->removal.check, self->cluster->loop, check_removal, self);
}

void ml_controller_remove(struct ml_controller *self)
{
    if (self->removal.on || self->stopping)
        return;
    self->removal.on = true;
    ml_timer_start(&self->removal.check, 0);
}

bool ml_controller_is_removed(const struct ml_controller *self)
{
    return self->removal.on && !self->stopping;
}

size_t ml_controller_objects(const struct ml_controller *self, const char **out_kind)
{
    *out_kind = self->current ? ml_revision_kind(self->current)->kind : "";
    return self->current ? ml_store_len(ml_revision_store(self->current)) : 0;
}
