/* The informers of a process, by kind and selection. Each has reflectors, which fill its store;
 * then the listeners are notified of the change, then the callers that wait until the cache shows a
 * write. */
#include "state/informer.h"

#include "base/repeat.h"
#include "kube/selector.h"
#include "state/reflector_fsm.h"

#include <malloc.h>

/* After a list of more objects than this, free memory is returned to the system. */
#define TRIM_COUNT 1000

/* ---- tombstones: the objects that were deleted last ---- */

struct tombstone {
    size_t uid_len, rv_len;
    char bytes[]; /* uid, rv */
};

static struct ml_str tombstone_uid(const void *entry)
{
    const struct tombstone *tombstone = entry;
    return (struct ml_str){tombstone->bytes, tombstone->uid_len};
}

static void tombstones_fini(struct ml_set *tombstones)
{
    ml_set_each (tombstones, cursor, tombstone)
        free(tombstone);
    ml_set_fini(tombstones);
}

/* The object with this uid was deleted at version `rv`; both are copied. */
static void tombstones_put(struct ml_set *tombstones, struct ml_str uid, struct ml_str rv)
{
    struct tombstone *tombstone = ml_alloc(sizeof *tombstone + uid.len + rv.len);
    tombstone->uid_len = uid.len;
    tombstone->rv_len = rv.len;
    memcpy(tombstone->bytes, uid.ptr, uid.len);
    memcpy(tombstone->bytes + uid.len, rv.ptr, rv.len);
    tombstones->key = tombstone_uid;
    free(ml_set_remove(tombstones, uid)); /* an earlier deletion: now it is the newest */
    if (tombstones->len == ML_TOMBSTONES_MAX) {
        size_t first = 0;
        free(ml_set_remove(tombstones, tombstone_uid(ml_set_next(tombstones, &first))));
    }
    ml_set_put(tombstones, tombstone);
}

/* Is `rv` a version of the object from before its deletion? */
static bool tombstones_has(const struct ml_set *tombstones, struct ml_str uid, struct ml_str rv)
{
    const struct tombstone *found = ml_set_get(tombstones, uid);
    return found && ml_rv_older(rv, (struct ml_str){found->bytes + found->uid_len, found->rv_len});
}

/* ---- an informer ---- */

/* One reflector and the version it has reached. */
struct informer_scope {
    struct ml_informer *informer;
    char *ns;   /* "": all */
    char *name; /* "": all */
    struct ml_reflector *reflector;
    bool synced;          /* the first list is complete */
    uint64_t seen;        /* everything up to this version is in the store */
    struct ml_heap waits; /* struct ml_seen_wait by the version they wait for */
    uint64_t listing;     /* waits with a lower sequence began before the list was requested */
    struct ml_err trouble;
    struct ml_repeat repeat; /* of the trouble, for the log */
};

struct ml_informer {
    struct ml_informers *informers;
    const struct ml_kind *kind;
    struct ml_selection selection; /* strings owned */
    bool shared;                   /* watches all that the process watches; may be found by kind */
    size_t users;
    struct ml_store *store;
    struct ml_set tombstones; /* struct tombstone by uid */
    struct ml_dict *dict;
    struct ml_discovery_wait *looking; /* checks whether the kind still exists; NULL: no check */
    struct informer_scope *scopes;
    size_t scope_count;
    size_t unsynced;
    uint64_t changes; /* that listeners were notified of */
    struct ml_list listeners;
    struct ml_list *notifying; /* the listener to be notified next; NULL: none is being notified */
    struct ml_listener *replaying; /* is notified of the store's objects; NULL: none, or it left */
    struct ml_list node;           /* in informers->all, or ->ending */
    struct ml_task end;            /* frees it, not on its own stack */
};

struct ml_informers {
    struct ml_informers_opts opts;
    size_t namespace_count; /* of opts.namespaces */
    struct ml_list all;
    struct ml_list ending;  /* given back, freed by the next round of the loop */
    struct ml_list servers; /* struct ml_reflector_server; kept when the informer ends */
    struct ml_metrics_collector collector;
    struct ml_metric_family *objects, *bytes, *poisoned, *lists, *watch_ends;
};

/* ---- those who wait for a version ---- */

