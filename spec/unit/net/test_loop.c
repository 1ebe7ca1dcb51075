#include "unit.h"

#include "net/loop.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

struct fixture {
    struct ml_clock_fake fake;
    struct ml_loop *loop;
};

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    ml_clock_fake_init(&f->fake, 0);
    f->loop = ml_loop_new(&f->fake.clock);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_loop_free(f->loop);
    free(f);
    return 0;
}

/* Writes its name to a shared trace when it fires, then does one thing to `other`. */
struct probe {
    struct ml_timer timer;
    struct ml_task task;
    char name;
    char *trace;
    enum { NOTHING, START_OTHER, STOP_OTHER, DEFER_OTHER, CANCEL_OTHER } then;
    struct probe *other;
};

static void probe_fire(void *context)
{
    struct probe *probe = context;
    char text[2] = {probe->name};
    strcat(probe->trace, text);
    switch (probe->then) {
    case NOTHING:
        break;
    case START_OTHER:
        probe->then = NOTHING;
        ml_timer_start(&probe->other->timer, 0);
        break;
    case STOP_OTHER:
        ml_timer_stop(&probe->other->timer);
        break;
    case DEFER_OTHER:
        probe->then = NOTHING;
        ml_task_defer(&probe->other->task, probe->timer.loop);
        break;
    case CANCEL_OTHER:
        ml_task_cancel(&probe->other->task);
        break;
    }
}

static void probes_init(struct fixture *f, struct probe *probes, size_t count, char *trace)
{
    for (size_t i = 0; i < count; i++) {
        probes[i] = (struct probe){.name = (char)('a' + i), .trace = trace};
        ml_timer_init(&probes[i].timer, f->loop, probe_fire, &probes[i]);
        ml_task_init(&probes[i].task, probe_fire, &probes[i]);
    }
}

static void test_loop_timers_fire_in_order_of_due_time(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[4];
    probes_init(f, p, 4, trace);
    ml_timer_start(&p[0].timer, 20);
    ml_timer_start(&p[1].timer, 10);
    ml_timer_start(&p[2].timer, 20);
    ml_timer_start(&p[3].timer, -5);
    assert_string_equal(trace, "");
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "d");
    ml_clock_fake_advance(&f->fake, 19);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "db");
    assert_true(ml_timer_active(&p[0].timer));
    ml_clock_fake_advance(&f->fake, 1);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "dbac");
    assert_false(ml_timer_active(&p[0].timer));
}

static void test_loop_restart_replaces_the_due_time(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[1];
    probes_init(f, p, 1, trace);
    ml_timer_start(&p[0].timer, 10);
    ml_timer_start(&p[0].timer, 30);
    ml_clock_fake_advance(&f->fake, 20);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "");
    ml_clock_fake_advance(&f->fake, 10);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "a");
}

static void test_loop_timer_stopped_in_its_own_round_does_not_fire(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[2];
    probes_init(f, p, 2, trace);
    p[0].then = STOP_OTHER;
    p[0].other = &p[1];
    ml_timer_start(&p[0].timer, 10);
    ml_timer_start(&p[1].timer, 10);
    ml_clock_fake_advance(&f->fake, 50);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "a");
    ml_timer_stop(&p[1].timer);
}

static void test_loop_timer_started_in_a_callback_fires_in_a_later_round(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[3];
    probes_init(f, p, 3, trace);
    p[0].then = START_OTHER;
    p[0].other = &p[2];
    ml_timer_start(&p[0].timer, 10);
    ml_timer_start(&p[2].timer, 11); /* due as well; restarting moves it behind b and the task */
    ml_timer_start(&p[1].timer, 12);
    p[1].then = DEFER_OTHER;
    p[1].other = &p[0];
    ml_clock_fake_advance(&f->fake, 12);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "abac");
}

static void test_loop_timer_restarting_itself_fires_once_per_period(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[1];
    probes_init(f, p, 1, trace);
    p[0].then = START_OTHER; /* once */
    p[0].other = &p[0];
    ml_timer_start(&p[0].timer, 10);
    ml_clock_fake_advance(&f->fake, 1000);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "aa");
}

static void test_loop_a_very_long_delay_does_not_wrap(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[1];
    probes_init(f, p, 1, trace);
    ml_clock_fake_advance(&f->fake, ML_NS_PER_S);
    ml_timer_start(&p[0].timer, INT64_MAX);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "");
    ml_timer_stop(&p[0].timer);
}

static void test_loop_tasks_run_in_order_before_timers_and_once(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[3];
    probes_init(f, p, 3, trace);
    ml_timer_start(&p[2].timer, 0);
    ml_task_defer(&p[1].task, f->loop);
    ml_task_defer(&p[0].task, f->loop);
    ml_task_defer(&p[1].task, f->loop);
    assert_string_equal(trace, "");
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "bac");
}

static void test_loop_task_canceled_by_an_earlier_one_does_not_run(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[3];
    probes_init(f, p, 3, trace);
    p[0].then = CANCEL_OTHER;
    p[0].other = &p[1];
    for (int i = 0; i < 3; i++)
        ml_task_defer(&p[i].task, f->loop);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "ac");
    ml_task_cancel(&p[1].task); /* safe when not waiting */
}

