/* A kind that went away while it is watched: its CRD was deleted, or serves that version no more.
 * A 404 alone does not say so, proxies and servers that are starting answer it too; discovery
 * does. */
#include "state/informer_internal.h"

/* What is not there any more is told as deleted, and nobody waits for it. */
static void empty(struct informer_scope *scope)
{
    if (!scope->synced)
        return;
    informer_replace(scope, NULL, 0, scope->seen);
    informer_release_all(scope);
}

static void on_looked_up(void *context, const struct ml_kind *kind, const struct ml_err *err)
{
    struct ml_informer *self = context;
    (void)kind;
    self->looking = NULL;
    if (!err || err->kind != ML_ENOT_FOUND)
        return;
    size_t count = ml_store_len(self->store);
    if (count > 0)
        ml_warn(self->informers->opts.log, "informer",
                "kind is gone; its objects are taken as gone", ML_S("resource", self->kind->plural),
                ML_S("apiVersion", self->kind->api_version), ML_I("objects", (int64_t)count));
    for (size_t i = 0; i < self->scope_count; i++)
        empty(&self->scopes[i]);
}

void informer_look_up(struct ml_informer *self)
{
    struct ml_discovery *discovery = self->informers->opts.discovery;
    const struct ml_kind *kind = self->kind;
    const struct ml_gvk gvk = {ml_str_of(kind->group), ml_str_of(kind->version),
                               ml_str_of(kind->kind)};
    if (!discovery || self->looking)
        return;
    if (ml_discovery_known(discovery, &gvk) == kind)
        ml_discovery_forget(discovery, kind);
    self->looking = ml_discovery_resolve(discovery, &gvk, on_looked_up, self);
}
