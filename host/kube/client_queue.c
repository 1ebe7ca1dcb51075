#include "kube/client_internal.h"

/* A controller's share; gone when nobody waits in it. */
struct ml_client_flow {
    struct ml_list node;
    struct ml_list waiters;
    char name[];
};

void ml_client_queue_init(struct ml_client_queue *queue)
{
    *queue = (struct ml_client_queue){.len = 0};
    ml_list_init(&queue->flows);
    ml_list_init(&queue->yielding);
}

/* There are as many as controllers: few. */
static struct ml_client_flow *flow_get(struct ml_client_queue *queue, const char *name)
{
    ml_list_each (node, &queue->flows) {
        struct ml_client_flow *flow = ml_container_of(node, struct ml_client_flow, node);
        if (strcmp(flow->name, name) == 0)
            return flow;
    }
    size_t size = strlen(name) + 1;
    struct ml_client_flow *flow = ml_zalloc(sizeof *flow + size);
    memcpy(flow->name, name, size);
    ml_list_init(&flow->waiters);
    ml_list_push(&queue->flows, &flow->node);
    return flow;
}

void ml_client_queue_put(struct ml_client_queue *queue, struct ml_client_waiter *waiter,
                         const char *flow, bool yields)
{
    waiter->flow = yields ? NULL : flow_get(queue, flow ? flow : "");
    ml_list_push(yields ? &queue->yielding : &waiter->flow->waiters, &waiter->node);
    queue->len++;
}

void ml_client_queue_remove(struct ml_client_queue *queue, struct ml_client_waiter *waiter)
{
    struct ml_client_flow *flow = ml_take(&waiter->flow);
    ml_list_remove(&waiter->node);
    queue->len--;
    if (flow && ml_list_empty(&flow->waiters)) {
        ml_list_remove(&flow->node);
        free(flow);
    }
}

struct ml_client_waiter *ml_client_queue_next(struct ml_client_queue *queue)
{
    struct ml_list *first = queue->flows.next;
    if (first != &queue->flows) {
        struct ml_client_flow *flow = ml_container_of(first, struct ml_client_flow, node);
        ml_list_remove(first);
        ml_list_push(&queue->flows, first);
        return ml_container_of(flow->waiters.next, struct ml_client_waiter, node);
    }
    first = queue->yielding.next;
    return first == &queue->yielding ? NULL : ml_container_of(first, struct ml_client_waiter, node);
}
