#include "state/workqueue.h"

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "state/workqueue_metrics.h"

#define BACKOFF_FIRST_NS (5 * ML_NS_PER_MS)
#define BACKOFF_MAX_NS   (1000 * ML_NS_PER_S)
#define FAILURES_MAX     20 /* the backoff has long reached its maximum */

/* All that is known about a key; freed as soon as it says nothing. */
struct entry {
    struct ml_heap_node delay; /* in `delayed` while a later addition is due */
    struct ml_list node;       /* in `ready` while queued, in `out` while processing */
    int64_t since_ns;          /* queued since, then handed out since */
    bool dirty;                /* needs work: in `ready`, unless it is processing */
    bool processing;           /* handed out, in `out`, and so never in `ready` */
    uint8_t failures;          /* for the backoff */
    uint16_t key_len;
    char key[];
};

struct ml_workqueue {
    struct ml_loop *loop;
    struct ml_clock *clock;
    void (*on_ready)(void *context);
    void *context;
    struct ml_map entries;  /* key -> entry */
    struct ml_list ready;   /* dirty and not processing, in order of addition */
    struct ml_list out;     /* processing, in order of handing out */
    struct ml_heap delayed; /* by due time, monotonic ns */
    size_t ready_len;
    size_t out_len;
    struct ml_timer timer; /* for the top of `delayed` */
    struct ml_task tell;   /* on_ready, off the adder's stack */
    bool shut_down;
    struct ml_workqueue_metrics metrics;
    struct ml_metrics_collector collector;
};

static double seconds(int64_t ns)
{
    return (double)ns / (double)ML_NS_PER_S;
}

static void count(struct ml_metric *metric)
{
    if (metric)
        ml_metric_add(metric, 1);
}

static struct ml_str key_of(const struct entry *entry)
{
    return (struct ml_str){entry->key, entry->key_len};
}

static struct entry *entry_get(struct ml_workqueue *queue, struct ml_str key)
{
    struct entry *entry = ml_map_get(&queue->entries, key);
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

/* Frees the entry when nothing is left to know about its key. */
static void entry_settle(struct ml_workqueue *queue, struct entry *entry)
{
    if (entry->dirty || entry->processing || entry->failures || ml_heap_has(&entry->delay))
        return;
    ml_map_remove(&queue->entries, key_of(entry));
    free(entry);
}

static void tell(void *context)
{
    struct ml_workqueue *queue = context;
    if (queue->ready_len > 0)
        queue->on_ready(queue->context);
}

static void enqueue(struct ml_workqueue *queue, struct entry *entry)
{
    entry->since_ns = ml_clock_monotonic(queue->clock);
    ml_list_push(&queue->ready, &entry->node);
    if (queue->ready_len++ == 0)
        ml_task_defer(&queue->tell, queue->loop);
}

static void mark_dirty(struct ml_workqueue *queue, struct entry *entry)
{
    if (entry->dirty)
        return;
    count(queue->metrics.adds);
    entry->dirty = true;
    /* Somebody has this key now; done() queues it again. Queueing it here would let a second
     * reconcile of the same object run beside the first. */
    if (!entry->processing)
        enqueue(queue, entry);
}

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
        struct entry *entry = ml_container_of(top, struct entry, delay);
        ml_heap_remove(&queue->delayed, top);
        mark_dirty(queue, entry);
    }
    arm(queue);
}

