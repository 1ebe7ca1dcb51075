/* Between two pieces of work the loop calls the functions that ml_loop_on_signal was given. This
 * has its own handlers, which call those of the loop, and a timer for work that does not end. The
 * timer counts the CPU time of the process: on a machine with much else to do the loop has as much
 * as on any other. */
#include "cluster/host/dev_stop.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/base.h"

#define TICK_US     50000
#define TICKS_LUA   10 /* then Lua is interrupted */
#define TICKS_FORCE 18 /* then the process exits */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* A signal handler cannot be handed anything better. */
static struct {
    const struct ml_dev_stop *stop;
    pthread_t thread;
    struct sigaction loops[ML_COUNT(signals)]; /* handlers of the loop */
    volatile sig_atomic_t ticks;
    volatile sig_atomic_t is_ending; /* `end` runs */
} dev_stop;

static void set_ticks(suseconds_t every_us)
{
    const struct itimerval timer = {.it_interval.tv_usec = every_us, .it_value.tv_usec = every_us};
    setitimer(ITIMER_PROF, &timer, NULL);
}

static void end_in_lua(void *context)
{
    const struct ml_dev_stop *stop = context;
    dev_stop.is_ending = 1;
    stop->end(stop->context);
    _exit(0);
}

/* Only what a signal handler may do. */
static void on_tick(int signo)
{
    const struct ml_dev_stop *stop = dev_stop.stop;
    if (!stop)
        return;
    if (!pthread_equal(pthread_self(), dev_stop.thread)) {
        pthread_kill(dev_stop.thread, signo);
        return;
    }
    dev_stop.ticks++;
    if (dev_stop.ticks >= TICKS_FORCE) {
        if (stop->kubeconfig)
            unlink(stop->kubeconfig);
        _exit(0);
    }
    if (dev_stop.ticks >= TICKS_LUA && stop->lua && !dev_stop.is_ending)
        ml_server_lua_interrupt(stop->lua, end_in_lua, (void *)stop);
}

static void on_stop_signal(int signo)
{
    for (size_t i = 0; i < ML_COUNT(signals); i++) {
        if (signals[i] == signo && dev_stop.loops[i].sa_handler)
            dev_stop.loops[i].sa_handler(signo);
    }
    if (dev_stop.is_ending)
        return;
    dev_stop.ticks = 0;
    set_ticks(TICK_US);
}

void ml_dev_stop_watch(const struct ml_dev_stop *stop)
{
    struct sigaction action = {.sa_handler = on_stop_signal, .sa_flags = SA_RESTART};
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    dev_stop.stop = stop;
    dev_stop.thread = pthread_self();
    dev_stop.is_ending = 0;
    sigaction(SIGPROF, &tick, NULL);
    for (size_t i = 0; i < ML_COUNT(signals); i++)
        sigaction(signals[i], &action, &dev_stop.loops[i]);
}

void ml_dev_stop_heard(void)
{
    dev_stop.ticks = 0;
    if (dev_stop.stop && dev_stop.stop->lua)
        ml_server_lua_interrupt(dev_stop.stop->lua, NULL, NULL);
}

void ml_dev_stop_forget(void)
{
    if (!dev_stop.stop)
        return;
    set_ticks(0);
    ml_dev_stop_heard();
    for (size_t i = 0; i < ML_COUNT(signals); i++)
        sigaction(signals[i], &dev_stop.loops[i], NULL);
    dev_stop.stop = NULL;
}
