#include "state/informer.h"

#include <malloc.h>

#include "base/map.h"

/* One reflector and how far it got: the unit for which "the cache shows it" can be said. */
struct scope {
    struct ml_informer *informer;
    char *ns;   /* "": all */
    char *name; /* "": all */
    struct ml_reflector *reflector;
    bool synced;          /* the first list is in */
    uint64_t seen;        /* everything up to this version is in the store */
    struct ml_heap waits; /* struct ml_seen_wait by the version they wait for */
    uint64_t listing;     /* waits with a lower sequence were there when the list was asked for */
    struct ml_err trouble;
};

struct ml_informer {
    struct ml_informers *informers;
    const struct ml_kind *kind;
    bool shared; /* watches all that the process watches; may be found by kind */
    size_t users;
    struct ml_store *store;
    struct ml_dict *dict;
    struct scope *scopes;
    size_t scope_count;
    size_t unsynced;
    struct ml_list listeners;
    struct ml_list *telling; /* the listener to be told next; NULL: nobody is being told */
    struct ml_list node;     /* in informers->all */
    struct ml_task end;      /* frees it, off its own stack */
};

struct ml_informers {
    struct ml_informers_opts opts;
    char **namespaces; /* owned */
    size_t namespace_count;
    struct ml_list all;
    struct ml_list ending;
    struct ml_metrics_collector collector;
    struct ml_metric_family *objects, *bytes, *poisoned;
};

/* After a list of this many objects the memory of its making goes back to the system. */
#define TRIM_COUNT 1000

/* ---- telling the listeners ---- */

/* A listener may leave, or make another one leave, while it is told. */
static void tell(struct ml_informer *self, struct ml_object *old, struct ml_object *new)
{
    for (struct ml_list *node = self->listeners.next; node != &self->listeners;
         node = self->telling) {
        struct ml_listener *listener = ml_container_of(node, struct ml_listener, node);
        self->telling = node->next;
        /* One that is not caught up will find the change in the store. */
        if (listener->caught_up)
            listener->change(listener->context, self, old, new);
    }
    self->telling = NULL;
}

static void tell_synced(struct ml_informer *self)
{
    for (struct ml_list *node = self->listeners.next; node != &self->listeners;
         node = self->telling) {
        struct ml_listener *listener = ml_container_of(node, struct ml_listener, node);
        self->telling = node->next;
        if (listener->caught_up)
            listener->synced(listener->context, self);
    }
    self->telling = NULL;
}

static void replay(void *context)
{
    struct ml_listener *listener = context;
    struct ml_informer *self = listener->informer;
    size_t cursor = 0;
    struct ml_object *object;
    listener->caught_up = true;
    while (listener->informer && (object = ml_store_next(self->store, &cursor)))
        listener->change(listener->context, self, NULL, object);
    if (listener->informer && self->unsynced == 0)
        listener->synced(listener->context, self);
}

void ml_informer_listen(struct ml_informer *self, struct ml_listener *listener)
{
    listener->informer = self;
    listener->caught_up = false;
    ml_task_init(&listener->replay, replay, listener);
    ml_task_defer(&listener->replay, self->informers->opts.loop);
    ml_list_push(&self->listeners, &listener->node);
}

void ml_informer_unlisten(struct ml_listener *listener)
{
    struct ml_informer *self = listener->informer;
    if (!self)
        return;
    if (self->telling == &listener->node)
        self->telling = listener->node.next;
    ml_list_remove(&listener->node);
    ml_task_cancel(&listener->replay);
    listener->informer = NULL;
}

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
        tell(self, old, NULL);
        old = NULL;
    }
    tell(self, old, new);
}

static void on_upsert(void *context, struct ml_object *object)
{
    struct ml_informer *self = ((struct scope *)context)->informer;
    struct ml_object *held = ml_store_get(self->store, ml_object_key(object));
    if (held && is_old_news(held, object))
        return;
    struct ml_object *old = ml_store_put(self->store, object);
    tell_put(self, old, object);
    ml_object_unref(old);
}

