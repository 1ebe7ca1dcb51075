#include "state/workqueue_internal.h"

static double seconds(int64_t ns)
{
    return (double)ns / (double)ML_NS_PER_S;
}

static struct ml_str key_of(const struct queue_entry *entry)
{
    return (struct ml_str){entry->key, entry->key_len};
}

struct queue_entry *queue_entry_get(struct ml_workqueue *queue, struct ml_str key)
{
    struct queue_entry *entry = ml_map_get(&queue->entries, key);
    if (entry)
        return entry;
    ml_assert(key.len <= UINT16_MAX);
    entry = ml_zalloc(sizeof *entry + key.len);
    memcpy(entry->key, key.ptr, key.len);
    entry->key_len = (uint16_t)key.len;
    ml_list_init(&entry->node);
    ml_map_put(&queue->entries, key_of(entry), entry);
    return entry;
}

void queue_entry_settle(struct ml_workqueue *queue, struct queue_entry *entry)
{
    if (entry->dirty || entry->processing || entry->failures || ml_heap_has(&entry->delay))
        return;
    ml_map_remove(&queue->entries, key_of(entry));
    free(entry);
}

static void tell(void *context)
{
    struct ml_workqueue *queue = context;
    if (ml_workqueue_len(queue) > 0)
        queue->on_ready(queue->context);
}

static void class_push(struct ml_workqueue *queue, struct queue_entry *entry)
{
    struct queue_class *class = &queue->ready[entry->priority];
    ml_list_push(&class->keys, &entry->node);
    if (class->len++ == 0)
        ml_task_defer(&queue->tell, queue->loop);
}

static void class_remove(struct ml_workqueue *queue, struct queue_entry *entry)
{
    ml_list_remove(&entry->node);
    queue->ready[entry->priority].len--;
}

static void enqueue(struct ml_workqueue *queue, struct queue_entry *entry)
{
    entry->since_ns = ml_clock_monotonic(queue->clock);
    class_push(queue, entry);
}

/* What is waiting rises, and never sinks. */
static void raise(struct ml_workqueue *queue, struct queue_entry *entry, enum ml_priority priority)
{
    if (entry->priority >= priority)
        return;
    if (!entry->processing)
        class_remove(queue, entry);
    entry->priority = (uint8_t)priority;
    if (!entry->processing)
        class_push(queue, entry);
}

void queue_mark_dirty(struct ml_workqueue *queue, struct queue_entry *entry,
                      enum ml_priority priority)
{
    if (entry->dirty) {
        raise(queue, entry, priority);
        return;
    }
    queue_count(queue->metrics.adds);
    entry->dirty = true;
    entry->priority = (uint8_t)priority;
    /* Somebody has this key now; done() queues it again. Queueing it here would let a second
     * reconcile of the same object run beside the first. */
    if (!entry->processing)
        enqueue(queue, entry);
}

static void collect(void *context)
{
    struct ml_workqueue *queue = context;
    int64_t now = ml_clock_monotonic(queue->clock);
    int64_t sum = 0, longest = 0;
    ml_list_each (node, &queue->out) {
        int64_t age = now - ml_container_of(node, struct queue_entry, node)->since_ns;
        sum += age;
        longest = ML_MAX(longest, age);
    }
    for (size_t i = 0; i < ML_PRIORITY_COUNT; i++)
        ml_metric_set(queue->metrics.depth[i], (double)queue->ready[i].len);
    ml_metric_set(queue->metrics.unfinished, seconds(sum));
    ml_metric_set(queue->metrics.longest_running, seconds(longest));
}