static void test_loop_task_deferred_by_a_task_runs_in_the_same_poll(void **state)
{
    struct fixture *f = *state;
    char trace[8] = "";
    struct probe p[3];
    probes_init(f, p, 3, trace);
    p[0].then = DEFER_OTHER;
    p[0].other = &p[2];
    ml_task_defer(&p[0].task, f->loop);
    ml_task_defer(&p[1].task, f->loop);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "abc");
}

/* The rest runs on the real clock and libevent. */
struct real {
    struct ml_loop *loop;
    struct ml_timer timer;
    struct ml_task task;
    struct ml_loop_watch *watch;
    int pipe[2];
    int count;
    int signo;
};

static void real_stop(void *context)
{
    struct real *real = context;
    real->count++;
    ml_loop_stop(real->loop);
}

static void real_defer_again(void *context)
{
    struct real *real = context;
    real->count++;
    ml_task_defer(&real->task, real->loop);
}

static void real_init(struct real *real)
{
    *real = (struct real){.loop = ml_loop_new(ml_clock_real())};
    assert_int_equal(pipe(real->pipe), 0);
}

static void real_fini(struct real *real)
{
    ml_loop_free(real->loop);
    close(real->pipe[0]);
    close(real->pipe[1]);
}

struct slow_task {
    struct ml_task task;
    struct fixture *fixture;
    char *trace;
};

static void slow_run(void *context)
{
    struct slow_task *slow = context;
    ml_clock_fake_advance(&slow->fixture->fake, 4 * ML_NS_PER_MS);
    strcat(slow->trace, "s");
}

static void trace_timer(void *context)
{
    strcat(context, "T");
}

static void test_loop_burst_of_slow_tasks_lets_timers_through(void **state)
{
    struct fixture *f = *state;
    char trace[16] = "";
    struct slow_task slow[5];
    struct ml_timer timer;
    for (size_t i = 0; i < ML_COUNT(slow); i++) {
        slow[i] = (struct slow_task){.fixture = f, .trace = trace};
        ml_task_init(&slow[i].task, slow_run, &slow[i]);
        ml_task_defer(&slow[i].task, f->loop);
    }
    ml_timer_init(&timer, f->loop, trace_timer, trace);
    ml_timer_start(&timer, ML_NS_PER_MS);
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "sssTss");
}

static void trace_task(void *context)
{
    struct slow_task *task = context;
    strcat(task->trace, "T");
}

/* A task that the first of them defers stands for all that has its turn between two rounds. */
static void slow_fire(void *context)
{
    struct slow_task *slow = context;
    if (!*slow->trace)
        ml_task_defer(&slow->task, slow->fixture->loop);
    slow_run(slow);
}

static void test_loop_burst_of_slow_timers_ends_its_round(void **state)
{
    struct fixture *f = *state;
    char trace[16] = "";
    struct slow_task slow = {.fixture = f, .trace = trace};
    struct ml_timer timers[5];
    ml_task_init(&slow.task, trace_task, &slow);
    for (size_t i = 0; i < ML_COUNT(timers); i++) {
        ml_timer_init(&timers[i], f->loop, slow_fire, &slow);
        ml_timer_start(&timers[i], 0);
    }
    ml_loop_poll(f->loop);
    assert_string_equal(trace, "sssTss");
}

static void test_loop_run_waits_for_a_timer_and_not_longer(void **state)
{
    (void)state;
    struct real real;
    real_init(&real);
    ml_timer_init(&real.timer, real.loop, real_stop, &real);
    int64_t start = ml_clock_monotonic(ml_clock_real());
    ml_timer_start(&real.timer, 20 * ML_NS_PER_MS);
    ml_loop_run(real.loop);
    int64_t took = ml_clock_monotonic(ml_clock_real()) - start;
    assert_true(took >= 20 * ML_NS_PER_MS && took < 5 * ML_NS_PER_S);
    assert_int_equal(real.count, 1);
    real_fini(&real);
}

static void test_loop_run_returns_at_once_when_stopped_before(void **state)
{
    (void)state;
    struct real real;
    real_init(&real);
    ml_loop_stop(real.loop);
    ml_loop_run(real.loop);
    real_fini(&real);
}

static void test_loop_run_lets_timers_through_a_task_that_always_returns(void **state)
{
    (void)state;
    struct real real;
    real_init(&real);
    ml_timer_init(&real.timer, real.loop, real_stop, &real);
    ml_task_init(&real.task, real_defer_again, &real);
    ml_timer_start(&real.timer, 5 * ML_NS_PER_MS);
    ml_task_defer(&real.task, real.loop);
    ml_loop_run(real.loop);
    assert_true(real.count > 2);
    ml_task_cancel(&real.task);
    real_fini(&real);
}

static void real_readable(void *context)
{
    struct real *real = context;
    char byte;
    assert_int_equal(read(real->pipe[0], &byte, 1), 1);
    ml_loop_watch_free(real->watch); /* inside its own callback */
    ml_loop_stop(real->loop);
}

