#include "run/generation.h"

/* A kind that is not installed is looked for this often: soon enough for a person who has just
 * applied a CRD, rarely enough for a server. */
#define RESOLVE_RETRY_NS (2 * ML_NS_PER_S)

struct watched_kind {
    struct ml_generation *generation;
    const struct ml_script_kind *declared;
    struct ml_discovery_wait *resolving;
    struct ml_timer retry;
    struct ml_listener listener;
    struct ml_err last; /* why it cannot be had, as told last */
};

struct ml_generation {
    uint32_t refs;
    struct ml_gate *gate; /* once live */
    struct ml_cluster *cluster;
    struct ml_script *script;
    const struct ml_declaration *declaration;
    const struct ml_generation_handler *handler;
    void *context;

    struct watched_kind *watched; /* one for each declared kind, in its order */
    const struct ml_kind **kinds;
    struct ml_informer **informers;
    size_t unresolved;
    size_t unsynced;
    size_t primary; /* index of the reconciled kind */
    bool ready;
    bool live;
    struct ml_task ready_task;
};

static void resolve(void *context);

static void on_ready(void *context)
{
    struct ml_generation *self = context;
    self->ready = true;
    self->handler->ready(self->context, self);
}

static void count_synced(struct ml_generation *self)
{
    if (--self->unsynced == 0 && self->unresolved == 0)
        ml_task_defer(&self->ready_task, self->cluster->loop);
}

/* The owner of `object`, as a key of the reconciled kind; false when it has none of it.
 * Group and kind count, the version does not (controller-runtime, handler.EnqueueRequestForOwner).
 */
