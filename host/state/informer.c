#include "state/informer_internal.h"

#include <malloc.h>

#include "base/map.h"

/* After a list of this many objects the memory of its making goes back to the system. */
#define TRIM_COUNT 1000

/* ---- what a reflector tells ---- */

static bool same_uid(struct ml_object *a, struct ml_object *b)
{
    return ml_str_eq(ml_object_uid(a), ml_object_uid(b));
}

/* Not newer than what is held: a repeated event, or one from before the last list. */
static bool is_old_news(struct ml_object *held, struct ml_object *object)
{
    uint64_t had = ml_object_rv_number(held), has = ml_object_rv_number(object);
    if (!same_uid(held, object))
        return false;
    if (had == ML_RV_OPAQUE || has == ML_RV_OPAQUE)
        return ml_str_eq(ml_object_rv(held), ml_object_rv(object));
    return has <= had;
}

/* Another uid under the same name is another object: the old one went unseen. */
static void tell_put(struct ml_informer *self, struct ml_object *old, struct ml_object *new)
{
    if (old && !same_uid(old, new)) {
        informer_tell(self, old, NULL);
        old = NULL;
    }
    informer_tell(self, old, new);
}

static void put(struct ml_informer *self, struct ml_object *object)
{
    struct ml_object *held = ml_store_get(self->store, ml_object_key(object));
    if (held && is_old_news(held, object))
        return;
    struct ml_object *old = ml_store_put(self->store, object);
    tell_put(self, old, object);
    ml_object_unref(old);
}

static void on_upsert(void *context, struct ml_object *object)
{
    put(((struct informer_scope *)context)->informer, object);
}

static void on_remove(void *context, struct ml_object *last)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    struct ml_object *held = ml_store_get(self->store, ml_object_key(last));
    if (!held || !same_uid(held, last))
        return;
    struct ml_object *old = ml_store_remove(self->store, ml_object_key(last));
    informer_tell(self, old, NULL);
    ml_object_unref(old);
}

static bool in_scope(const struct informer_scope *scope, struct ml_object *object)
{
    return !*scope->ns || ml_str_is(ml_object_namespace(object), scope->ns);
}

struct change {
    struct ml_object *old, *new; /* a reference each */
};

/* Takes what the list no longer has out of the store; these changes come first. */
static size_t drop_missing(struct informer_scope *scope, struct ml_object *const *objects,
                           size_t count, struct change *changes)
{
    struct ml_store *store = scope->informer->store;
    struct ml_map listed = {0};
    size_t cursor = 0, found = 0;
    if (ml_store_len(store) == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        ml_map_put(&listed, ml_object_key(objects[i]), objects[i]);
    for (struct ml_object *held; (held = ml_store_next(store, &cursor));)
        if (in_scope(scope, held) && !ml_map_get(&listed, ml_object_key(held)))
            changes[found++].old = ml_store_remove(store, ml_object_key(held));
    ml_map_fini(&listed);
    return found;
}

static size_t put_listed(struct informer_scope *scope, struct ml_object *const *objects,
                         size_t count, struct change *changes)
{
    struct ml_store *store = scope->informer->store;
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (ml_store_get(store, ml_object_key(objects[i])) == objects[i])
            continue;
        changes[found++] = (struct change){
            .old = ml_store_put(store, objects[i]),
            .new = ml_object_ref(objects[i]),
        };
    }
    return found;
}

/* The whole list enters the store before anybody hears of it. */
static void on_replace(void *context, struct ml_object *const *objects, size_t count, uint64_t rv)
{
    struct informer_scope *scope = context;
    struct ml_informer *self = scope->informer;
    size_t room = ml_store_len(self->store) + count;
    struct change *changes = ml_zalloc(room * sizeof *changes);
    size_t found = drop_missing(scope, objects, count, changes);
    found += put_listed(scope, objects, count, changes + found);
    scope->seen = rv;
    for (size_t i = 0; i < found; i++) {
        if (changes[i].new)
            tell_put(self, changes[i].old, changes[i].new);
        else
            informer_tell(self, changes[i].old, NULL);
        ml_object_unref(changes[i].old);
        ml_object_unref(changes[i].new);
    }
    free(changes);
    informer_release_seen(scope, scope->listing);
    scope->listing = 0;
    if (!scope->synced) {
        scope->synced = true;
        if (--self->unsynced == 0)
            informer_tell_synced(self);
    }
    if (count > TRIM_COUNT)
        malloc_trim(0);
}