static void scope_release_wait(struct informer_scope *scope, struct ml_heap_node *node)
{
    ml_heap_remove(&scope->waits, node);
    ml_task_defer(&ml_container_of(node, struct ml_seen_wait, node)->task,
                  scope->informer->informers->opts.loop);
}

static void scope_release_all(struct informer_scope *scope)
{
    for (struct ml_heap_node *top; (top = ml_heap_top(&scope->waits));)
        scope_release_wait(scope, top);
}

static void scope_release_seen(struct informer_scope *scope, uint64_t sequence)
{
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&scope->waits)) && top->key <= scope->seen)
        scope_release_wait(scope, top);
    if (sequence == 0 || scope->waits.len == 0)
        return;
    /* Works on a copy: a removal reorders the heap. */
    size_t count = scope->waits.len, bytes = count * sizeof(struct ml_heap_node *);
    ML_AUTO_FREE struct ml_heap_node **nodes = ml_alloc(bytes);
    memcpy(nodes, scope->waits.nodes, bytes);
    for (size_t i = 0; i < count; i++)
        if (nodes[i]->sequence < sequence)
            scope_release_wait(scope, nodes[i]);
}

static struct informer_scope *informer_scope_of(const struct ml_informer *self, struct ml_str ns)
{
    for (size_t i = 0; i < self->scope_count; i++)
        if (!*self->scopes[i].ns || ml_str_is(ns, self->scopes[i].ns))
            return &self->scopes[i];
    return NULL;
}

bool ml_informer_seen(const struct ml_informer *self, struct ml_str ns, uint64_t rv)
{
    const struct informer_scope *scope = informer_scope_of(self, ns);
    return !scope || rv == ML_RV_OPAQUE || scope->seen >= rv;
}

void ml_seen_wait_start(struct ml_seen_wait *wait, struct ml_informer *self, struct ml_str ns,
                        uint64_t rv, void (*ready)(void *context), void *context)
{
    *wait = (struct ml_seen_wait){.scope = informer_scope_of(self, ns)};
    ml_task_init(&wait->task, ready, context);
    if (ml_informer_seen(self, ns, rv))
        ml_task_defer(&wait->task, self->informers->opts.loop);
    else
        ml_heap_insert(&wait->scope->waits, &wait->node, rv);
}

void ml_seen_wait_cancel(struct ml_seen_wait *wait)
{
    if (ml_heap_has(&wait->node))
        ml_heap_remove(&wait->scope->waits, &wait->node);
    if (wait->task.run)
        ml_task_cancel(&wait->task);
}

bool ml_seen_wait_over(const struct ml_seen_wait *wait)
{
    return !ml_heap_has(&wait->node);
}

/* ---- listeners ---- */

/* The next listener to notify, NULL at the end. A listener may leave, or make another one leave,
 * while it is notified. One that is not caught up will find the change in the store. */
static struct ml_listener *informer_next_listener(struct ml_informer *self)
{
    while (self->notifying != &self->listeners) {
        struct ml_listener *listener = ml_container_of(self->notifying, struct ml_listener, node);
        self->notifying = self->notifying->next;
        if (listener->caught_up)
            return listener;
    }
    self->notifying = NULL;
    return NULL;
}

static void informer_begin_notifying(struct ml_informer *self)
{
    ml_assert(!self->notifying); /* what changes the store comes from the loop */
    self->notifying = self->listeners.next;
}

static void informer_notify(struct ml_informer *self, struct ml_object *old, struct ml_object *new)
{
    informer_begin_notifying(self);
    self->changes++;
    for (struct ml_listener *listener; (listener = informer_next_listener(self));)
        listener->change(listener->context, self, old, new);
}

static void informer_notify_synced(struct ml_informer *self)
{
    informer_begin_notifying(self);
    for (struct ml_listener *listener; (listener = informer_next_listener(self));)
        listener->synced(listener->context, self);
}

static void informer_notify_mended(struct ml_informer *self)
{
    informer_begin_notifying(self);
    for (struct ml_listener *listener; (listener = informer_next_listener(self));)
        if (listener->mended)
            listener->mended(listener->context, self);
}

/* A listener that leaves may be freed at once. Only the informer, which the loop frees later, can
 * say whether it is still there. */
