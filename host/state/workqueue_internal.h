/* L4 state. Inside of the work queue: workqueue.c hands keys out and takes them back,
 * workqueue_delay.c holds those that are due later. Private to these. */
#pragma once

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "state/workqueue.h"
#include "state/workqueue_metrics.h"

/* All that is known about a key; freed as soon as it says nothing. */
struct queue_entry {
    struct ml_heap_node delay; /* in `delayed` while a later addition is due */
    struct ml_list node;       /* in `ready` while queued, in `out` while processing */
    int64_t since_ns;          /* queued since, then handed out since */
    bool dirty;                /* needs work: in `ready`, unless it is processing */
    bool processing;           /* handed out, in `out`, and so never in `ready` */
    uint8_t failures;          /* for the backoff */
    uint8_t priority;          /* while dirty */
    uint8_t delay_priority;    /* while delayed */
    uint16_t key_len;
    char key[];
};

/* Dirty and not processing, in order of addition. */
struct queue_class {
    struct ml_list keys;
    size_t len;
};

struct ml_workqueue {
    struct ml_loop *loop;
    struct ml_clock *clock;
    void (*on_ready)(void *context);
    void *context;
    struct ml_map entries; /* key -> queue_entry */
    struct queue_class ready[ML_PRIORITY_COUNT];
    struct ml_list out;     /* processing, in order of handing out */
    struct ml_heap delayed; /* by due time, monotonic ns */
    size_t out_len;
    struct ml_timer timer; /* for the top of `delayed` */
    struct ml_task tell;   /* on_ready, off the adder's stack */
    bool shut_down;
    struct ml_workqueue_metrics metrics;
    struct ml_metrics_collector collector;
};

/* workqueue.c */
struct queue_entry *queue_entry_get(struct ml_workqueue *queue, struct ml_str key);
/* Frees the entry when nothing is left to know about its key. */
void queue_entry_settle(struct ml_workqueue *queue, struct queue_entry *entry);
void queue_mark_dirty(struct ml_workqueue *queue, struct queue_entry *entry,
                      enum ml_priority priority);

/* workqueue_delay.c */
void queue_delay_init(struct ml_workqueue *queue);
void queue_delay_drop_all(struct ml_workqueue *queue);

static inline void queue_count(struct ml_metric *metric)
{
    if (metric)
        ml_metric_add(metric, 1);
}
