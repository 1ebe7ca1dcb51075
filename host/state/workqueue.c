/* The keys of one controller that wait to be reconciled. operator/controller.c takes them. */
#include "state/workqueue.h"

#include "base/heap.h"
#include "base/list.h"

#define BACKOFF_FIRST_NS (5 * ML_NS_PER_MS)
#define BACKOFF_MAX_NS   (1000 * ML_NS_PER_S)
#define FAILURES_MAX     20 /* the backoff has long reached its maximum */

/* client-go's names; the depth by priority, as controller-runtime has it. All NULL: not counted. */
struct ml_workqueue_metrics {
    struct ml_metric *adds, *retries;
    struct ml_metric *depth[ML_PRIORITY_COUNT];
    struct ml_metric *queue_duration, *work_duration;
    struct ml_metric *unfinished, *longest_running;
};

/* The queue's part of a key's record; freed when it has nothing to keep. */
struct ml_key_queued {
    struct ml_key *key;
    struct ml_heap_node delay; /* in `delayed` while a later addition is due */
    struct ml_list node;       /* in `ready` while queued, in `out` while processing */
    int64_t since_ns;          /* queued since, then handed out since */
    int64_t failing_since_ns;  /* while `failures` */
    bool dirty;                /* needs work: in `ready`, unless it is processing */
    bool processing;           /* handed out, in `out`, and so never in `ready` */
    uint8_t failures;          /* for the backoff */
    uint8_t resets;            /* answers of the server that ended it early, in vain */
    bool awaits_server;        /* the server's next answer ends the delay */
    uint8_t priority;          /* while dirty */
    uint8_t delay_priority;    /* while delayed */
};

/* Dirty and not processing, in order of addition. */
struct queue_class {
    struct ml_list keys;
    size_t len;
};

struct ml_workqueue {
    struct ml_loop *loop;
    struct ml_clock *clock;
    struct ml_keys *keys;
    struct queue_class ready[ML_PRIORITY_COUNT];
    struct ml_list out;     /* processing, in order of handing out */
    struct ml_heap delayed; /* by due time, monotonic ns */
    size_t out_len;
    struct ml_timer timer;    /* for the top of `delayed` */
    struct ml_task *on_ready; /* the owner's, off the adder's stack */
    bool shut_down;
    struct ml_workqueue_metrics metrics;
    struct ml_metrics_collector collector;
};

static void queue_count(struct ml_metric *metric)
{
    if (metric)
        ml_metric_add(metric, 1);
}

static double queue_seconds(int64_t ns)
{
    return (double)ns / (double)ML_NS_PER_S;
}

static struct ml_key_queued *queue_entry_find(const struct ml_workqueue *queue, struct ml_str key)
{
    const struct ml_key *record = ml_keys_find(queue->keys, key);
    return record ? record->queued : NULL;
}

static struct ml_key_queued *queue_entry_get(struct ml_workqueue *queue, struct ml_str key)
{
    struct ml_key_queued *entry = queue_entry_find(queue, key);
    if (entry)
        return entry;
    entry = ml_new(struct ml_key_queued);
    ml_list_init(&entry->node);
    entry->key = ml_keys_ref(queue->keys, key);
    entry->key->queued = entry;
    return entry;
}

static void queue_entry_free(struct ml_key_queued *entry)
{
    entry->key->queued = NULL;
    ml_key_unref(entry->key);
    free(entry);
}

static void queue_entry_settle(struct ml_key_queued *entry)
{
    if (entry->dirty || entry->processing || entry->failures || ml_heap_has(&entry->delay))
        return;
    queue_entry_free(entry);
}

static void queue_class_push(struct ml_workqueue *queue, struct ml_key_queued *entry)
{
    struct queue_class *class = &queue->ready[entry->priority];
    ml_list_push(&class->keys, &entry->node);
    if (class->len++ == 0)
        ml_task_defer(queue->on_ready, queue->loop);
}