static void on_remove(void *context, struct ml_object *last)
{
    struct ml_informer *self = ((struct scope *)context)->informer;
    struct ml_object *held = ml_store_get(self->store, ml_object_key(last));
    if (!held || !same_uid(held, last))
        return;
    struct ml_object *old = ml_store_remove(self->store, ml_object_key(last));
    tell(self, old, NULL);
    ml_object_unref(old);
}

static bool in_scope(const struct scope *scope, struct ml_object *object)
{
    return !*scope->ns || ml_str_is(ml_object_namespace(object), scope->ns);
}

struct change {
    struct ml_object *old, *new; /* a reference each */
};

/* Takes what the list no longer has out of the store; these changes come first. */
static size_t drop_missing(struct scope *scope, struct ml_object *const *objects, size_t count,
                           struct change *changes)
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

static size_t put_listed(struct scope *scope, struct ml_object *const *objects, size_t count,
                         struct change *changes)
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

static void release_waits(struct scope *scope, uint64_t sequence);

/* The whole list enters the store before anybody hears of it. */
static void on_replace(void *context, struct ml_object *const *objects, size_t count, uint64_t rv)
{
    struct scope *scope = context;
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
            tell(self, changes[i].old, NULL);
        ml_object_unref(changes[i].old);
        ml_object_unref(changes[i].new);
    }
    free(changes);
    release_waits(scope, scope->listing);
    scope->listing = 0;
    if (!scope->synced) {
        scope->synced = true;
        if (--self->unsynced == 0)
            tell_synced(self);
    }
    if (count > TRIM_COUNT)
        malloc_trim(0);
}

static void on_listing(void *context)
{
    struct scope *scope = context;
    scope->listing = scope->waits.sequence;
}

static void on_progress(void *context, uint64_t rv)
{
    struct scope *scope = context;
    if (rv == ML_RV_OPAQUE || rv > scope->seen)
        scope->seen = rv;
    release_waits(scope, 0);
}

static struct ml_object *on_current(void *context, struct ml_str key)
{
    return ml_store_get(((struct scope *)context)->informer->store, key);
}

static void on_poisoned(void *context, struct ml_str key, const struct ml_err *err)
{
    struct ml_informer *self = ((struct scope *)context)->informer;
    ml_error(self->informers->opts.log, "informer", "object cannot be read; left out",
             ML_S("resource", self->kind->plural), ML_STR_FIELD("object", key), ML_ERR(err));
    ml_metric_add(ml_metric_with(self->informers->poisoned, ml_metric_labels(self->kind->plural)),
                  1);
}

static void on_trouble(void *context, const struct ml_err *err, int64_t retry_ms)
{
    struct scope *scope = context;
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

/* ---- waiting until a write shows ---- */

static void on_seen(void *context)
{
    struct ml_seen_wait *wait = context;
    wait->ready(wait->context);
}

static void release(struct scope *scope, struct ml_heap_node *node)
{
    ml_heap_remove(&scope->waits, node);
    ml_task_defer(&ml_container_of(node, struct ml_seen_wait, node)->task,
                  scope->informer->informers->opts.loop);
}

/* Lets go those whose version is reached, and those that are older than `sequence`. */
static void release_waits(struct scope *scope, uint64_t sequence)
{
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&scope->waits)) && top->key <= scope->seen)
        release(scope, top);
    if (sequence == 0 || scope->waits.len == 0)
        return;
    size_t count = scope->waits.len;
    struct ml_heap_node **nodes = ml_alloc(count * sizeof(struct ml_heap_node *));
    memcpy(nodes, scope->waits.nodes, count * sizeof(struct ml_heap_node *)); /* removals move */
    for (size_t i = 0; i < count; i++)
        if (nodes[i]->sequence < sequence)
            release(scope, nodes[i]);
    free(nodes);
}

static struct scope *scope_of(const struct ml_informer *self, struct ml_str ns)
{
    for (size_t i = 0; i < self->scope_count; i++)
        if (!*self->scopes[i].ns || ml_str_is(ns, self->scopes[i].ns))
            return &self->scopes[i];
    return NULL;
}

