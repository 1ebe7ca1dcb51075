/* Additions that are due later: by a delay, or by the backoff of a key that failed. */
#include "state/workqueue_internal.h"

#define BACKOFF_FIRST_NS (5 * ML_NS_PER_MS)
#define BACKOFF_MAX_NS   (1000 * ML_NS_PER_S)
#define FAILURES_MAX     20 /* the backoff has long reached its maximum */

static void arm(struct ml_workqueue *queue)
{
    const struct ml_heap_node *top = ml_heap_top(&queue->delayed);
    if (top)
        ml_timer_start(&queue->timer, (int64_t)top->key - ml_clock_monotonic(queue->clock));
    else
        ml_timer_stop(&queue->timer);
}

static void on_due(void *context)
{
    struct ml_workqueue *queue = context;
    int64_t now = ml_clock_monotonic(queue->clock);
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&queue->delayed)) && (int64_t)top->key <= now) {
        struct queue_entry *entry = ml_container_of(top, struct queue_entry, delay);
        ml_heap_remove(&queue->delayed, top);
        queue_mark_dirty(queue, entry, entry->delay_priority);
    }
    arm(queue);
}

void queue_delay_init(struct ml_workqueue *queue)
{
    ml_timer_init(&queue->timer, queue->loop, on_due, queue);
}

void queue_delay_drop_all(struct ml_workqueue *queue)
{
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&queue->delayed))) {
        struct queue_entry *entry = ml_container_of(top, struct queue_entry, delay);
        ml_heap_remove(&queue->delayed, top);
        queue_entry_settle(queue, entry);
    }
    arm(queue);
}

/* The earliest due time wins, and the highest priority: a later addition never postpones one that
 * stands. */
static void delay_until(struct ml_workqueue *queue, struct queue_entry *entry,
                        enum ml_priority priority, uint64_t due)
{
    if (ml_heap_has(&entry->delay)) {
        entry->delay_priority = (uint8_t)ML_MAX(entry->delay_priority, priority);
        if (entry->delay.key <= due)
            return;
        ml_heap_remove(&queue->delayed, &entry->delay);
    } else {
        entry->delay_priority = (uint8_t)priority;
    }
    ml_heap_insert(&queue->delayed, &entry->delay, due);
    if (ml_heap_top(&queue->delayed) == &entry->delay)
        arm(queue);
}

void ml_workqueue_add_after(struct ml_workqueue *queue, struct ml_str key,
                            enum ml_priority priority, int64_t delay_ns)
{
    if (queue->shut_down)
        return;
    queue_count(queue->metrics.retries);
    if (delay_ns <= 0) {
        ml_workqueue_add(queue, key, priority);
        return;
    }
    uint64_t due = (uint64_t)ml_clock_monotonic(queue->clock);
    if (__builtin_add_overflow(due, (uint64_t)delay_ns, &due) || due > INT64_MAX)
        due = INT64_MAX;
    delay_until(queue, queue_entry_get(queue, key), priority, due);
}

void ml_workqueue_add_rate_limited(struct ml_workqueue *queue, struct ml_str key,
                                   enum ml_priority priority)
{
    ml_workqueue_add_rate_limited_by(queue, key, priority, 0);
}

void ml_workqueue_add_rate_limited_by(struct ml_workqueue *queue, struct ml_str key,
                                      enum ml_priority priority, unsigned doublings)
{
    if (queue->shut_down)
        return;
    struct queue_entry *entry = queue_entry_get(queue, key);
    int64_t delay_ns = BACKOFF_FIRST_NS << ML_MIN(entry->failures + doublings, FAILURES_MAX);
    if (entry->failures < FAILURES_MAX)
        entry->failures++;
    ml_workqueue_add_after(queue, key, priority, ML_MIN(delay_ns, BACKOFF_MAX_NS));
}

void ml_workqueue_forget(struct ml_workqueue *queue, struct ml_str key)
{
    struct queue_entry *entry = ml_map_get(&queue->entries, key);
    if (!entry)
        return;
    entry->failures = 0;
    queue_entry_settle(queue, entry);
}

void ml_workqueue_cancel_after(struct ml_workqueue *queue, struct ml_str key)
{
    struct queue_entry *entry = ml_map_get(&queue->entries, key);
    if (!entry || !ml_heap_has(&entry->delay))
        return;
    bool was_next = ml_heap_top(&queue->delayed) == &entry->delay;
    ml_heap_remove(&queue->delayed, &entry->delay);
    if (was_next)
        arm(queue);
    queue_entry_settle(queue, entry);
}

size_t ml_workqueue_delayed(const struct ml_workqueue *queue)
{
    return queue->delayed.len;
}