static void queue_class_remove(struct ml_workqueue *queue, struct ml_key_queued *entry)
{
    ml_list_remove(&entry->node);
    queue->ready[entry->priority].len--;
}

static void queue_push_new(struct ml_workqueue *queue, struct ml_key_queued *entry)
{
    entry->since_ns = ml_clock_monotonic(queue->clock);
    queue_class_push(queue, entry);
}

/* Raises the priority of a waiting key; never lowers it. */
static void queue_raise(struct ml_workqueue *queue, struct ml_key_queued *entry,
                        enum ml_priority priority)
{
    if (entry->priority >= priority)
        return;
    if (!entry->processing)
        queue_class_remove(queue, entry);
    entry->priority = (uint8_t)priority;
    if (!entry->processing)
        queue_class_push(queue, entry);
}

static void queue_mark_dirty(struct ml_workqueue *queue, struct ml_key_queued *entry,
                             enum ml_priority priority)
{
    if (entry->dirty) {
        queue_raise(queue, entry, priority);
        return;
    }
    queue_count(queue->metrics.adds);
    entry->dirty = true;
    entry->priority = (uint8_t)priority;
    /* Somebody has this key now; done() queues it again. Queueing it here would let a second
     * reconcile of the same object run beside the first. */
    if (!entry->processing)
        queue_push_new(queue, entry);
}

/* ---- additions that are due later ---- */

static void queue_arm_timer(struct ml_workqueue *queue)
{
    const struct ml_heap_node *top = ml_heap_top(&queue->delayed);
    if (top)
        ml_timer_start(&queue->timer, (int64_t)top->key - ml_clock_monotonic(queue->clock));
    else
        ml_timer_stop(&queue->timer);
}

static void queue_on_due(void *context)
{
    struct ml_workqueue *queue = context;
    int64_t now = ml_clock_monotonic(queue->clock);
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&queue->delayed)) && (int64_t)top->key <= now) {
        struct ml_key_queued *entry = ml_container_of(top, struct ml_key_queued, delay);
        ml_heap_remove(&queue->delayed, top);
        entry->awaits_server = false;
        queue_mark_dirty(queue, entry, entry->delay_priority);
    }
    queue_arm_timer(queue);
}

static void queue_delay_drop_all(struct ml_workqueue *queue)
{
    struct ml_heap_node *top;
    while ((top = ml_heap_top(&queue->delayed))) {
        struct ml_key_queued *entry = ml_container_of(top, struct ml_key_queued, delay);
        ml_heap_remove(&queue->delayed, top);
        queue_entry_settle(entry);
    }
    queue_arm_timer(queue);
}

/* The earliest due time and the highest priority win: a later addition never postpones an earlier
 * one. */
static void queue_delay_until(struct ml_workqueue *queue, struct ml_key_queued *entry,
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
        queue_arm_timer(queue);
}

void ml_workqueue_add(struct ml_workqueue *queue, struct ml_str key, enum ml_priority priority)
{
    if (!queue->shut_down)
        queue_mark_dirty(queue, queue_entry_get(queue, key), priority);
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
    queue_delay_until(queue, queue_entry_get(queue, key), priority, due);
}

static int64_t queue_backoff_ns(unsigned doublings)
{
    return ML_MIN(BACKOFF_FIRST_NS << ML_MIN(doublings, FAILURES_MAX), BACKOFF_MAX_NS);
}

int64_t ml_workqueue_add_rate_limited(struct ml_workqueue *queue, struct ml_str key,
                                      enum ml_priority priority, unsigned doublings)
{
    if (queue->shut_down)
        return -1;
    struct ml_key_queued *entry = queue_entry_get(queue, key);
    int64_t delay_ns = queue_backoff_ns(entry->failures + doublings);
    if (entry->failures == 0)
        entry->failing_since_ns = ml_clock_monotonic(queue->clock);
    if (entry->failures < FAILURES_MAX)
        entry->failures++;
    ml_workqueue_add_after(queue, key, priority, delay_ns);
    return delay_ns;
}

