/* L4 state. Keys waiting to be reconciled (client-go util/workqueue, controller-runtime
 * pkg/controller/priorityqueue). A key is never handed out twice at a time; if it is
 * added while it is out, it is queued again after done(). Delayed additions keep the earliest due
 * time. Failures back off per key: 5 ms doubling to 1000 s.
 *
 * Keys of higher priority are handed out first, and within one priority in order of addition. An
 * addition of higher priority moves a waiting key to the end of that class; a key's priority never
 * falls. As upstream, there is no ageing: keys of low priority wait as long as there is a higher
 * one. */
#pragma once

#include "base/metrics.h"
#include "net/loop.h"
#include "state/key.h"

struct ml_workqueue;

/* Ascending. Metrics show upstream's numbers. */
enum ml_priority {
    ML_PRIORITY_LOW,    /* -100: every object is enqueued: a start, a new script */
    ML_PRIORITY_NORMAL, /* 0: an object changed, or a delay has passed */
};

#define ML_PRIORITY_COUNT 2

struct ml_workqueue_opts {
    struct ml_loop *loop;
    struct ml_keys *keys;       /* outlives the queue, which keeps a part of each record */
    struct ml_metrics *metrics; /* workqueue_* with the label name; NULL: none */
    const char *name;
    /* The owner's: deferred when a key is added to a priority that had none ready, and canceled
     * with the queue. */
    struct ml_task *ready;
};

struct ml_workqueue *ml_workqueue_new(const struct ml_workqueue_opts *opts);
void ml_workqueue_free(struct ml_workqueue *queue);

void ml_workqueue_add(struct ml_workqueue *queue, struct ml_str key,
                      enum ml_priority priority); /* copies key */
/* A delay of 0 or less is the same as add. An add in between does not cancel it. */
void ml_workqueue_add_after(struct ml_workqueue *queue, struct ml_str key,
                            enum ml_priority priority, int64_t delay_ns);
/* After the backoff of the key, doubled so many times more. Returns it in ns; -1: the queue is shut
 * down. */
int64_t ml_workqueue_add_rate_limited(struct ml_workqueue *queue, struct ml_str key,
                                      enum ml_priority priority, unsigned doublings);
/* The key backs off because the server did not answer: when it does, the key is due. */
void ml_workqueue_await_server(struct ml_workqueue *queue, struct ml_str key);
/* The server answers: keys that await it are due after 5 ms, at low priority, as after a start, so
 * that they do not come all at once. A key that fails in this way again and again is due after
 * 10, 20 ms and so on, until it is forgotten. */
void ml_workqueue_server_answers(struct ml_workqueue *queue);
void ml_workqueue_forget(struct ml_workqueue *queue, struct ml_str key); /* resets the backoff */
/* When the key backed off first since it was forgotten, in ns of the monotonic clock; INT64_MAX: it
 * does not back off. */
int64_t ml_workqueue_failing_since(const struct ml_workqueue *queue, struct ml_str key);
/* Cancels a delayed addition: the object has a newer state, or was deleted. */
void ml_workqueue_cancel_after(struct ml_workqueue *queue, struct ml_str key);
/* The object of the key is gone: drops the key, its delay and its backoff. A key that is out may
 * still be done(). */
void ml_workqueue_remove(struct ml_workqueue *queue, struct ml_str key);

/* Hands out the next key that has at least that priority, valid until its done(). False, with
 * nothing written, when none is ready. */
ML_NODISCARD bool ml_workqueue_get(struct ml_workqueue *queue, enum ml_priority least,
                                   struct ml_str *out_key, enum ml_priority *out_priority);
void ml_workqueue_done(struct ml_workqueue *queue, struct ml_str key);

/* Ignores further additions and drops delayed ones; keys that are out may still be done(). */
void ml_workqueue_shut_down(struct ml_workqueue *queue);

size_t ml_workqueue_len(const struct ml_workqueue *queue);        /* ready */
size_t ml_workqueue_processing(const struct ml_workqueue *queue); /* out */
size_t ml_workqueue_delayed(const struct ml_workqueue *queue);

/* When the next key is due, in ns of the monotonic clock: 0 when one is ready or out, INT64_MAX
 * when none is queued. Keys that back off after `failures_max` failures in a row do not count. */
int64_t ml_workqueue_next(const struct ml_workqueue *queue, unsigned failures_max);

/* Where a key stands, for a person who asks. */
struct ml_workqueue_place {
    enum { ML_KEY_IDLE, ML_KEY_READY, ML_KEY_OUT, ML_KEY_DELAYED } where;
    int64_t at_ns;      /* monotonic: READY and OUT since then, DELAYED until then */
    unsigned failures;  /* in a row; 20 stands for more, too */
    bool awaits_server; /* DELAYED: or until the server answers */
};

struct ml_workqueue_place ml_workqueue_find(const struct ml_workqueue *queue, struct ml_str key);

/* The keys that failed when they were tried last and are to be tried again: how many there are, and
 * one of them: `preferred` if it is such a key, else the first by name. The slice is the queue's,
 * until it changes. */
struct ml_workqueue_failing {
    size_t count;
    struct ml_str key;
    unsigned failures; /* of `key`, in a row; 20 stands for more, too */
};

struct ml_workqueue_failing ml_workqueue_failing(const struct ml_workqueue *queue,
                                                 struct ml_str preferred);
