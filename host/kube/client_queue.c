#include "kube/client_internal.h"

/* A controller's share; gone when nobody waits in it. */
struct ml_client_lane {
    struct ml_list node;
    struct ml_list waiters;
    char name[];
};

void ml_client_queue_init(struct ml_client_queue *queue)
{
    *queue = (struct ml_client_queue){.len = 0};
    ml_list_init(&queue->lanes);
    ml_list_init(&queue->yielding);
}

/* There are as many as controllers: few. */
static struct ml_client_lane *lane_get(struct ml_client_queue *queue, const char *name)
{
    ml_list_each (node, &queue->lanes) {
        struct ml_client_lane *lane = ml_container_of(node, struct ml_client_lane, node);
        if (strcmp(lane->name, name) == 0)
            return lane;
    }
    size_t size = strlen(name) + 1;
    struct ml_client_lane *lane = ml_zalloc(sizeof *lane + size);
    memcpy(lane->name, name, size);
    ml_list_init(&lane->waiters);
    ml_list_push(&queue->lanes, &lane->node);
    return lane;
}

void ml_client_queue_put(struct ml_client_queue *queue, struct ml_client_waiter *waiter,
                         const char *lane, bool yields)
{
    waiter->lane = yields ? NULL : lane_get(queue, lane ? lane : "");
    ml_list_push(yields ? &queue->yielding : &waiter->lane->waiters, &waiter->node);
    queue->len++;
}

void ml_client_queue_remove(struct ml_client_queue *queue, struct ml_client_waiter *waiter)
{
    struct ml_client_lane *lane = ml_take(&waiter->lane);
    ml_list_remove(&waiter->node);
    queue->len--;
    if (lane && ml_list_empty(&lane->waiters)) {
        ml_list_remove(&lane->node);
        free(lane);
    }
}

struct ml_client_waiter *ml_client_queue_next(struct ml_client_queue *queue)
{
    struct ml_list *first = queue->lanes.next;
    if (first != &queue->lanes) {
        struct ml_client_lane *lane = ml_container_of(first, struct ml_client_lane, node);
        ml_list_remove(first);
        ml_list_push(&queue->lanes, first);
        return ml_container_of(lane->waiters.next, struct ml_client_waiter, node);
    }
    first = queue->yielding.next;
    return first == &queue->yielding ? NULL : ml_container_of(first, struct ml_client_waiter, node);
}