void ml_workqueue_await_server(struct ml_workqueue *queue, struct ml_str key)
{
    struct ml_key_queued *entry = queue_entry_find(queue, key);
    if (entry)
        entry->awaits_server = ml_heap_has(&entry->delay);
}

/* A key that the server fails although it answers others comes back after a growing delay. */
static void queue_reset_backoff(struct ml_workqueue *queue, struct ml_key_queued *entry,
                                int64_t now_ns)
{
    uint64_t due = (uint64_t)(now_ns + queue_backoff_ns(entry->resets));
    entry->awaits_server = false;
    if (entry->delay.key <= due)
        return;
    if (entry->resets < FAILURES_MAX)
        entry->resets++;
    entry->delay_priority = ML_PRIORITY_LOW;
    ml_heap_remove(&queue->delayed, &entry->delay);
    ml_heap_insert(&queue->delayed, &entry->delay, due);
}

void ml_workqueue_server_answers(struct ml_workqueue *queue)
{
    int64_t now_ns = ml_clock_monotonic(queue->clock);
    /* Works on a copy: a new due time reorders the heap. */
    size_t count = queue->delayed.len, bytes = count * sizeof(struct ml_heap_node *);
    if (count == 0)
        return;
    ML_AUTO_FREE struct ml_heap_node **nodes = ml_alloc(bytes);
    memcpy(nodes, queue->delayed.nodes, bytes);
    for (size_t i = 0; i < count; i++) {
        struct ml_key_queued *entry = ml_container_of(nodes[i], struct ml_key_queued, delay);
        if (entry->awaits_server)
            queue_reset_backoff(queue, entry, now_ns);
    }
    queue_arm_timer(queue);
}

void ml_workqueue_forget(struct ml_workqueue *queue, struct ml_str key)
{
    struct ml_key_queued *entry = queue_entry_find(queue, key);
    if (!entry)
        return;
    entry->failures = entry->resets = 0;
    queue_entry_settle(entry);
}

void ml_workqueue_cancel_after(struct ml_workqueue *queue, struct ml_str key)
{
    struct ml_key_queued *entry = queue_entry_find(queue, key);
    if (!entry || !ml_heap_has(&entry->delay))
        return;
    bool was_next = ml_heap_top(&queue->delayed) == &entry->delay;
    ml_heap_remove(&queue->delayed, &entry->delay);
    entry->awaits_server = false;
    if (was_next)
        queue_arm_timer(queue);
    queue_entry_settle(entry);
}

void ml_workqueue_remove(struct ml_workqueue *queue, struct ml_str key)
{
    struct ml_key_queued *entry = queue_entry_find(queue, key);
    if (!entry)
        return;
    if (entry->dirty && !entry->processing)
        queue_class_remove(queue, entry);
    entry->dirty = false;
    entry->failures = entry->resets = 0;
    queue_entry_settle(entry);
    ml_workqueue_cancel_after(queue, key);
}

/* ---- handing out ---- */

/* The first of the highest class, down to `least`. */
static struct ml_key_queued *queue_next_ready(const struct ml_workqueue *queue,
                                              enum ml_priority least)
{
    for (int i = ML_PRIORITY_COUNT - 1; i >= (int)least; i--)
        if (queue->ready[i].len > 0)
            return ml_container_of(queue->ready[i].keys.next, struct ml_key_queued, node);
    return NULL;
}

