#include "operator/revision_internal.h"

#include "base/escape.h"

/* A kind that is not installed is looked for this often: soon enough for a person who has just
 * applied a CRD, rarely enough for a server. */
#define RESOLVE_RETRY_NS (2 * ML_NS_PER_S)

static void resolve(void *context);

static void on_ready(void *context)
{
    struct ml_revision *self = context;
    self->ready = true;
    self->handler->ready(self->context, self);
}

static void count_synced(struct ml_revision *self)
{
    if (--self->unsynced == 0 && self->unresolved == 0)
        ml_task_defer(&self->ready_task, self->cluster->loop);
}

static void on_synced(void *context, struct ml_informer *informer)
{
    struct watched_kind *watched = context;
    (void)informer;
    count_synced(watched->revision);
}

static void on_mended(void *context, struct ml_informer *informer)
{
    struct watched_kind *watched = context;
    struct ml_revision *self = watched->revision;
    (void)informer;
    if (self->live && watched->declared->use == ML_USE_RECONCILES)
        self->handler->mended(self->context, self);
}

static void watch(struct watched_kind *watched, const struct ml_kind *kind)
{
    struct ml_revision *self = watched->revision;
    size_t index = (size_t)(watched - self->watched);
    self->kinds[index] = kind;
    if (watched->declared->use == ML_USE_TOUCHES) {
        count_synced(self);
        return;
    }
    self->informers[index] = ml_informers_get_selected(self->cluster->informers, kind,
                                                       &watched->declared->selection);
    watched->listener = (struct ml_listener){
        .change = revision_on_change,
        .synced = on_synced,
        .mended = on_mended,
        .context = watched,
    };
    ml_informer_listen(self->informers[index], &watched->listener);
}

static void on_resolved(void *context, const struct ml_kind *kind, const struct ml_err *err)
{
    struct watched_kind *watched = context;
    struct ml_revision *self = watched->revision;
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
    watched->resolving = ml_discovery_resolve(watched->revision->cluster->discovery,
                                              &watched->declared->gvk, on_resolved, watched);
}

struct ml_revision *ml_revision_new(struct ml_cluster *cluster, struct ml_script *script,
                                    const struct ml_revision_handler *handler, void *context)
{
    struct ml_revision *self = ml_new(struct ml_revision);
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
    revision_change_init(self);
    for (size_t i = 0; i < count; i++) {
        struct watched_kind *watched = &self->watched[i];
        watched->revision = self;
        watched->declared = &self->declaration->kinds[i];
        watched->last = ML_ERR_INIT;
        ml_timer_init(&watched->retry, cluster->loop, resolve, watched);
        if (watched->declared->use == ML_USE_RECONCILES)
            self->primary = i;
    }
    return self;
}

void ml_revision_start(struct ml_revision *self)
{
    for (size_t i = 0; i < self->declaration->kind_count; i++)
        resolve(&self->watched[i]);
}

void ml_revision_live(struct ml_revision *self, struct ml_expectations *expectations,
                      struct ml_payer *payer)
{
    ml_assert(self->ready);
    const struct ml_script_binding binding = {
        .kinds = self->kinds,
        .informers = self->informers,
        .expectations = expectations,
        .payer = payer,
    };
    ml_script_bind(self->script, &binding);
    self->expectations = expectations;
    self->payer = payer;
    self->live = true;
}

void ml_revision_retire(struct ml_revision *self)
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
    revision_change_fini(self);
}

struct ml_revision *ml_revision_ref(struct ml_revision *self)
{
    self->refs++;
    return self;
}

/* Gives an informer back. Keys that wait for it would wait for ever if it stops: when nobody
 * else watches the kind, the expectations lets them go. */
static void put_informer(struct ml_revision *self, size_t index)
{
    struct ml_informer *informer = self->informers[index];
    if (!informer)
        return;
    if (self->expectations && ml_informer_users(informer) == 1)
        ml_expectations_drop_informer(self->expectations, informer);
    ml_informer_put(informer);
}

void ml_revision_unref(struct ml_revision *self)
{
    if (!self || --self->refs > 0)
        return;
    ml_revision_retire(self);
    for (size_t i = 0; i < self->declaration->kind_count; i++)
        put_informer(self, i);
    ml_script_unref(self->script);
    free(self->watched);
    free(self->kinds);
    free(self->informers);
    free(self);
}

struct ml_script *ml_revision_script(const struct ml_revision *self)
{
    return self->script;
}

const struct ml_declaration *ml_revision_declaration(const struct ml_revision *self)
{
    return self->declaration;
}

bool ml_revision_is_ready(const struct ml_revision *self)
{
    return self->ready;
}

const struct ml_kind *ml_revision_kind(const struct ml_revision *self)
{
    return self->kinds[self->primary];
}

struct ml_informer *ml_revision_informer(const struct ml_revision *self)
{
    return self->informers[self->primary];
}

bool ml_revision_sees(const struct ml_revision *self, struct ml_buf *why)
{
    bool sees = true;
    for (size_t i = 0; i < self->declaration->kind_count; i++) {
        if (!self->informers[i] || !ml_informer_is_degraded(self->informers[i]))
            continue;
        sees = false;
        ml_append_line(why, "%s: cannot watch %s: %s", self->declaration->file,
                       self->kinds[i]->plural, ml_informer_trouble(self->informers[i])->message);
    }
    return sees;
}