static bool owner_key(const struct ml_generation *self, struct ml_object *object,
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

static void enqueue_owner(struct ml_generation *self, struct ml_object *object)
{
    ML_AUTO(ml_buf_fini) struct ml_buf key = ML_BUF_INIT;
    if (owner_key(self, object, &key))
        self->handler->enqueue(self->context, self, ml_buf_str(&key));
}

static void emit_key(void *context, struct ml_str key)
{
    struct ml_generation *self = context;
    self->handler->enqueue(self->context, self, key);
}

static void enqueue_mapped(struct ml_generation *self, size_t index, struct ml_object *object)
{
    struct ml_err err = ML_ERR_INIT;
    if (object && ml_script_map(self->script, index, object, emit_key, self, &err) < 0)
        self->handler->map_failed(self->context, self, ml_object_key(object), &err);
}

static void on_change(void *context, struct ml_informer *informer, struct ml_object *old,
                      struct ml_object *new)
{
    struct watched_kind *watched = context;
    struct ml_generation *self = watched->generation;
    (void)informer;
    if (!self->live)
        return;
    switch (watched->declared->use) {
    case ML_USE_RECONCILES:
        if (new)
            self->handler->enqueue(self->context, self, ml_object_key(new));
        else
            self->handler->gone(self->context, self, ml_object_key(old));
        break;
    case ML_USE_OWNS: /* the old owner too: it may have lost the object */
        enqueue_owner(self, old);
        enqueue_owner(self, new);
        break;
    case ML_USE_WATCHES:
        enqueue_mapped(self, (size_t)(watched - self->watched), old);
        enqueue_mapped(self, (size_t)(watched - self->watched), new);
        break;
    case ML_USE_TOUCHES:
        break;
    }
}

static void on_synced(void *context, struct ml_informer *informer)
{
    struct watched_kind *watched = context;
    (void)informer;
    count_synced(watched->generation);
}

static void watch(struct watched_kind *watched, const struct ml_kind *kind)
{
    struct ml_generation *self = watched->generation;
    size_t index = (size_t)(watched - self->watched);
    self->kinds[index] = kind;
    if (watched->declared->use == ML_USE_TOUCHES) {
        count_synced(self);
        return;
    }
    self->informers[index] = ml_informers_get(self->cluster->informers, kind);
    watched->listener = (struct ml_listener){
        .change = on_change,
        .synced = on_synced,
        .context = watched,
    };
    ml_informer_listen(self->informers[index], &watched->listener);
}

static void on_resolved(void *context, const struct ml_kind *kind, const struct ml_err *err)
{
    struct watched_kind *watched = context;
    struct ml_generation *self = watched->generation;
    watched->resolving = NULL;
    if (!err) {
        self->unresolved--;
        watch(watched, kind);
        return;
    }
    if (strcmp(err->message, watched->last.message) != 0)
        self->handler->waiting(self->context, self, watched->declared, err);
    watched->last = *err;
    ml_timer_start(&watched->retry, RESOLVE_RETRY_NS);
}

static void resolve(void *context)
{
    struct watched_kind *watched = context;
    watched->resolving = ml_discovery_resolve(watched->generation->cluster->discovery,
                                              &watched->declared->gvk, on_resolved, watched);
}

struct ml_generation *ml_generation_new(struct ml_cluster *cluster, struct ml_script *script,
                                        const struct ml_generation_handler *handler, void *context)
{
    struct ml_generation *self = ml_new(struct ml_generation);
    self->refs = 1;
    self->cluster = cluster;
    self->script = script;
    self->declaration = ml_script_declaration(script);
    self->handler = handler;
    self->context = context;
    size_t count = self->declaration->kind_count;
    self->watched = ml_zalloc(count * sizeof *self->watched);
    self->kinds = ml_zalloc(count * sizeof *self->kinds);
    self->informers = ml_zalloc(count * sizeof *self->informers);
    self->unresolved = count;
    self->unsynced = count;
    ml_task_init(&self->ready_task, on_ready, self);
    for (size_t i = 0; i < count; i++) {
        struct watched_kind *watched = &self->watched[i];
        watched->generation = self;
        watched->declared = &self->declaration->kinds[i];
        watched->last = ML_ERR_INIT;
        ml_timer_init(&watched->retry, cluster->loop, resolve, watched);
        if (watched->declared->use == ML_USE_RECONCILES)
            self->primary = i;
    }
    return self;
}

void ml_generation_start(struct ml_generation *self)
{
    for (size_t i = 0; i < self->declaration->kind_count; i++)
        resolve(&self->watched[i]);
}

void ml_generation_live(struct ml_generation *self, struct ml_gate *gate)
{
    ml_assert(self->ready);
    const struct ml_script_binding binding = {
        .kinds = self->kinds,
        .informers = self->informers,
        .gate = gate,
    };
    ml_script_bind(self->script, &binding);
    self->gate = gate;
    self->live = true;
}

void ml_generation_retire(struct ml_generation *self)
{
    self->live = false;
    for (size_t i = 0; i < self->declaration->kind_count; i++) {
        struct watched_kind *watched = &self->watched[i];
        if (watched->resolving)
            ml_discovery_cancel(ml_take(&watched->resolving));
        ml_timer_stop(&watched->retry);
        if (watched->listener.informer)
            ml_informer_unlisten(&watched->listener);
    }
    ml_task_cancel(&self->ready_task);
}

struct ml_generation *ml_generation_ref(struct ml_generation *self)
{
    self->refs++;
    return self;
}

/* Gives an informer back. Keys that wait for it would wait for ever if it stops: when nobody
 * else watches the kind, the gate lets them go. */
static void put_informer(struct ml_generation *self, size_t index)
{
    struct ml_informer *informer = self->informers[index];
    if (!informer)
        return;
    if (self->gate && ml_informer_users(informer) == 1)
        ml_gate_drop_informer(self->gate, informer);
    ml_informer_put(informer);
}

void ml_generation_unref(struct ml_generation *self)
{
    if (!self || --self->refs > 0)
        return;
    ml_generation_retire(self);
    for (size_t i = 0; i < self->declaration->kind_count; i++)
        put_informer(self, i);
    ml_script_unref(self->script);
    free(self->watched);
    free(self->kinds);
    free(self->informers);
    free(self);
}

struct ml_script *ml_generation_script(const struct ml_generation *self)
{
    return self->script;
}

const struct ml_declaration *ml_generation_declaration(const struct ml_generation *self)
{
    return self->declaration;
}

bool ml_generation_is_ready(const struct ml_generation *self)
{
    return self->ready;
}

const struct ml_kind *ml_generation_kind(const struct ml_generation *self)
{
    return self->kinds[self->primary];
}

struct ml_informer *ml_generation_informer(const struct ml_generation *self)
{
    return self->informers[self->primary];
}