bool ml_workqueue_get(struct ml_workqueue *queue, enum ml_priority least, struct ml_str *out_key,
                      enum ml_priority *out_priority)
{
    struct ml_key_queued *entry = queue_next_ready(queue, least);
    if (!entry)
        return false;
    int64_t now = ml_clock_monotonic(queue->clock);
    ml_assert(entry->dirty && !entry->processing);
    if (queue->metrics.queue_duration)
        ml_metric_observe(queue->metrics.queue_duration, queue_seconds(now - entry->since_ns));
    queue_class_remove(queue, entry);
    entry->dirty = false;
    entry->processing = true;
    entry->since_ns = now;
    ml_list_push(&queue->out, &entry->node);
    queue->out_len++;
    *out_key = ml_key_str(entry->key);
    *out_priority = entry->priority;
    return true;
}

void ml_workqueue_done(struct ml_workqueue *queue, struct ml_str key)
{
    struct ml_key_queued *entry = queue_entry_find(queue, key);
    ml_assert(entry && entry->processing);
    if (queue->metrics.work_duration)
        ml_metric_observe(queue->metrics.work_duration,
                          queue_seconds(ml_clock_monotonic(queue->clock) - entry->since_ns));
    entry->processing = false;
    ml_list_remove(&entry->node);
    queue->out_len--;
    if (entry->dirty && !queue->shut_down)
        queue_push_new(queue, entry);
    else
        entry->dirty = false;
    queue_entry_settle(entry);
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

size_t ml_workqueue_delayed(const struct ml_workqueue *queue)
{
    return queue->delayed.len;
}

int64_t ml_workqueue_failing_since(const struct ml_workqueue *queue, struct ml_str key)
{
    const struct ml_key_queued *entry = queue_entry_find(queue, key);
    return entry && entry->failures > 0 ? entry->failing_since_ns : INT64_MAX;
}

int64_t ml_workqueue_next(const struct ml_workqueue *queue, unsigned failures_max)
{
    int64_t next = INT64_MAX;
    if (ml_workqueue_len(queue) > 0 || ml_workqueue_processing(queue) > 0)
        return 0;
    for (size_t i = 0; i < queue->delayed.len; i++) {
        struct ml_heap_node *node = queue->delayed.nodes[i];
        if (ml_container_of(node, struct ml_key_queued, delay)->failures < failures_max)
            next = ML_MIN(next, (int64_t)node->key);
    }
    return next;
}

struct ml_workqueue_place ml_workqueue_find(const struct ml_workqueue *queue, struct ml_str key)
{
    const struct ml_key_queued *entry = queue_entry_find(queue, key);
    struct ml_workqueue_place place = {.where = ML_KEY_IDLE};
    if (!entry)
        return place;
    place.failures = entry->failures;
    place.at_ns = entry->since_ns;
    if (entry->processing) {
        place.where = ML_KEY_OUT;
    } else if (entry->dirty) {
        place.where = ML_KEY_READY;
    } else if (ml_heap_has(&entry->delay)) {
        place.where = ML_KEY_DELAYED;
        place.at_ns = (int64_t)entry->delay.key;
        place.awaits_server = entry->awaits_server;
    }
    return place;
}

static bool queue_entry_fails(const struct ml_key_queued *entry)
{
    return entry->failures > 0 && (entry->dirty || entry->processing || ml_heap_has(&entry->delay));
}

struct ml_workqueue_failing ml_workqueue_failing(const struct ml_workqueue *queue,
                                                 struct ml_str preferred)
{
    struct ml_workqueue_failing failing = {.count = 0};
    ml_keys_each(queue->keys, record)
    {
        const struct ml_key_queued *entry = record->queued;
        if (!entry || !queue_entry_fails(entry))
            continue;
        struct ml_str key = ml_key_str(entry->key);
        bool is_first = !ml_str_eq(failing.key, preferred) && ml_str_cmp(key, failing.key) < 0;
        if (failing.count++ == 0 || is_first || ml_str_eq(key, preferred)) {
            failing.key = key;
            failing.failures = entry->failures;
        }
    }
    return failing;
}

/* ---- metrics ---- */

static const double duration_buckets[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3,
                                          1e-2, 1e-1, 1,    10,   100,  1000};

static struct ml_metric *queue_histogram(struct ml_metrics *metrics, const char *family,
                                         const char *help, const char *name)
{
    return ml_metric_with(ml_metrics_histogram(metrics, family, help,
                                               ml_metric_labels("name", "controller"),
                                               duration_buckets, ML_COUNT(duration_buckets)),
                          ml_metric_labels(name, name));
}

static void queue_metrics_init(struct ml_workqueue_metrics *self, struct ml_metrics *metrics,
                               const char *name)
{
    const char *const *labels = ml_metric_labels("name", "controller");
    const char *const *own = ml_metric_labels(name, name);
    self->adds = ml_metric_with(
        ml_metrics_counter(metrics, "workqueue_adds_total", "Keys added.", labels), own);
    self->retries = ml_metric_with(ml_metrics_counter(metrics, "workqueue_retries_total",
                                                      "Keys added with a delay or after a failure.",
                                                      labels),
                                   own);
    struct ml_metric_family *depth = ml_metrics_gauge(
        metrics, "workqueue_depth", "Keys that wait for their turn.",
        ml_metric_labels("name", "controller", "priority"));
    self->depth[ML_PRIORITY_LOW] = ml_metric_with(depth, ml_metric_labels(name, name, "-100"));
    self->depth[ML_PRIORITY_NORMAL] = ml_metric_with(depth, ml_metric_labels(name, name, "0"));
    self->queue_duration = queue_histogram(metrics, "workqueue_queue_duration_seconds",
                                           "How long a key waited for its turn.", name);
    self->work_duration = queue_histogram(metrics, "workqueue_work_duration_seconds",
                                          "How long a key was worked on.", name);
    self->unfinished = ml_metric_with(ml_metrics_gauge(metrics, "workqueue_unfinished_work_seconds",
                                                       "Work under way, summed up.", labels),
                                      own);
    self->longest_running = ml_metric_with(
        ml_metrics_gauge(metrics, "workqueue_longest_running_processor_seconds",
                         "The oldest work under way.", labels),
        own);
}

static void queue_collect_metrics(void *context)
{
    struct ml_workqueue *queue = context;
    int64_t now = ml_clock_monotonic(queue->clock);
    int64_t sum = 0, longest = 0;
    ml_list_each (node, &queue->out) {
        int64_t age = now - ml_container_of(node, struct ml_key_queued, node)->since_ns;
        sum += age;
        longest = ML_MAX(longest, age);
    }
    for (size_t i = 0; i < ML_PRIORITY_COUNT; i++)
        ml_metric_set(queue->metrics.depth[i], (double)queue->ready[i].len);
    ml_metric_set(queue->metrics.unfinished, queue_seconds(sum));
    ml_metric_set(queue->metrics.longest_running, queue_seconds(longest));
}

/* ---- life ---- */

struct ml_workqueue *ml_workqueue_new(const struct ml_workqueue_opts *opts)
{
    struct ml_workqueue *queue = ml_new(struct ml_workqueue);
    queue->loop = opts->loop;
    queue->keys = opts->keys;
    queue->clock = ml_loop_clock(opts->loop);
    queue->on_ready = opts->ready;
    for (size_t i = 0; i < ML_PRIORITY_COUNT; i++)
        ml_list_init(&queue->ready[i].keys);
    ml_list_init(&queue->out);
    ml_timer_init(&queue->timer, queue->loop, queue_on_due, queue);
    if (opts->metrics) {
        queue_metrics_init(&queue->metrics, opts->metrics, opts->name);
        queue->collector = (struct ml_metrics_collector){.collect = queue_collect_metrics,
                                                         .context = queue};
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
    ml_task_cancel(queue->on_ready);
    ml_keys_each(queue->keys, key) if (key->queued) queue_entry_free(key->queued);
    ml_heap_fini(&queue->delayed);
    free(queue);
}