static void listener_replay(void *context)
{
    struct ml_listener *listener = context;
    struct ml_informer *self = listener->informer;
    size_t cursor = 0;
    struct ml_object *object;
    listener->caught_up = true;
    self->replaying = listener;
    while (self->replaying && (object = ml_store_next(self->store, &cursor)))
        listener->change(listener->context, self, NULL, object);
    if (self->replaying && self->unsynced == 0)
        listener->synced(listener->context, self);
    self->replaying = NULL;
}

void ml_informer_listen(struct ml_informer *self, struct ml_listener *listener)
{
    listener->informer = self;
    listener->caught_up = false;
    ml_task_init(&listener->replay, listener_replay, listener);
    ml_task_defer(&listener->replay, self->informers->opts.loop);
    ml_list_push(&self->listeners, &listener->node);
}

void ml_informer_unlisten(struct ml_listener *listener)
{
    struct ml_informer *self = listener->informer;
    if (!self)
        return;
    if (self->notifying == &listener->node)
        self->notifying = listener->node.next;
    if (self->replaying == listener)
        self->replaying = NULL;
    ml_list_remove(&listener->node);
    ml_task_cancel(&listener->replay);
    listener->informer = NULL;
}

/* ---- the store ---- */

static bool same_uid(struct ml_object *a, struct ml_object *b)
{
    return ml_str_eq(ml_object_uid(a), ml_object_uid(b));
}

/* Not newer than the cached object: a repeated event, one from before the last list, or one about
 * an earlier object of the same name. */
static bool is_old_news(struct ml_object *held, struct ml_object *object)
{
    struct ml_str had = ml_object_rv(held), has = ml_object_rv(object);
    return ml_rv_older(has, had) || (same_uid(held, object) && ml_str_eq(had, has));
}

/* Another uid under the same name is another object: the deletion of the old one was missed. */
static void informer_notify_put(struct ml_informer *self, struct ml_object *old,
                                struct ml_object *new)
{
    if (old && !same_uid(old, new)) {
        informer_notify(self, old, NULL);
        old = NULL;
    }
    informer_notify(self, old, new);
}

static void informer_put_object(struct ml_informer *self, struct ml_object *object)
{
    struct ml_object *held = ml_store_get(self->store, ml_object_key(object));
    if (held ? is_old_news(held, object)
             : tombstones_has(&self->tombstones, ml_object_uid(object), ml_object_rv(object)))
        return;
    struct ml_object *old = ml_store_put(self->store, object);
    informer_notify_put(self, old, object);
    ml_object_unref(old);
}

/* A copy shows a kind with namespaces in those of its set alone, as the original does. */
static bool copy_shows_namespace(const struct ml_informer *self, struct ml_str ns)
{
    const struct ml_informers *informers = self->informers;
    for (size_t i = 0; i < informers->namespace_count; i++)
        if (ml_str_is(ns, informers->opts.namespaces[i]))
            return true;
    return !self->kind->namespaced || informers->namespace_count == 0;
}

bool ml_informer_has_all(const struct ml_informer *self, struct ml_str ns)
{
    const struct ml_selection *selection = &self->selection;
    return selection->labels.len + selection->fields.len == 0 && !selection->metadata_only &&
           copy_shows_namespace(self, ns);
}

/* Does an object belong here that no watch has brought? Only the watch says what is selected, so it
 * adds nothing to a selection. Beside a copy there is no watch; the server alone knows fields. */
static bool informer_takes(const struct ml_informer *self, struct ml_str json,
                           const struct ml_object *object)
{
    const struct ml_selection *selection = &self->selection;
    bool is_held = ml_store_get(self->store, ml_object_key(object)) != NULL;
    struct ml_str labels = {NULL, 0}, missed;
    if (!self->informers->opts.copied)
        return is_held || selection->labels.len + selection->fields.len == 0;
    if (!copy_shows_namespace(self, ml_object_namespace(object)))
        return false;
    (void)ml_json_find(json, &labels, "metadata", "labels", NULL);
    return selection->fields.len > 0
               ? is_held
               : ml_label_selector_matches(selection->labels, labels, &missed);
}