bool ml_informer_seen(const struct ml_informer *self, struct ml_str ns, uint64_t rv)
{
    const struct scope *scope = scope_of(self, ns);
    return !scope || rv == ML_RV_OPAQUE || scope->seen >= rv;
}

void ml_seen_wait_start(struct ml_seen_wait *wait, struct ml_informer *self, struct ml_str ns,
                        uint64_t rv, void (*ready)(void *context), void *context)
{
    *wait = (struct ml_seen_wait){.ready = ready, .context = context};
    ml_task_init(&wait->task, on_seen, wait);
    if (ml_informer_seen(self, ns, rv)) {
        ml_task_defer(&wait->task, self->informers->opts.loop);
        return;
    }
    struct scope *scope = scope_of(self, ns);
    wait->source = scope;
    ml_heap_insert(&scope->waits, &wait->node, rv);
}

void ml_seen_wait_cancel(struct ml_seen_wait *wait)
{
    if (!wait->ready)
        return;
    if (ml_heap_has(&wait->node))
        ml_heap_remove(&((struct scope *)wait->source)->waits, &wait->node);
    ml_task_cancel(&wait->task);
}

bool ml_seen_wait_over(const struct ml_seen_wait *wait)
{
    return !ml_heap_has(&wait->node);
}

/* ---- life ---- */

static void scope_init(struct scope *scope, struct ml_informer *self, struct ml_str ns,
                       struct ml_str name)
{
    const struct ml_informers_opts *opts = &self->informers->opts;
    scope->informer = self;
    scope->ns = ml_str_dup(ns);
    scope->name = ml_str_dup(name);
    scope->trouble = ML_ERR_INIT;
    const struct ml_reflector_opts reflector = {
        .client = opts->client,
        .loop = opts->loop,
        .random = opts->random,
        .kind = self->kind,
        .ns = ns,
        .name = name,
        .dict = self->dict,
        .handler = &reflector_handler,
        .context = scope,
    };
    scope->reflector = ml_reflector_new(&reflector);
}

static void informer_free(struct ml_informer *self)
{
    ml_list_remove(&self->node);
    ml_task_cancel(&self->end);
    for (size_t i = 0; i < self->scope_count; i++) {
        struct scope *scope = &self->scopes[i];
        ml_reflector_free(scope->reflector);
        for (struct ml_heap_node *top; (top = ml_heap_top(&scope->waits));)
            release(scope, top);
        ml_heap_fini(&scope->waits);
        free(scope->ns);
        free(scope->name);
    }
    free(self->scopes);
    ml_store_free(self->store);
    ml_dict_unref(self->dict);
    free(self);
}

static void on_end(void *context)
{
    informer_free(context);
}

static struct ml_informer *informer_new(struct ml_informers *informers, const struct ml_kind *kind,
                                        size_t scope_count)
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
    return self;
}

static void informer_start(struct ml_informer *self)
{
    for (size_t i = 0; i < self->scope_count; i++)
        ml_reflector_start(self->scopes[i].reflector);
}

struct ml_informer *ml_informers_find(struct ml_informers *informers, const struct ml_kind *kind)
{
    ml_list_each (node, &informers->all) {
        struct ml_informer *self = ml_container_of(node, struct ml_informer, node);
        if (self->shared && self->kind == kind)
            return self;
    }
    return NULL;
}

struct ml_informer *ml_informers_get(struct ml_informers *informers, const struct ml_kind *kind)
{
    struct ml_informer *self = ml_informers_find(informers, kind);
    if (self) {
        self->users++;
        return self;
    }
    bool split = kind->namespaced && informers->namespace_count > 0;
    self = informer_new(informers, kind, split ? informers->namespace_count : 1);
    self->shared = true;
    for (size_t i = 0; i < self->scope_count; i++)
        scope_init(&self->scopes[i], self, split ? ml_str_of(informers->namespaces[i]) : ML_STR(""),
                   ML_STR(""));
    informer_start(self);
    return self;
}

