#include "state/informer_internal.h"

static void scope_init(struct informer_scope *scope, struct ml_informer *self, const char *ns,
                       struct ml_str name)
{
    const struct ml_informers_opts *opts = &self->informers->opts;
    scope->informer = self;
    scope->ns = ml_strdup(ns);
    scope->name = ml_str_dup(name);
    scope->trouble = ML_ERR_INIT;
    const struct ml_reflector_opts reflector = {
        .client = opts->client,
        .loop = opts->loop,
        .random = opts->random,
        .kind = self->kind,
        .ns = ml_str_of(ns),
        .name = name,
        .selection = &self->selection,
        .streams = opts->streams,
        .server = informers_server(self->informers, self->kind),
        .dict = self->dict,
        .handler = &informer_feed,
        .context = scope,
    };
    scope->reflector = ml_reflector_new(&reflector);
    informer_count_list(self, "start");
}

static void on_end(void *context)
{
    informer_free(context);
}

struct ml_informer *informer_new(struct ml_informers *informers,
                                 const struct informer_request *request)
{
    struct ml_informer *self = ml_new(struct ml_informer);
    self->informers = informers;
    self->kind = request->kind;
    self->selection = (struct ml_selection){
        .labels = ml_str_of(ml_str_dup(request->selection.labels)),
        .fields = ml_str_of(ml_str_dup(request->selection.fields)),
        .metadata_only = request->selection.metadata_only,
    };
    self->users = 1;
    self->store = ml_store_new();
    self->dict = ml_dict_new();
    self->scope_count = request->scope_count;
    self->unsynced = request->scope_count;
    self->scopes = ml_zalloc(request->scope_count * sizeof *self->scopes);
    ml_list_init(&self->listeners);
    ml_task_init(&self->end, on_end, self);
    ml_list_push(&informers->all, &self->node);
    for (size_t i = 0; i < self->scope_count; i++)
        scope_init(&self->scopes[i], self, request->namespaces[i], request->name);
    for (size_t i = 0; i < self->scope_count; i++)
        ml_reflector_start(self->scopes[i].reflector);
    return self;
}

void informer_free(struct ml_informer *self)
{
    ml_list_remove(&self->node);
    ml_task_cancel(&self->end);
    if (self->looking)
        ml_discovery_cancel(self->looking);
    for (size_t i = 0; i < self->scope_count; i++) {
        struct informer_scope *scope = &self->scopes[i];
        ml_reflector_free(scope->reflector);
        informer_release_all(scope);
        ml_heap_fini(&scope->waits);
        free(scope->ns);
        free(scope->name);
    }
    free(self->scopes);
    ml_store_free(self->store);
    ml_dict_unref(self->dict);
    tombstones_fini(&self->tombstones);
    free((char *)self->selection.labels.ptr);
    free((char *)self->selection.fields.ptr);
    free(self);
}

const struct ml_kind *ml_informer_kind(const struct ml_informer *self)
{
    return self->kind;
}

const struct ml_store *ml_informer_store(const struct ml_informer *self)
{
    return self->store;
}

bool ml_informer_synced(const struct ml_informer *self)
{
    return self->unsynced == 0;
}

const struct ml_err *ml_informer_trouble(const struct ml_informer *self)
{
    for (size_t i = 0; i < self->scope_count; i++)
        if (self->scopes[i].trouble.kind)
            return &self->scopes[i].trouble;
    return NULL;
}

bool ml_informer_is_degraded(const struct ml_informer *self)
{
    const struct ml_err *trouble = ml_informer_trouble(self);
    return trouble && (trouble->kind == ML_EFORBIDDEN || trouble->kind == ML_ENOT_FOUND ||
                       strcmp(trouble->reason, REFLECTOR_BEHIND) == 0);
}
