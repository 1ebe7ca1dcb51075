/* Everything above hangs on this loop; operator/moonloop.c and cluster/host/dev.c run it.
 *
 * Timers and tasks live in our own heap and list, so that a fake clock moves them without
 * libevent; one libevent timer (`wake`) brings the real loop back for the earliest of them. */
#include "net/loop.h"

#include <event2/event.h>
#include <signal.h>

/* libevent counts on CLOCK_MONOTONIC, which stands still in suspend, our clock does not. With
 * no sleep longer than this, timers are at most this late after a resume. */
#define WAKE_MAX_NS (30 * ML_NS_PER_S)

/* A burst of tasks lets descriptors and timers have their turn after this long. */
#define ROUND_MAX_NS (10 * ML_NS_PER_MS)

struct ml_loop {
    struct ml_clock *clock;
    struct event_base *base;
    struct event *wake;
    uint64_t wake_due; /* when `wake` is armed for; UINT64_MAX: not armed */
    struct ml_heap timers;
    struct ml_list tasks;
    struct ml_list signals;
    bool in_round;
    bool stopping;
};

struct loop_signal {
    struct ml_list node;
    struct event *event;
    int signo;
    void (*fire)(void *context, int signo);
    void *context;
};

struct ml_loop_watch {
    struct event *event;
    void (*fire)(void *context);
    void *context;
};

static uint64_t loop_now(struct ml_loop *loop)
{
    return (uint64_t)ml_clock_monotonic(loop->clock);
}

/* When the loop is next needed; UINT64_MAX: not at all. */
static uint64_t loop_next_due(struct ml_loop *loop)
{
    if (!ml_list_empty(&loop->tasks))
        return 0;
    struct ml_heap_node *top = ml_heap_top(&loop->timers);
    return top ? top->key : UINT64_MAX;
}

/* Arms `wake` unless it comes early enough already. A stopped timer leaves it armed: one idle
 * round costs less than disarming for each of thousands of deadlines that are never reached. */
static void loop_arm(struct ml_loop *loop)
{
    uint64_t due = loop_next_due(loop);
    if (loop->in_round || due >= loop->wake_due)
        return;
    uint64_t now = loop_now(loop);
    uint64_t delay_ns = due > now ? ML_MIN(due - now, (uint64_t)WAKE_MAX_NS) : 0;
    uint64_t delay_us = (delay_ns + 999) / 1000; /* up: waking early would spin */
    struct timeval delay = {.tv_sec = (time_t)(delay_us / 1000000),
                            .tv_usec = (suseconds_t)(delay_us % 1000000)};
    loop->wake_due = due;
    event_add(loop->wake, &delay);
}

static void loop_run_tasks(struct ml_loop *loop)
{
    if (ml_list_empty(&loop->tasks))
        return;
    /* Moved to a list of their own, so that what they defer waits for the next round. */
    struct ml_list round;
    ml_list_push(&loop->tasks, &round);
    ml_list_remove(&loop->tasks);
    uint64_t end = loop_now(loop) + ROUND_MAX_NS;
    for (struct ml_list *node; loop_now(loop) < end && (node = ml_list_shift(&round));) {
        struct ml_task *task = ml_container_of(node, struct ml_task, node);
        task->run(task->context);
    }
    /* Out of time: the rest comes first in the next round. */
    while (!ml_list_empty(&round)) {
        struct ml_list *last = round.prev;
        ml_list_remove(last);
        ml_list_push(loop->tasks.next, last);
    }
}

/* A timer started by a callback is due at `now` or later and has a higher sequence than all
 * that were there before, so the heap's order puts it behind them: the first such ends the
 * round, and nothing has to be collected that a callback might stop. Out of time, the rest is due
 * in the next round: descriptors get their turn in between, however many timers are due at once. */
static void loop_run_timers(struct ml_loop *loop)
{
    uint64_t now = loop_now(loop), end = now + ROUND_MAX_NS;
    uint64_t first_new = loop->timers.sequence;
    for (bool any = false; !any || loop_now(loop) < end; any = true) {
        struct ml_heap_node *top = ml_heap_top(&loop->timers);
        if (!top || top->key > now || top->sequence >= first_new)
            return;
        ml_heap_remove(&loop->timers, top);
        struct ml_timer *timer = ml_container_of(top, struct ml_timer, node);
        timer->fire(timer->context);
    }
}

static void loop_run_round(struct ml_loop *loop)
{
    ml_assert(!loop->in_round);
    loop->in_round = true;
    loop_run_tasks(loop);
    loop_run_timers(loop);
    loop->in_round = false;
}

static void on_loop_wake(evutil_socket_t fd, short what, void *context)
{
    struct ml_loop *loop = context;
    (void)fd, (void)what;
    loop->wake_due = UINT64_MAX;
    loop_run_round(loop);
    loop_arm(loop); /* even for work due now: descriptors get their turn in between */
}

struct ml_loop *ml_loop_new(struct ml_clock *clock)
{
    struct ml_loop *loop = ml_new(struct ml_loop);
    struct event_config *config = event_config_new();
    ml_assert(config != NULL);
    /* A delay counts from now, not from when the running round of callbacks began. */
    event_config_set_flag(config, EVENT_BASE_FLAG_NO_CACHE_TIME);
    loop->clock = clock;
    loop->base = event_base_new_with_config(config);
    ml_assert(loop->base != NULL);
    event_config_free(config);
    loop->wake = event_new(loop->base, -1, 0, on_loop_wake, loop);
    ml_assert(loop->wake != NULL);
    loop->wake_due = UINT64_MAX;
    ml_list_init(&loop->tasks);
    ml_list_init(&loop->signals);
    signal(SIGPIPE, SIG_IGN); /* a closed peer is an error of that connection, not our end */
    return loop;
}