void ml_informer_learn(struct ml_informer *self, struct ml_str json)
{
    struct ml_object *object = NULL;
    struct ml_err err = ML_ERR_INIT;
    if (ml_selection_object(&self->selection, self->dict, self->kind, json, &object, &err) < 0)
        return; /* the watch will bring the object, and report what is wrong with it */
    if (informer_takes(self, json, object))
        informer_put_object(self, object);
    else if (self->informers->opts.copied)
        ml_informer_forget(self, ml_object_key(object));
    ml_object_unref(object);
}

/* The object was deleted at version `rv`. The reference goes to the caller. */
static struct ml_object *informer_remove_object(struct ml_informer *self, struct ml_object *held,
                                                struct ml_str rv)
{
    tombstones_put(&self->tombstones, ml_object_uid(held), rv);
    return ml_store_remove(self->store, ml_object_key(held));
}

void ml_informer_forget(struct ml_informer *self, struct ml_str key)
{
    struct ml_object *held = ml_store_get(self->store, key);
    if (!held)
        return;
    struct ml_object *old = informer_remove_object(self, held, ml_object_rv(held));
    informer_notify(self, old, NULL);
    ml_object_unref(old);
}

static bool scope_covers(const struct informer_scope *scope, struct ml_object *object)
{
    return !*scope->ns || ml_str_is(ml_object_namespace(object), scope->ns);
}

struct change {
    struct ml_object *old, *new; /* a reference each */
};

/* Removes the objects that the list no longer has from the store; these changes come first. */
static size_t scope_remove_unlisted(struct informer_scope *scope, const struct ml_set *listed,
                                    uint64_t rv, struct change *changes)
{
    struct ml_store *store = scope->informer->store;
    ML_AUTO_FREE char *text = ml_asprintf("%llu", (unsigned long long)rv);
    size_t cursor = 0, found = 0;
    for (struct ml_object *held; (held = ml_store_next(store, &cursor));)
        if (scope_covers(scope, held) && !ml_set_get(listed, ml_object_key(held)))
            changes[found++].old = informer_remove_object(scope->informer, held, ml_str_of(text));
    return found;
}

static size_t scope_put_listed(struct informer_scope *scope, const struct ml_set *listed,
                               struct change *changes)
{
    struct ml_store *store = scope->informer->store;
    size_t found = 0;
    ml_set_each (listed, cursor, object)
        if (ml_store_get(store, ml_object_key(object)) != object)
            changes[found++] = (struct change){
                .old = ml_store_put(store, object),
                .new = ml_object_ref(object),
            };
    return found;
}

/* The whole list enters the store before any listener is notified. */
static void informer_on_replace(void *context, const struct ml_set *listed, uint64_t rv)
{
    struct informer_scope *scope = context;
    struct ml_informer *self = scope->informer;
    size_t room = ml_store_len(self->store) + listed->len;
    struct change *changes = ml_zalloc(room * sizeof *changes);
    size_t found = scope_remove_unlisted(scope, listed, rv, changes);
    found += scope_put_listed(scope, listed, changes + found);
    scope->seen = rv;
    for (size_t i = 0; i < found; i++) {
        if (changes[i].new)
            informer_notify_put(self, changes[i].old, changes[i].new);
        else
            informer_notify(self, changes[i].old, NULL);
        ml_object_unref(changes[i].old);
        ml_object_unref(changes[i].new);
    }
    free(changes);
    scope_release_seen(scope, scope->listing);
    scope->listing = 0;
    if (!scope->synced) {
        scope->synced = true;
        if (--self->unsynced == 0)
            informer_notify_synced(self);
    }
    if (listed->len > TRIM_COUNT)
        malloc_trim(0);
}

/* ---- a kind that went away ----
 * Its CRD was deleted, or no longer serves that version. A 404 alone does not prove it, since
 * proxies and starting servers answer 404 too; discovery does. */

/* Reports all objects of the scope as deleted, and releases who waits for a version of them. */
static void scope_clear(struct informer_scope *scope)
{
    static const struct ml_set nothing = {0};
    if (!scope->synced)
        return;
    informer_on_replace(scope, &nothing, scope->seen);
    scope_release_all(scope);
}

