/* The informers of the process, by kind and selection. Controllers and scripts get theirs here. */
#include "state/informer_internal.h"

static const struct ml_selection whole_kind = {ML_STR(""), ML_STR(""), false};

static struct ml_informer *informers_find(struct ml_informers *informers,
                                          const struct ml_kind *kind,
                                          const struct ml_selection *selection)
{
    ml_list_each (node, &informers->all) {
        struct ml_informer *self = ml_container_of(node, struct ml_informer, node);
        if (self->shared && self->kind == kind && ml_selection_eq(&self->selection, selection))
            return self;
    }
    return NULL;
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

struct ml_reflector_server *informers_server(struct ml_informers *informers,
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
    ml_list_each (node, &informers->all) {
        struct ml_informer *self = ml_container_of(node, struct ml_informer, node);
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