static void loop_signal_free(struct loop_signal *entry)
{
    ml_list_remove(&entry->node);
    event_free(entry->event);
    free(entry);
}

void ml_loop_free(struct ml_loop *loop)
{
    if (!loop)
        return;
    ml_assert(ml_heap_top(&loop->timers) == NULL);
    ml_assert(ml_list_empty(&loop->tasks));
    ml_list_each (node, &loop->signals)
        loop_signal_free(ml_container_of(node, struct loop_signal, node));
    event_free(loop->wake);
    /* A callback that libevent still owes holds its connection, which would be lost with it. */
    event_base_loop(loop->base, EVLOOP_NONBLOCK);
    event_base_free(loop->base);
    ml_heap_fini(&loop->timers);
    free(loop);
}

void ml_loop_run(struct ml_loop *loop)
{
    while (!loop->stopping && event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY) == 0)
        ;
    loop->stopping = false;
}

void ml_loop_stop(struct ml_loop *loop)
{
    loop->stopping = true; /* libevent forgets a break that came before its loop began */
    event_base_loopbreak(loop->base);
}

void ml_loop_poll(struct ml_loop *loop)
{
    (void)ml_loop_poll_rounds(loop, SIZE_MAX);
}

bool ml_loop_poll_rounds(struct ml_loop *loop, size_t rounds_max)
{
    size_t rounds = 0;
    for (; loop_next_due(loop) <= loop_now(loop) && rounds < rounds_max; rounds++)
        loop_run_round(loop);
    loop_arm(loop);
    return loop_next_due(loop) > loop_now(loop);
}

int64_t ml_loop_next(struct ml_loop *loop)
{
    uint64_t due = loop_next_due(loop);
    return due > INT64_MAX ? INT64_MAX : (int64_t)due;
}

struct ml_clock *ml_loop_clock(struct ml_loop *loop)
{
    return loop->clock;
}

struct event_base *ml_loop_base(struct ml_loop *loop)
{
    return loop->base;
}

void ml_timer_init(struct ml_timer *timer, struct ml_loop *loop, void (*fire)(void *context),
                   void *context)
{
    *timer = (struct ml_timer){.loop = loop, .fire = fire, .context = context};
}

void ml_timer_start(struct ml_timer *timer, int64_t delay_ns)
{
    struct ml_loop *loop = timer->loop;
    uint64_t delay = delay_ns > 0 ? (uint64_t)delay_ns : 0;
    ml_heap_remove(&loop->timers, &timer->node);
    ml_heap_insert(&loop->timers, &timer->node, loop_now(loop) + delay);
    loop_arm(loop);
}

void ml_timer_stop(struct ml_timer *timer)
{
    if (ml_timer_active(timer))
        ml_heap_remove(&timer->loop->timers, &timer->node);
}

bool ml_timer_active(const struct ml_timer *timer)
{
    return ml_heap_has(&timer->node);
}

void ml_task_init(struct ml_task *task, void (*run)(void *context), void *context)
{
    *task = (struct ml_task){.run = run, .context = context};
    ml_list_init(&task->node);
}

void ml_task_defer(struct ml_task *task, struct ml_loop *loop)
{
    if (!ml_list_empty(&task->node))
        return;
    ml_list_push(&loop->tasks, &task->node);
    loop_arm(loop);
}

void ml_task_cancel(struct ml_task *task)
{
    ml_list_remove(&task->node);
}

static void on_loop_signal(evutil_socket_t signo, short what, void *context)
{
    struct loop_signal *entry = context;
    (void)what;
    entry->fire(entry->context, (int)signo);
}

void ml_loop_on_signal(struct ml_loop *loop, int signo, void (*fire)(void *context, int signo),
                       void *context)
{
    ml_list_each_entry (struct loop_signal, entry, &loop->signals) {
        if (entry->signo == signo)
            loop_signal_free(entry);
    }
    if (!fire)
        return;
    struct loop_signal *entry = ml_new(struct loop_signal);
    entry->signo = signo;
    entry->fire = fire;
    entry->context = context;
    entry->event = evsignal_new(loop->base, signo, on_loop_signal, entry);
    ml_assert(entry->event != NULL);
    evsignal_add(entry->event, NULL);
    ml_list_push(&loop->signals, &entry->node);
}

static void on_fd_readable(evutil_socket_t fd, short what, void *context)
{
    struct ml_loop_watch *watch = context;
    (void)fd, (void)what;
    watch->fire(watch->context); /* may free the watch */
}

struct ml_loop_watch *ml_loop_watch_fd(struct ml_loop *loop, int fd, void (*fire)(void *context),
                                       void *context)
{
    struct ml_loop_watch *watch = ml_new(struct ml_loop_watch);
    watch->fire = fire;
    watch->context = context;
    watch->event = event_new(loop->base, fd, EV_READ | EV_PERSIST, on_fd_readable, watch);
    ml_assert(watch->event != NULL);
    event_add(watch->event, NULL);
    return watch;
}

void ml_loop_watch_free(struct ml_loop_watch *watch)
{
    if (!watch)
        return;
    event_free(watch->event);
    free(watch);
}