struct ml_workqueue *ml_workqueue_new(const struct ml_workqueue_opts *opts)
{
    struct ml_workqueue *queue = ml_new(struct ml_workqueue);
    queue->loop = opts->loop;
    queue->clock = ml_loop_clock(opts->loop);
    queue->on_ready = opts->ready;
    queue->context = opts->context;
    for (size_t i = 0; i < ML_PRIORITY_COUNT; i++)
        ml_list_init(&queue->ready[i].keys);
    ml_list_init(&queue->out);
    queue_delay_init(queue);
    ml_task_init(&queue->tell, tell, queue);
    ml_workqueue_metrics_init(&queue->metrics, opts->metrics, opts->name);
    if (opts->metrics) {
        queue->collector = (struct ml_metrics_collector){.collect = collect, .context = queue};
        ml_metrics_on_collect(opts->metrics, &queue->collector);
    }
    return queue;
}

void ml_workqueue_free(struct ml_workqueue *queue)
{
    if (!queue)
        return;
    ml_metrics_collector_remove(&queue->collector);
    ml_timer_stop(&queue->timer);
    ml_task_cancel(&queue->tell);
    ml_map_each (&queue->entries, cursor, entry)
        free(entry);
    ml_map_fini(&queue->entries);
    ml_heap_fini(&queue->delayed);
    free(queue);
}

void ml_workqueue_add(struct ml_workqueue *queue, struct ml_str key, enum ml_priority priority)
{
    if (!queue->shut_down)
        queue_mark_dirty(queue, queue_entry_get(queue, key), priority);
}

/* The first of the highest class, down to `least`. */
static struct queue_entry *next_ready(const struct ml_workqueue *queue, enum ml_priority least)
{
    for (int i = ML_PRIORITY_COUNT - 1; i >= (int)least; i--)
        if (queue->ready[i].len > 0)
            return ml_container_of(queue->ready[i].keys.next, struct queue_entry, node);
    return NULL;
}

bool ml_workqueue_get(struct ml_workqueue *queue, enum ml_priority least, struct ml_str *out_key,
                      enum ml_priority *out_priority)
{
    struct queue_entry *entry = next_ready(queue, least);
    if (!entry)
        return false;
    int64_t now = ml_clock_monotonic(queue->clock);
    ml_assert(entry->dirty && !entry->processing);
    if (queue->metrics.queue_duration)
        ml_metric_observe(queue->metrics.queue_duration, seconds(now - entry->since_ns));
    class_remove(queue, entry);
    entry->dirty = false;
    entry->processing = true;
    entry->since_ns = now;
    ml_list_push(&queue->out, &entry->node);
    queue->out_len++;
    *out_key = key_of(entry);
    *out_priority = entry->priority;
    return true;
}

void ml_workqueue_done(struct ml_workqueue *queue, struct ml_str key)
{
    struct queue_entry *entry = ml_map_get(&queue->entries, key);
    ml_assert(entry && entry->processing);
    if (queue->metrics.work_duration)
        ml_metric_observe(queue->metrics.work_duration,
                          seconds(ml_clock_monotonic(queue->clock) - entry->since_ns));
    entry->processing = false;
    ml_list_remove(&entry->node);
    queue->out_len--;
    if (entry->dirty && !queue->shut_down)
        enqueue(queue, entry);
    else
        entry->dirty = false;
    queue_entry_settle(queue, entry);
}

void ml_workqueue_shut_down(struct ml_workqueue *queue)
{
    queue->shut_down = true;
    queue_delay_drop_all(queue);
}

size_t ml_workqueue_len(const struct ml_workqueue *queue)
{
    size_t len = 0;
    for (size_t i = 0; i < ML_PRIORITY_COUNT; i++)
        len += queue->ready[i].len;
    return len;
}

size_t ml_workqueue_processing(const struct ml_workqueue *queue)
{
    return queue->out_len;
}

int64_t ml_workqueue_next(const struct ml_workqueue *queue)
{
    const struct ml_heap_node *top = ml_heap_top(&queue->delayed);
    if (ml_workqueue_len(queue) > 0 || ml_workqueue_processing(queue) > 0)
        return 0;
    return top ? (int64_t)top->key : INT64_MAX;
}
