#include "state/informer_internal.h"

static void on_seen(void *context)
{
    struct ml_seen_wait *wait = context;
    wait->ready(wait->context);
}

static void release(struct informer_scope *scope, struct ml_heap_node *node)
{
    ml_heap_remove(&scope->waits, node);
    ml_task_defer(&ml_container_of(node, struct ml_seen_wait, node)->task,
                  scope->informer->informers->opts.loop);
}

void informer_release_all(struct informer_scope *scope)
{
    for (struct ml_heap_node *top; (top = ml_heap_top(&scope->waits));)
        release(scope, top);
}

void informer_release_seen(struct informer_scope *scope, uint64_t sequence)
{
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&scope->waits)) && top->key <= scope->seen)
        release(scope, top);
    if (sequence == 0 || scope->waits.len == 0)
        return;
    /* In a copy: a removal moves the others about. */
    size_t count = scope->waits.len, bytes = count * sizeof(struct ml_heap_node *);
    ML_AUTO_FREE struct ml_heap_node **nodes = ml_alloc(bytes);
    memcpy(nodes, scope->waits.nodes, bytes);
    for (size_t i = 0; i < count; i++)
        if (nodes[i]->sequence < sequence)
            release(scope, nodes[i]);
}

static struct informer_scope *scope_of(const struct ml_informer *self, struct ml_str ns)
{
    for (size_t i = 0; i < self->scope_count; i++)
        if (!*self->scopes[i].ns || ml_str_is(ns, self->scopes[i].ns))
            return &self->scopes[i];
    return NULL;
}

bool ml_informer_seen(const struct ml_informer *self, struct ml_str ns, uint64_t rv)
{
    const struct informer_scope *scope = scope_of(self, ns);
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
    struct informer_scope *scope = scope_of(self, ns);
    wait->source = scope;
    ml_heap_insert(&scope->waits, &wait->node, rv);
}

void ml_seen_wait_cancel(struct ml_seen_wait *wait)
{
    if (!wait->ready)
        return;
    if (ml_heap_has(&wait->node))
        ml_heap_remove(&((struct informer_scope *)wait->source)->waits, &wait->node);
    ml_task_cancel(&wait->task);
}

bool ml_seen_wait_over(const struct ml_seen_wait *wait)
{
    return !ml_heap_has(&wait->node);
}
