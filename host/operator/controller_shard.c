/* Which keys are this replica's, where several share them. */
#include "operator/controller_internal.h"

bool controller_acts(const struct ml_controller *self, struct ml_str key)
{
    const struct ml_cluster *cluster = self->cluster;
    if (cluster->standby)
        return false;
    return !cluster->shard || ml_shard_acts(cluster->shard, ml_str_of(self->name), key);
}

static void collect_owned(void *context)
{
    struct ml_controller *self = context;
    size_t cursor = 0, owned = 0;
    if (!self->current)
        return;
    const struct ml_store *store = ml_informer_store(ml_revision_informer(self->current));
    for (struct ml_object *object; (object = ml_store_next(store, &cursor));)
        owned += controller_acts(self, ml_object_key(object));
    ml_metric_set(self->keys_owned, (double)owned);
}

void controller_shard_init(struct ml_controller *self)
{
    struct ml_metrics *metrics = self->cluster->metrics;
    if (!self->cluster->shard)
        return;
    self->keys_owned = ml_metric_with(
        ml_metrics_gauge(metrics, "moonloop_shard_keys_owned",
                         "Objects that this replica acts on, by controller.",
                         ml_metric_labels("controller")),
        ml_metric_labels(self->name));
    self->owned_collector = (struct ml_metrics_collector){.collect = collect_owned,
                                                          .context = self};
    ml_metrics_on_collect(metrics, &self->owned_collector);
}

void controller_shard_fini(struct ml_controller *self)
{
    if (self->keys_owned)
        ml_metrics_collector_remove(&self->owned_collector);
}
