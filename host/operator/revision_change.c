/* From a change of a watched object to the keys that it concerns. */
#include "operator/revision_internal.h"

#include "kube/object_diff.h"

/* What a function may take at most, nearly: that of a watch has as long as a reconcile. */
#define WHEN_MAX_NS (10 * ML_NS_PER_MS)
#define MAP_MAX_NS  (100 * ML_NS_PER_MS)

#define UNMAPPED_MAX 256 /* changes that wait for their watch function; then all are concerned */

static size_t index_of(const struct watched_kind *watched)
{
    return (size_t)(watched - watched->revision->watched);
}

static void tell_failed(const struct watched_kind *watched, struct ml_object *object,
                        const struct ml_err *err)
{
    struct ml_revision *self = watched->revision;
    self->handler->function_failed(self->context, self, self->kinds[index_of(watched)], object,
                                   err);
}

/* Does the change count? What comes, goes, or begins to go always does; and so does what the
 * script's own function cannot judge, or has used too much of the CPU to be asked about: no change
 * is lost by a mistake in it. */
static bool counts(const struct watched_kind *watched, const struct ml_change *change)
{
    const struct ml_script_kind *declared = watched->declared;
    struct ml_object *old = change->old, *new = change->new;
    if (!old || !new || ml_object_deleting(old) != ml_object_deleting(new))
        return true;
    if (!declared->when_function)
        return declared->when == ML_PART_ALL ||
               (ml_object_diff(old, new, NULL) & declared->when) != 0;
    bool yes = true;
    struct ml_err err = ML_ERR_INIT;
    if (ml_payer_may_ask(watched->revision->payer, WHEN_MAX_NS) &&
        ml_script_when(watched->revision->script, index_of(watched), old, new, &yes, &err) < 0)
        tell_failed(watched, new, &err);
    return yes;
}

/* The owner of `object`, as a key of the reconciled kind; false when it has none of it.
 * Group and kind count, the version does not (controller-runtime, handler.EnqueueRequestForOwner).
 */
static bool owner_key(const struct ml_revision *self, struct ml_object *object,
                      struct ml_buf *out_key)
{
    const struct ml_kind *kind = self->kinds[self->primary];
    struct ml_owner owner;
    if (!object || !ml_object_controller(object, &owner) || !ml_str_is(owner.group, kind->group) ||
        !ml_str_is(owner.kind, kind->kind))
        return false;
    if (kind->namespaced)
        ml_buf_printf(out_key, ML_STR_FMT "/", ML_STR_ARG(ml_object_namespace(object)));
    return ml_buf_append_str(out_key, owner.name);
}

/* The owner, and the old one too: it may have lost the object. */
static void enqueue_owners(struct ml_revision *self, const struct ml_change *change)
{
    ML_AUTO(ml_buf_fini) struct ml_buf before = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf now = ML_BUF_INIT;
    bool had = owner_key(self, change->old, &before);
    bool has = owner_key(self, change->new, &now);
    if (has)
        self->handler->enqueue(self->context, self, ml_buf_str(&now), change);
    if (had && !(has && ml_str_eq(ml_buf_str(&before), ml_buf_str(&now))))
        self->handler->enqueue(self->context, self, ml_buf_str(&before), change);
}

struct mapping {
    struct ml_revision *revision;
    const struct ml_change *change;
};

static void emit_key(void *context, struct ml_str key)
{
    const struct mapping *mapping = context;
    struct ml_revision *self = mapping->revision;
    self->handler->enqueue(self->context, self, key, mapping->change);
}

/* What the old state concerned may be concerned no more, and has to hear of that. */
static void enqueue_mapped(struct watched_kind *watched, const struct ml_change *change)
{
    struct mapping mapping = {watched->revision, change};
    struct ml_object *const states[] = {change->old, change->new};
    for (size_t i = 0; i < ML_COUNT(states); i++) {
        struct ml_err err = ML_ERR_INIT;
        if (states[i] && ml_script_map(watched->revision->script, index_of(watched), states[i],
                                       emit_key, &mapping, &err) < 0)
            tell_failed(watched, states[i], &err);
    }
}

static void unmapped_free(struct ml_revision *self, struct unmapped *unmapped)
{
    ml_list_remove(&unmapped->node);
    self->unmapped_count--;
    ml_object_unref(unmapped->old);
    ml_object_unref(unmapped->new);
    free(unmapped);
}

static void drop_unmapped(struct ml_revision *self)
{
    ml_list_each (node, &self->unmapped)
        unmapped_free(self, ml_container_of(node, struct unmapped, node));
}

static void map_later(struct watched_kind *watched, const struct ml_change *change)
{
    struct ml_revision *self = watched->revision;
    if (!ml_turn_waits(&self->map_turn))
        ml_turn_wait(&self->map_turn, self->payer);
    if (self->unmapped_count == UNMAPPED_MAX) {
        self->concerns_all = true;
        drop_unmapped(self);
    }
    if (self->concerns_all)
        return;
    struct unmapped *unmapped = ml_new(struct unmapped);
    unmapped->watched = watched;
    unmapped->old = change->old ? ml_object_ref(change->old) : NULL;
    unmapped->new = change->new ? ml_object_ref(change->new) : NULL;
    ml_list_push(&self->unmapped, &unmapped->node);
    self->unmapped_count++;
}

static void map_next(struct ml_revision *self)
{
    struct unmapped *unmapped = ml_container_of(self->unmapped.next, struct unmapped, node);
    const struct ml_change change = {
        .informer = unmapped->watched->listener.informer,
        .old = unmapped->old,
        .new = unmapped->new,
    };
    enqueue_mapped(unmapped->watched, &change);
    unmapped_free(self, unmapped);
}

/* One change a turn. */
static void on_map_turn(void *context)
{
    struct ml_revision *self = context;
    if (self->concerns_all) {
        self->concerns_all = false;
        self->handler->concerns_all(self->context, self);
        return;
    }
    map_next(self);
    if (self->unmapped_count > 0)
        ml_turn_wait(&self->map_turn, self->payer);
}

/* In order: what waits goes first. */
static void map_now_or_later(struct watched_kind *watched, const struct ml_change *change)
{
    struct ml_revision *self = watched->revision;
    if (!ml_turn_waits(&self->map_turn) && ml_payer_may_ask(self->payer, MAP_MAX_NS))
        enqueue_mapped(watched, change);
    else
        map_later(watched, change);
}

void revision_change_init(struct ml_revision *self)
{
    ml_list_init(&self->unmapped);
    ml_turn_init(&self->map_turn, on_map_turn, self);
}

void revision_change_fini(struct ml_revision *self)
{
    ml_turn_cancel(&self->map_turn);
    drop_unmapped(self);
}

void revision_on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                        struct ml_object *new)
{
    struct watched_kind *watched = context;
    struct ml_revision *self = watched->revision;
    const struct ml_change change = {
        .informer = informer,
        .old = old,
        .new = new,
        .reconciled = watched->declared->use == ML_USE_RECONCILES,
        .child_deleted = watched->declared->use == ML_USE_OWNS && !new,
    };
    if (!self->live || !counts(watched, &change))
        return;
    switch (watched->declared->use) {
    case ML_USE_RECONCILES:
        if (new)
            self->handler->enqueue(self->context, self, ml_object_key(new), &change);
        else
            self->handler->gone(self->context, self, ml_object_key(old));
        break;
    case ML_USE_OWNS:
        enqueue_owners(self, &change);
        break;
    case ML_USE_WATCHES:
        map_now_or_later(watched, &change);
        break;
    case ML_USE_TOUCHES:
        break;
    }
}
