#include "state/informer_internal.h"

/* A listener may leave, or make another one leave, while it is told. */
void informer_tell(struct ml_informer *self, struct ml_object *old, struct ml_object *new)
{
    ml_assert(!self->telling); /* what changes the store comes from the loop */
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

void informer_tell_synced(struct ml_informer *self)
{
    ml_assert(!self->telling);
    for (struct ml_list *node = self->listeners.next; node != &self->listeners;
         node = self->telling) {
        struct ml_listener *listener = ml_container_of(node, struct ml_listener, node);
        self->telling = node->next;
        if (listener->caught_up)
            listener->synced(listener->context, self);
    }
    self->telling = NULL;
}

void informer_tell_mended(struct ml_informer *self)
{
    ml_assert(!self->telling);
    for (struct ml_list *node = self->listeners.next; node != &self->listeners;
         node = self->telling) {
        struct ml_listener *listener = ml_container_of(node, struct ml_listener, node);
        self->telling = node->next;
        if (listener->caught_up && listener->mended)
            listener->mended(listener->context, self);
    }
    self->telling = NULL;
}

/* A listener that leaves may be freed at once, so that only the informer, which is freed by the
 * loop, can say whether it is still there. */
static void replay(void *context)
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
    if (self->replaying == listener)
        self->replaying = NULL;
    ml_list_remove(&listener->node);
    ml_task_cancel(&listener->replay);
    listener->informer = NULL;
}