static void test_loop_watch_fires_when_readable_and_may_free_itself(void **state)
{
    (void)state;
    struct real real;
    real_init(&real);
    real.watch = ml_loop_watch_fd(real.loop, real.pipe[0], real_readable, &real);
    assert_int_equal(write(real.pipe[1], "x", 1), 1);
    ml_loop_run(real.loop);
    real_fini(&real);
}

static void real_signal(void *context, int signo)
{
    struct real *real = context;
    real->signo = signo;
    ml_loop_on_signal(real->loop, signo, NULL, NULL);
    ml_loop_stop(real->loop);
}

static void test_loop_signal_comes_from_the_loop_and_can_be_taken_away(void **state)
{
    (void)state;
    struct real real;
    real_init(&real);
    ml_loop_on_signal(real.loop, SIGUSR1, real_signal, &real);
    ml_loop_on_signal(real.loop, SIGUSR2, real_signal, &real); /* left to ml_loop_free */
    raise(SIGUSR1);
    assert_int_equal(real.signo, 0);
    ml_loop_run(real.loop);
    assert_int_equal(real.signo, SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
    real_fini(&real);
}

static void test_loop_ignores_broken_pipes(void **state)
{
    (void)state;
    struct real real;
    real_init(&real);
    close(real.pipe[0]);
    assert_int_equal(write(real.pipe[1], "x", 1), -1); /* and not killed */
    real.pipe[0] = dup(real.pipe[1]);
    real_fini(&real);
}

#define FAKE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void defer_again(void *context)
{
    struct probe *probe = context;
    ml_task_defer(&probe->task, probe->timer.loop);
}

static void test_loop_poll_rounds_gives_up_on_what_never_ends(void **state)
{
    struct fixture *f = *state;
    struct probe probe = {.timer.loop = f->loop};
    assert_true(ml_loop_poll_rounds(f->loop, 1));
    ml_task_init(&probe.task, defer_again, &probe);
    ml_task_defer(&probe.task, f->loop);
    assert_int_equal(0, ml_loop_next(f->loop));
    assert_false(ml_loop_poll_rounds(f->loop, 100));
    ml_task_cancel(&probe.task);
}

static void ignore(void *context)
{
    (void)context;
}

static void test_loop_next_is_the_first_timer(void **state)
{
    struct fixture *f = *state;
    struct ml_timer timer;
    assert_true(ml_loop_next(f->loop) == INT64_MAX);
    ml_timer_init(&timer, f->loop, ignore, NULL);
    ml_timer_start(&timer, 70);
    assert_int_equal(ml_clock_monotonic(&f->fake.clock) + 70, ml_loop_next(f->loop));
    ml_clock_fake_advance(&f->fake, 70);
    ml_loop_poll(f->loop);
    assert_true(ml_loop_next(f->loop) == INT64_MAX);
}

static void ignore_input(struct bufferevent *bev, void *context)
{
    (void)bev, (void)context;
}

/* LeakSanitizer tells, at the end of the program. */
static void test_loop_free_leaves_no_connection_that_waits_for_its_callback(void **state)
{
    struct ml_loop *loop = ml_loop_new(ml_clock_real());
    struct bufferevent *bev = bufferevent_socket_new(ml_loop_base(loop), -1, 0);
    (void)state;
    bufferevent_setcb(bev, ignore_input, NULL, NULL, NULL);
    bufferevent_trigger(bev, EV_READ, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
    bufferevent_free(bev);
    ml_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE(test_loop_timers_fire_in_order_of_due_time),
        FAKE(test_loop_restart_replaces_the_due_time),
        FAKE(test_loop_timer_stopped_in_its_own_round_does_not_fire),
        FAKE(test_loop_timer_started_in_a_callback_fires_in_a_later_round),
        FAKE(test_loop_timer_restarting_itself_fires_once_per_period),
        FAKE(test_loop_a_very_long_delay_does_not_wrap),
        FAKE(test_loop_tasks_run_in_order_before_timers_and_once),
        FAKE(test_loop_task_canceled_by_an_earlier_one_does_not_run),
        FAKE(test_loop_task_deferred_by_a_task_runs_in_the_same_poll),
        FAKE(test_loop_burst_of_slow_tasks_lets_timers_through),
        FAKE(test_loop_burst_of_slow_timers_ends_its_round),
        cmocka_unit_test(test_loop_run_waits_for_a_timer_and_not_longer),
        cmocka_unit_test(test_loop_run_returns_at_once_when_stopped_before),
        cmocka_unit_test(test_loop_run_lets_timers_through_a_task_that_always_returns),
        cmocka_unit_test(test_loop_watch_fires_when_readable_and_may_free_itself),
        cmocka_unit_test(test_loop_signal_comes_from_the_loop_and_can_be_taken_away),
        cmocka_unit_test(test_loop_ignores_broken_pipes),
        cmocka_unit_test(test_loop_free_leaves_no_connection_that_waits_for_its_callback),
        cmocka_unit_test_setup_teardown(test_loop_poll_rounds_gives_up_on_what_never_ends, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_loop_next_is_the_first_timer, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