static void on_listing(void *context)
{
    struct informer_scope *scope = context;
    scope->listing = scope->waits.sequence;
}

static void on_progress(void *context, uint64_t rv)
{
    struct informer_scope *scope = context;
    if (rv == ML_RV_OPAQUE || rv > scope->seen)
        scope->seen = rv;
    informer_release_seen(scope, 0);
}

static struct ml_object *on_current(void *context, struct ml_str key)
{
    return ml_store_get(((struct informer_scope *)context)->informer->store, key);
}

static void on_poisoned(void *context, struct ml_str key, const struct ml_err *err)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    ml_error(self->informers->opts.log, "informer", "object cannot be read; left out",
             ML_S("resource", self->kind->plural), ML_STR_FIELD("object", key), ML_ERR(err));
    ml_metric_add(ml_metric_with(self->informers->poisoned, ml_metric_labels(self->kind->plural)),
                  1);
}

static void on_trouble(void *context, const struct ml_err *err, int64_t retry_ms)
{
    struct informer_scope *scope = context;
    struct ml_informer *self = scope->informer;
    struct ml_log *log = self->informers->opts.log;
    scope->trouble = err ? *err : ML_ERR_INIT;
    if (err)
        ml_warn(log, "informer", "cannot list or watch; trying again",
                ML_S("resource", self->kind->plural), ML_S("namespace", scope->ns), ML_ERR(err),
                ML_F("retry_seconds", (double)retry_ms / 1000));
    else
        ml_info(log, "informer", "list and watch work again", ML_S("resource", self->kind->plural),
                ML_S("namespace", scope->ns));
}

static const struct ml_reflector_handler reflector_handler = {
    .listing = on_listing,
    .replace = on_replace,
    .upsert = on_upsert,
    .remove = on_remove,
    .progress = on_progress,
    .poisoned = on_poisoned,
    .trouble = on_trouble,
    .current = on_current,
};

void informer_learn(struct ml_informer *self, struct ml_str json)
{
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_object_new(self->dict, self->kind->api_version, self->kind->kind, json, &object, &err) <
        0)
        return; /* the watch will bring it, and say what is wrong with it */
    put(self, object);
    ml_object_unref(object);
}

/* ---- life ---- */

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
        .dict = self->dict,
        .handler = &reflector_handler,
        .context = scope,
    };
    scope->reflector = ml_reflector_new(&reflector);
}

static void on_end(void *context)
{
    informer_free(context);
}

struct ml_informer *informer_new(struct ml_informers *informers, const struct ml_kind *kind,
                                 char *const *namespaces, size_t scope_count, struct ml_str name)
{
    struct ml_informer *self = ml_new(struct ml_informer);
    self->informers = informers;
    self->kind = kind;
    self->users = 1;
    self->store = ml_store_new();
    self->dict = ml_dict_new();
    self->scope_count = scope_count;
    self->unsynced = scope_count;
    self->scopes = ml_zalloc(scope_count * sizeof *self->scopes);
    ml_list_init(&self->listeners);
    ml_task_init(&self->end, on_end, self);
    ml_list_push(&informers->all, &self->node);
    for (size_t i = 0; i < scope_count; i++)
        scope_init(&self->scopes[i], self, namespaces[i], name);
    for (size_t i = 0; i < scope_count; i++)
        ml_reflector_start(self->scopes[i].reflector);
    return self;
}

void informer_free(struct ml_informer *self)
{
    ml_list_remove(&self->node);
    ml_task_cancel(&self->end);
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
    free(self);
}

/* ---- looking ---- */

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