static void informer_on_kind_looked_up(void *context, const struct ml_kind *kind,
                                       const struct ml_err *err)
{
    struct ml_informer *self = context;
    (void)kind;
    self->looking = NULL;
    if (!err || err->kind != ML_ENOT_FOUND)
        return;
    size_t count = ml_store_len(self->store);
    if (count > 0)
        ml_warn(self->informers->opts.log, "informer",
                "the kind no longer exists; its objects leave the cache",
                ML_S("resource", self->kind->plural), ML_S("apiVersion", self->kind->api_version),
                ML_I("objects", (int64_t)count));
    for (size_t i = 0; i < self->scope_count; i++)
        scope_clear(&self->scopes[i]);
}

static void informer_look_up_kind(struct ml_informer *self)
{
    struct ml_discovery *discovery = self->informers->opts.discovery;
    const struct ml_kind *kind = self->kind;
    const struct ml_gvk gvk = {ml_str_of(kind->group), ml_str_of(kind->version),
                               ml_str_of(kind->kind)};
    if (!discovery || self->looking)
        return;
    if (ml_discovery_known(discovery, &gvk) == kind)
        ml_discovery_forget(discovery, kind);
    self->looking = ml_discovery_resolve(discovery, &gvk, informer_on_kind_looked_up, self);
}

/* ---- what a reflector brings ---- */

static void informer_on_upsert(void *context, struct ml_object *object)
{
    informer_put_object(((struct informer_scope *)context)->informer, object);
}

static void informer_on_remove(void *context, struct ml_object *last)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    struct ml_object *held = ml_store_get(self->store, ml_object_key(last));
    if (!held || !same_uid(held, last) || ml_rv_older(ml_object_rv(last), ml_object_rv(held)))
        return;
    struct ml_object *old = informer_remove_object(self, held, ml_object_rv(last));
    informer_notify(self, old, NULL);
    ml_object_unref(old);
}

static void informer_on_listing(void *context)
{
    struct informer_scope *scope = context;
    scope->listing = scope->waits.sequence;
}

static void informer_on_progress(void *context, uint64_t rv)
{
    struct informer_scope *scope = context;
    if (rv == ML_RV_OPAQUE || rv > scope->seen)
        scope->seen = rv;
    scope_release_seen(scope, 0);
}

static struct ml_object *informer_on_current(void *context, struct ml_str key)
{
    return ml_store_get(((struct informer_scope *)context)->informer->store, key);
}

static void informer_on_poisoned(void *context, struct ml_str key, const struct ml_err *err)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    ml_error(self->informers->opts.log, "informer", "object cannot be read; skipping it",
             ML_S("resource", self->kind->plural),
             ML_STR_FIELD(ml_key_namespace(key).len ? "namespace" : "", ml_key_namespace(key)),
             ML_STR_FIELD("name", ml_key_name(key)), ML_ERR(err));
    ml_metric_add(ml_metric_with(self->informers->poisoned, ml_metric_labels(self->kind->plural)),
                  1);
}

const struct ml_err *ml_informer_trouble(const struct ml_informer *self)
{
    for (size_t i = 0; i < self->scope_count; i++)
        if (self->scopes[i].trouble.kind)
            return &self->scopes[i].trouble;
    return NULL;
}

static void informer_on_trouble(void *context, const struct ml_err *err, int64_t retry_ms)
{
    struct informer_scope *scope = context;
    struct ml_informer *self = scope->informer;
    struct ml_log *log = self->informers->opts.log;
    const char *ns = *scope->ns ? "namespace" : "";
    scope->trouble = err ? *err : ML_ERR_INIT;
    if (scope->trouble.kind == ML_ENOT_FOUND)
        informer_look_up_kind(self);
    if (!err) {
        ml_repeat_over(&scope->repeat);
        ml_info(log, "informer", "list and watch work again", ML_S("resource", self->kind->plural),
                ML_S(ns, scope->ns));
    } else if (ml_repeat_failed(&scope->repeat, ml_str_of(err->message),
                                ml_clock_monotonic(ml_loop_clock(self->informers->opts.loop)))) {
        ml_warn(log, "informer", "cannot list or watch; trying again",
                ML_S("resource", self->kind->plural), ML_S(ns, scope->ns), ML_ERR(err),
                ML_S("errorKind", ml_err_name(err->kind)),
                ML_REPEAT_FIELDS(&scope->repeat, retry_ms * ML_NS_PER_MS));
    }
    if (!ml_informer_trouble(self))
        informer_notify_mended(self);
}

