/* L2 net. The one event loop: timers on our clock interface, deferred tasks, signals, and the
 * libevent base that the HTTP client and servers use. One thread; nothing here blocks
 * except ml_loop_run. */
#pragma once

#include "base/clock.h"
#include "base/heap.h"
#include "base/list.h"

struct event_base;
struct ml_loop;

struct ml_loop *ml_loop_new(struct ml_clock *clock);
void ml_loop_free(struct ml_loop *loop); /* no timer or task may still be pending */

/* Serves events until ml_loop_stop. */
void ml_loop_run(struct ml_loop *loop);
void ml_loop_stop(struct ml_loop *loop);

/* Runs due tasks and timers, tasks first, until none is due, and returns without waiting.
 * With a fake clock: advance it, then poll. */
void ml_loop_poll(struct ml_loop *loop);
/* The same for at most `rounds_max` rounds of tasks and timers. False when something is still due:
 * on a clock that stands still, a task or timer then starts itself for ever. */
bool ml_loop_poll_rounds(struct ml_loop *loop, size_t rounds_max);
/* When the loop has work next: monotonic ns of its first timer, 0 when a task waits, INT64_MAX for
 * never. Between two polls a fake clock may advance to this time. */
int64_t ml_loop_next(struct ml_loop *loop);

struct ml_clock *ml_loop_clock(struct ml_loop *loop);
struct event_base *ml_loop_base(struct ml_loop *loop);

/* A timer lives in its user's struct; init once, start as often as needed. */
struct ml_timer {
    struct ml_loop *loop;
    void (*fire)(void *context);
    void *context;
    struct ml_heap_node node; /* private; keyed by due time, monotonic ns */
};

void ml_timer_init(struct ml_timer *timer, struct ml_loop *loop, void (*fire)(void *context),
                   void *context);
/* Fires once after `delay_ns` (below 0 counts as 0), never inside this call. A start on a
 * running timer replaces its due time. */
void ml_timer_start(struct ml_timer *timer, int64_t delay_ns);
void ml_timer_stop(
    struct ml_timer *timer); /* safe when not running; fire() is not called any more */
bool ml_timer_active(const struct ml_timer *timer);

/* A task runs once, soon, from the loop and in the order of deferral: the way to leave a
 * callback's stack. Deferring a waiting task again does nothing. */
struct ml_task {
    void (*run)(void *context);
    void *context;
    struct ml_list node; /* private */
};

void ml_task_init(struct ml_task *task, void (*run)(void *context), void *context);
void ml_task_defer(struct ml_task *task, struct ml_loop *loop);
void ml_task_cancel(struct ml_task *task);

/* Calls `fire` from the loop when the process gets `signo`; NULL removes the handler. */
void ml_loop_on_signal(struct ml_loop *loop, int signo, void (*fire)(void *context, int signo),
                       void *context);

/* Calls `fire` from the loop when `fd` is readable; the caller keeps the descriptor. */
struct ml_loop_watch;
struct ml_loop_watch *ml_loop_watch_fd(struct ml_loop *loop, int fd, void (*fire)(void *context),
                                       void *context);
void ml_loop_watch_free(struct ml_loop_watch *watch);
