/* Which request may leave next, and when none may: the flows that wait for a place, and the pause
 * after a 429. Used by client.c. */
#include "kube/client_internal.h"

#define PAUSE_MS_MIN   INT64_C(1000) /* also when the server did not say, or said 0 or nonsense */
#define PAUSE_MS_MAX   INT64_C(60000)
#define UNREADY_LOG_NS (10 * ML_NS_PER_S)

/* The requests of one controller; freed when none of them waits. */
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

/* A linear search: there are as many flows as controllers, a few. */
static struct ml_client_flow *find_or_add_flow(struct ml_client_queue *queue, const char *name)
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

void ml_client_queue_add(struct ml_client_queue *queue, struct ml_client_waiter *waiter,
                         const char *flow, bool yields)
{
    waiter->flow = yields ? NULL : find_or_add_flow(queue, flow ? flow : "");
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

bool ml_client_paused(const struct ml_client_pause *pause)
{
    return ml_timer_active(&pause->over);
}

void ml_client_pause_init(struct ml_client_pause *pause, const struct ml_client_opts *opts,
                          void (*over)(void *context), void *context)
{
    pause->loop = opts->loop;
    pause->random = opts->random;
    pause->log = opts->log;
    ml_timer_init(&pause->over, opts->loop, over, context);
    if (opts->metrics)
        pause->count = ml_metric_only(ml_metrics_counter(
            opts->metrics, "moonloop_throttled_total",
            "Answers 429 of an overloaded API server, each of which paused the process.", NULL));
}

/* Up to a tenth more: clients that were refused together come back apart. */
static int64_t pause_length_ms(struct ml_client_pause *pause, int64_t asked_ms)
{
    int64_t ms = ML_MAX(PAUSE_MS_MIN, ML_MIN(asked_ms, PAUSE_MS_MAX));
    return ML_MIN(ms + ml_random_between(pause->random, 0, ms / 10 + 1), PAUSE_MS_MAX);
}

void ml_client_pause_note(struct ml_client_pause *pause, int status, int64_t retry_after_ms)
{
    if (status != 429) {
        if (pause->logged && status > 0)
            ml_info(pause->log, "client", "the API server takes requests again");
        pause->logged = pause->logged && status == 0;
        return;
    }
    if (pause->count)
        ml_metric_add(pause->count, 1);
    int64_t ms = pause_length_ms(pause, retry_after_ms);
    int64_t until_ns = ml_clock_monotonic(ml_loop_clock(pause->loop)) + ms * ML_NS_PER_MS;
    if (!pause->logged)
        ml_warn(pause->log, "client", "the API server is overloaded; pausing all requests",
                ML_F("seconds", (double)ms / 1000));
    pause->logged = true;
    /* Of several answers the longest counts. */
    if (ml_client_paused(pause) && until_ns <= pause->until_ns)
        return;
    pause->until_ns = until_ns;
    ml_timer_start(&pause->over, ms * ML_NS_PER_MS);
}

void ml_client_pause_note_unready(struct ml_client_pause *pause, const char *path,
                                  const struct ml_err *err)
{
    int64_t now_ns = ml_clock_monotonic(ml_loop_clock(pause->loop));
    struct ml_str resource = {path, strcspn(path, "?")};
    if (now_ns < pause->unready_until_ns)
        return;
    pause->unready_until_ns = now_ns + UNREADY_LOG_NS;
    ml_warn(pause->log, "client",
            "the API server cannot serve a resource for now; only its requests wait",
            ML_STR_FIELD("path", resource), ML_ERR(err));
}