static void informer_count_list(struct ml_informer *self, const char *reason)
{
    ml_metric_add(
        ml_metric_with(self->informers->lists, ml_metric_labels(self->kind->plural, reason)), 1);
}

static void informer_on_turn(void *context, bool watched, const char *how, bool lists)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    if (watched)
        ml_metric_add(
            ml_metric_with(self->informers->watch_ends, ml_metric_labels(self->kind->plural, how)),
            1);
    if (lists)
        informer_count_list(self, how);
}

static void informer_on_restored(void *context, struct ml_str known, struct ml_str shown)
{
    struct ml_informer *self = ((struct informer_scope *)context)->informer;
    tombstones_fini(&self->tombstones); /* versions from before the restore cannot be compared */
    ml_warn(self->informers->opts.log, "informer",
            "the server was restored to an earlier state; accepting its current state",
            ML_S("resource", self->kind->plural), ML_STR_FIELD("known_version", known),
            ML_STR_FIELD("version", shown));
}

static const struct ml_reflector_handler informer_handler = {
    .listing = informer_on_listing,
    .replace = informer_on_replace,
    .upsert = informer_on_upsert,
    .remove = informer_on_remove,
    .progress = informer_on_progress,
    .poisoned = informer_on_poisoned,
    .trouble = informer_on_trouble,
    .current = informer_on_current,
    .turn = informer_on_turn,
    .restored = informer_on_restored,
};

/* ---- life ---- */

/* Features of the server; kept when the informer ends. */
static struct ml_reflector_server *informers_server(struct ml_informers *informers,
                                                    const struct ml_kind *kind)
{
    struct ml_reflector_server *server;
    ml_list_each (node, &informers->servers) {
        server = ml_container_of(node, struct ml_reflector_server, node);
        if (server->kind == kind)
            return server;
    }
    server = ml_new(struct ml_reflector_server);
    server->kind = kind;
    ml_list_push(&informers->servers, &server->node);
    return server;
}

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
        .ns = ml_str_of(scope->ns),
        .name = ml_str_of(scope->name),
        .selection = &self->selection,
        .streams = opts->streams,
        .server = informers_server(self->informers, self->kind),
        .dict = self->dict,
        .handler = &informer_handler,
        .context = scope,
    };
    scope->reflector = ml_reflector_new(&reflector);
    informer_count_list(self, "start");
}

/* Counters that any kind can have exist at 0 from the start: increase() sees the first event. */
static void informer_register_counters(const struct ml_informer *self)
{
    const struct ml_informers *informers = self->informers;
    const char *plural = self->kind->plural;
    (void)ml_metric_with(informers->poisoned, ml_metric_labels(plural));
    for (enum reflector_end end = LIST_COMPLETE; end <= WATCH_FAILED; end++) {
        const char *how = reflector_end_name(end);
        bool lists = end != LIST_COMPLETE && end != WATCH_ENDED && end != WATCH_HASTY &&
                     end != WATCH_THROTTLED;
        if (end >= WATCH_ENDED)
            (void)ml_metric_with(informers->watch_ends, ml_metric_labels(plural, how));
        if (lists)
            (void)ml_metric_with(informers->lists, ml_metric_labels(plural, how));
    }
}