struct ml_informer *ml_informers_get_scoped(struct ml_informers *informers,
                                            const struct ml_kind *kind, struct ml_str ns,
                                            struct ml_str name)
{
    struct ml_informer *self = informer_new(informers, kind, 1);
    scope_init(&self->scopes[0], self, ns, name);
    informer_start(self);
    return self;
}

static void clear_gauges(struct ml_informer *self)
{
    const char *const *labels = ml_metric_labels(self->kind->plural);
    ml_metric_set(ml_metric_with(self->informers->objects, labels), 0);
    ml_metric_set(ml_metric_with(self->informers->bytes, labels), 0);
}

void ml_informer_put(struct ml_informer *self)
{
    if (!self || --self->users > 0)
        return;
    ml_assert(ml_list_empty(&self->listeners));
    clear_gauges(self);
    self->shared = false;
    ml_list_remove(&self->node);
    ml_list_push(&self->informers->ending, &self->node);
    ml_task_defer(&self->end, self->informers->opts.loop);
}

/* Sums: two informers of one resource, or two resources of one name, share a series. */
static void collect(void *context)
{
    struct ml_informers *informers = context;
    ml_list_each (each, &informers->all)
        clear_gauges(ml_container_of(each, struct ml_informer, node));
    ml_list_each (node, &informers->all) {
        struct ml_informer *self = ml_container_of(node, struct ml_informer, node);
        const char *const *labels = ml_metric_labels(self->kind->plural);
        ml_metric_add(ml_metric_with(informers->objects, labels),
                      (double)ml_store_len(self->store));
        ml_metric_add(ml_metric_with(informers->bytes, labels),
                      (double)ml_store_bytes(self->store));
    }
}

static void register_metrics(struct ml_informers *informers)
{
    struct ml_metrics *metrics = informers->opts.metrics;
    const char *const *labels = ml_metric_labels("resource");
    informers->objects = ml_metrics_gauge(metrics, "moonloop_cache_objects", "Objects held.",
                                          labels);
    informers->bytes = ml_metrics_gauge(metrics, "moonloop_cache_bytes",
                                        "Memory of the objects held, compressed.", labels);
    informers->poisoned = ml_metrics_counter(metrics, "moonloop_objects_unreadable_total",
                                             "Objects left out as unreadable.", labels);
    informers->collector = (struct ml_metrics_collector){.collect = collect, .context = informers};
    ml_metrics_on_collect(metrics, &informers->collector);
}

struct ml_informers *ml_informers_new(const struct ml_informers_opts *opts)
{
    struct ml_informers *informers = ml_new(struct ml_informers);
    informers->opts = *opts;
    while (opts->namespaces && opts->namespaces[informers->namespace_count])
        informers->namespace_count++;
    informers->namespaces = ml_zalloc(informers->namespace_count * sizeof(char *));
    for (size_t i = 0; i < informers->namespace_count; i++)
        informers->namespaces[i] = ml_strdup(opts->namespaces[i]);
    ml_list_init(&informers->all);
    ml_list_init(&informers->ending);
    register_metrics(informers);
    return informers;
}

void ml_informers_free(struct ml_informers *informers)
{
    if (!informers)
        return;
    ml_metrics_collector_remove(&informers->collector);
    ml_list_each (node, &informers->all)
        informer_free(ml_container_of(node, struct ml_informer, node));
    ml_list_each (gone, &informers->ending)
        informer_free(ml_container_of(gone, struct ml_informer, node));
    for (size_t i = 0; i < informers->namespace_count; i++)
        free(informers->namespaces[i]);
    free(informers->namespaces);
    free(informers);
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

size_t ml_informer_users(const struct ml_informer *self)
{
    return self->users;
}

const struct ml_err *ml_informer_trouble(const struct ml_informer *self)
{
    for (size_t i = 0; i < self->scope_count; i++)
        if (self->scopes[i].trouble.kind)
            return &self->scopes[i].trouble;
    return NULL;
}