static void collect(void *context)
{
    struct ml_workqueue *queue = context;
    int64_t now = ml_clock_monotonic(queue->clock);
    int64_t sum = 0, longest = 0;
    ml_list_each (node, &queue->out) {
        int64_t age = now - ml_container_of(node, struct entry, node)->since_ns;
        sum += age;
        longest = ML_MAX(longest, age);
    }
    ml_metric_set(queue->metrics.depth, (double)queue->ready_len);
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
    ml_list_init(&queue->ready);
    ml_list_init(&queue->out);
    ml_timer_init(&queue->timer, opts->loop, on_due, queue);
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

void ml_workqueue_add(struct ml_workqueue *queue, struct ml_str key)
{
    if (!queue->shut_down)
        mark_dirty(queue, entry_get(queue, key));
}

void ml_workqueue_add_after(struct ml_workqueue *queue, struct ml_str key, int64_t delay_ns)
{
    if (queue->shut_down)
        return;
    count(queue->metrics.retries);
    if (delay_ns <= 0) {
        ml_workqueue_add(queue, key);
        return;
    }
    struct entry *entry = entry_get(queue, key);
    uint64_t due = (uint64_t)ml_clock_monotonic(queue->clock);
    if (__builtin_add_overflow(due, (uint64_t)delay_ns, &due) || due > INT64_MAX)
        due = INT64_MAX;
    /* The earliest due time wins: a later addition never postpones one that stands. */
    if (ml_heap_has(&entry->delay)) {
        if (entry->delay.key <= due)
            return;
        ml_heap_remove(&queue->delayed, &entry->delay);
    }
    ml_heap_insert(&queue->delayed, &entry->delay, due);
    if (ml_heap_top(&queue->delayed) == &entry->delay)
        arm(queue);
}

void ml_workqueue_add_rate_limited(struct ml_workqueue *queue, struct ml_str key)
{
    if (queue->shut_down)
        return;
    struct entry *entry = entry_get(queue, key);
    int64_t delay_ns = BACKOFF_FIRST_NS << entry->failures;
    if (entry->failures < FAILURES_MAX)
        entry->failures++;
    ml_workqueue_add_after(queue, key, ML_MIN(delay_ns, BACKOFF_MAX_NS));
}

void ml_workqueue_forget(struct ml_workqueue *queue, struct ml_str key)
{
    struct entry *entry = ml_map_get(&queue->entries, key);
    if (!entry)
        return;
    entry->failures = 0;
    entry_settle(queue, entry);
}

void ml_workqueue_cancel_after(struct ml_workqueue *queue, struct ml_str key)
{
    struct entry *entry = ml_map_get(&queue->entries, key);
    if (!entry || !ml_heap_has(&entry->delay))
        return;
    bool was_next = ml_heap_top(&queue->delayed) == &entry->delay;
    ml_heap_remove(&queue->delayed, &entry->delay);
    if (was_next)
        arm(queue);
    entry_settle(queue, entry);
}

bool ml_workqueue_get(struct ml_workqueue *queue, struct ml_str *out_key)
{
    struct ml_list *node = ml_list_shift(&queue->ready);
    if (!node)
        return false;
    struct entry *entry = ml_container_of(node, struct entry, node);
    int64_t now = ml_clock_monotonic(queue->clock);
    ml_assert(entry->dirty && !entry->processing);
    if (queue->metrics.queue_duration)
        ml_metric_observe(queue->metrics.queue_duration, seconds(now - entry->since_ns));
    entry->dirty = false;
    entry->processing = true;
    entry->since_ns = now;
    ml_list_push(&queue->out, &entry->node);
    queue->ready_len--;
    queue->out_len++;
    *out_key = key_of(entry);
    return true;
}

void ml_workqueue_done(struct ml_workqueue *queue, struct ml_str key)
{
    struct entry *entry = ml_map_get(&queue->entries, key);
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
    entry_settle(queue, entry);
}

void ml_workqueue_shut_down(struct ml_workqueue *queue)
{
    queue->shut_down = true;
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&queue->delayed))) {
        struct entry *entry = ml_container_of(top, struct entry, delay);
        ml_heap_remove(&queue->delayed, top);
        entry_settle(queue, entry);
    }
    arm(queue);
}

size_t ml_workqueue_len(const struct ml_workqueue *queue)
{
    return queue->ready_len;
}

size_t ml_workqueue_processing(const struct ml_workqueue *queue)
{
    return queue->out_len;
}

size_t ml_workqueue_delayed(const struct ml_workqueue *queue)
{
    return queue->delayed.len;
}

int64_t ml_workqueue_next(const struct ml_workqueue *queue)
{
    const struct ml_heap_node *top = ml_heap_top(&queue->delayed);
    if (ml_workqueue_len(queue) > 0 || ml_workqueue_processing(queue) > 0)
        return 0;
    return top ? (int64_t)top->key : INT64_MAX;
}