static void informer_free(void *informer)
{
    struct ml_informer *self = informer;
    ml_list_remove(&self->node);
    ml_task_cancel(&self->end);
    if (self->looking)
        ml_discovery_cancel(self->looking);
    for (size_t i = 0; i < self->scope_count; i++) {
        struct informer_scope *scope = &self->scopes[i];
        ml_reflector_free(scope->reflector);
        scope_release_all(scope);
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

/* The objects are shared: they never change. */
static void informer_copy(struct ml_informer *self)
{
    struct ml_informers *from = self->informers->opts.copied;
    struct ml_informer *original = ml_informers_get(from, self->kind, &self->selection);
    size_t cursor = 0;
    ml_assert(ml_informer_synced(original));
    for (struct ml_object *object; (object = ml_store_next(original->store, &cursor));)
        ml_object_unref(ml_store_put(self->store, object));
    ml_informer_put(original);
}

/* One user; `namespaces` has a name for each scope ("": all); `name` empty: all objects. Joins the
 * informers and starts. `selection` is copied. */
static struct ml_informer *informer_new(struct ml_informers *informers, const struct ml_kind *kind,
                                        const struct ml_selection *selection,
                                        const char *const *namespaces, size_t scope_count,
                                        struct ml_str name)
{
    struct ml_informer *self = ml_new(struct ml_informer);
    self->informers = informers;
    self->kind = kind;
    self->selection = (struct ml_selection){
        .labels = ml_str_of(ml_str_dup(selection->labels)),
        .fields = ml_str_of(ml_str_dup(selection->fields)),
        .metadata_only = selection->metadata_only,
    };
    self->users = 1;
    self->store = ml_store_new();
    self->dict = ml_dict_new();
    self->scope_count = informers->opts.copied ? 0 : scope_count; /* it has no reflectors */
    self->unsynced = self->scope_count;
    self->scopes = ml_zalloc(scope_count * sizeof *self->scopes);
    ml_list_init(&self->listeners);
    ml_task_init(&self->end, informer_free, self);
    ml_list_push(&informers->all, &self->node);
    informer_register_counters(self);
    for (size_t i = 0; i < self->scope_count; i++)
        scope_init(&self->scopes[i], self, namespaces[i], name);
    if (informers->opts.copied)
        informer_copy(self);
    return self;
}

const struct ml_kind *ml_informer_kind(const struct ml_informer *self)
{
    return self->kind;
}

uint64_t ml_informer_changes(const struct ml_informer *self)
{
    return self->changes;
}

const struct ml_store *ml_informer_store(const struct ml_informer *self)
{
    return self->store;
}

bool ml_informer_synced(const struct ml_informer *self)
{
    return self->unsynced == 0;
}

bool ml_informer_is_degraded(const struct ml_informer *self)
{
    const struct ml_err *trouble = ml_informer_trouble(self);
    return trouble && (trouble->kind == ML_EFORBIDDEN || trouble->kind == ML_ENOT_FOUND ||
                       strcmp(trouble->reason, REFLECTOR_BEHIND) == 0);
}

/* ---- the informers of the process ---- */

static const struct ml_selection whole_kind = {ML_STR(""), ML_STR(""), false};

static struct ml_informer *informers_find(struct ml_informers *informers,
                                          const struct ml_kind *kind,
                                          const struct ml_selection *selection)
{
    ml_list_each_entry (struct ml_informer, self, &informers->all) {
        if (self->shared && self->kind == kind && ml_selection_eq(&self->selection, selection))
            return self;
    }
    return NULL;
}

const char *const *ml_informers_namespaces(const struct ml_informers *informers)
{
    return informers->opts.namespaces;
}

struct ml_informer *ml_informers_next(struct ml_informers *informers, struct ml_informer *informer)
{
    struct ml_list *node = informer ? informer->node.next : informers->all.next;
    return node == &informers->all ? NULL : ml_container_of(node, struct ml_informer, node);
}

struct ml_informer *ml_informers_get(struct ml_informers *informers, const struct ml_kind *kind,
                                     const struct ml_selection *selection)
{
    static const char *const everywhere[] = {""};
    if (!selection)
        selection = &whole_kind;
    struct ml_informer *self = informers_find(informers, kind, selection);
    if (self) {
        self->users++;
        return self;
    }
    if (kind->namespaced && informers->namespace_count > 0)
        self = informer_new(informers, kind, selection, informers->opts.namespaces,
                            informers->namespace_count, ML_STR(""));
    else
        self = informer_new(informers, kind, selection, everywhere, 1, ML_STR(""));
    self->shared = true;
    return self;
}

struct ml_informer *ml_informers_get_scoped(struct ml_informers *informers,
                                            const struct ml_kind *kind, struct ml_str ns,
                                            struct ml_str name)
{
    ML_AUTO_FREE char *only = ml_str_dup(ns);
    return informer_new(informers, kind, &whole_kind, (const char *const[]){only}, 1, name);
}

struct ml_object_watch {
    struct ml_informer *informer;
    struct ml_listener listener;
    void (*changed)(void *context);
    void *context;
};

static void on_object_changed(void *context, struct ml_informer *informer ML_UNUSED,
                              struct ml_object *old ML_UNUSED, struct ml_object *new ML_UNUSED)
{
    struct ml_object_watch *watch = context;
    watch->changed(watch->context);
}

static void on_object_known(void *context, struct ml_informer *informer ML_UNUSED)
{
    struct ml_object_watch *watch = context;
    watch->changed(watch->context);
}

struct ml_object_watch *ml_object_watch_new(struct ml_informers *informers,
                                            const struct ml_kind *kind, struct ml_str ns,
                                            struct ml_str name, void (*changed)(void *context),
                                            void *context)
{
    static const struct ml_selection metadata = {ML_STR(""), ML_STR(""), true};
    struct ml_object_watch *watch = ml_new(struct ml_object_watch);
    ML_AUTO_FREE char *only = ml_str_dup(ns);
    watch->changed = changed;
    watch->context = context;
    watch->listener = (struct ml_listener){
        .change = on_object_changed, .synced = on_object_known, .context = watch};
    watch->informer = informer_new(informers, kind, &metadata, (const char *const[]){only}, 1,
                                   name);
    ml_informer_listen(watch->informer, &watch->listener);
    return watch;
}

void ml_object_watch_free(struct ml_object_watch *watch)
{
    if (!watch)
        return;
    ml_informer_unlisten(&watch->listener);
    ml_informer_put(watch->informer);
    free(watch);
}

size_t ml_informer_users(const struct ml_informer *self)
{
    return self->users;
}

static void informer_clear_gauges(struct ml_informer *self)
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
    informer_clear_gauges(self);
    ml_list_remove(&self->node);
    ml_list_push(&self->informers->ending, &self->node);
    ml_task_defer(&self->end, self->informers->opts.loop);
}

/* Sums: two informers of one resource, or two resources of one name, share a series. */
static void informers_collect_metrics(void *context)
{
    struct ml_informers *informers = context;
    ml_list_each (each, &informers->all)
        informer_clear_gauges(ml_container_of(each, struct ml_informer, node));
    ml_list_each_entry (struct ml_informer, self, &informers->all) {
        const char *const *labels = ml_metric_labels(self->kind->plural);
        ml_metric_add(ml_metric_with(informers->objects, labels),
                      (double)ml_store_len(self->store));
        ml_metric_add(ml_metric_with(informers->bytes, labels),
                      (double)ml_store_bytes(self->store));
    }
}

static void informers_register_metrics(struct ml_informers *informers)
{
    struct ml_metrics *metrics = informers->opts.metrics;
    const char *const *labels = ml_metric_labels("resource");
    informers->objects = ml_metrics_gauge(metrics, "moonloop_cache_objects", "Objects held.",
                                          labels);
    informers->bytes = ml_metrics_gauge(metrics, "moonloop_cache_bytes",
                                        "Memory of the objects held, compressed.", labels);
    informers->poisoned = ml_metrics_counter(metrics, "moonloop_objects_unreadable_total",
                                             "Objects left out as unreadable.", labels);
    informers->lists = ml_metrics_counter(metrics, "moonloop_lists_total",
                                          "Lists asked for, by what made them necessary.",
                                          ml_metric_labels("resource", "reason"));
    informers->watch_ends = ml_metrics_counter(metrics, "moonloop_watch_ends_total",
                                               "Watches that ended, by how.",
                                               ml_metric_labels("resource", "how"));
    informers->collector = (struct ml_metrics_collector){.collect = informers_collect_metrics,
                                                         .context = informers};
    ml_metrics_on_collect(metrics, &informers->collector);
}

struct ml_informers *ml_informers_new(const struct ml_informers_opts *opts)
{
    struct ml_informers *informers = ml_new(struct ml_informers);
    informers->opts = *opts;
    while (opts->namespaces && opts->namespaces[informers->namespace_count])
        informers->namespace_count++;
    ml_list_init(&informers->all);
    ml_list_init(&informers->ending);
    ml_list_init(&informers->servers);
    informers_register_metrics(informers);
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
    ml_list_each (entry, &informers->servers)
        free(ml_container_of(entry, struct ml_reflector_server, node));
    free(informers);
}
