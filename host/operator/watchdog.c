/* A thread that counts missed ticks of the event loop. moonloop.c starts it last, before the loop
 * runs. */
#include "operator/watchdog.h"

#include "codec/rfc3339.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_NS        ML_NS_PER_S
#define TICKS_MAX      10
#define STACK_BYTES    ((size_t)256 * 1024) /* touched as far as it is used */
#define LINE_MAX_BYTES 256
#define REQUEST_MAX    4096 /* bytes; what a probe sends is a tenth of that */
#define REQUEST_MS     500  /* for all of a request, and again for the client to close */

#define BLOCKED "the event loop is blocked"
#define RUNS    "the event loop runs again"
#define REASON  "the event loop is blocked; see the log\n"

struct ml_watchdog {
    /* Used by the loop. */
    struct ml_timer beat;
    pthread_t thread;

    /* Used by both threads. */
    atomic_uint beats;
    int stop; /* an eventfd; readable: the thread is to end */

    /* Set before the thread starts, and used by it only from then on. */
    int log_fd;
    enum ml_log_format log_format;
    int listener; /* a descriptor of its own, or -1 */
    int tick_ms;
    int ticks_max;
    int64_t tick_ns;
};

/* ---- the thread ---- */

/* Formats the line itself, as ml_log allocates. */
static void watchdog_log(const struct ml_watchdog *self, const char *level, const char *message,
                         int ticks)
{
    char line[LINE_MAX_BYTES], when[ML_RFC3339_MICRO_LEN + 1];
    const int seconds = (int)(ticks * self->tick_ns / ML_NS_PER_S);
    ml_rfc3339_format_micro(ml_clock_wall(ml_clock_real()), when);
    int len = self->log_format == ML_LOG_JSON
                  ? snprintf(line, sizeof line,
                             "{\"level\":\"%s\",\"ts\":\"%s\",\"logger\":\"watchdog\","
                             "\"msg\":\"%s\",\"seconds\":%d}\n",
                             level, when, message, seconds)
                  : snprintf(line, sizeof line, "%s %-5s watchdog: %s seconds=%d\n", when, level,
                             message, seconds);
    struct pollfd room = {.fd = self->log_fd, .events = POLLOUT};
    if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT)) {
        ssize_t taken = write(self->log_fd, line, (size_t)len);
        (void)taken; /* a full log loses the line, as everywhere */
    }
}

static int64_t watchdog_now_ns(void)
{
    return ml_clock_monotonic(ml_clock_real());
}

/* Reads until `end` is seen (NULL: until the client closes), with a limit on time and bytes. */
static void probe_read_until(int fd, const char *end)
{
    char bytes[REQUEST_MAX + 1];
    size_t len = 0;
    const int64_t deadline = watchdog_now_ns() + REQUEST_MS * ML_NS_PER_MS;
    while (len < REQUEST_MAX) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (deadline - watchdog_now_ns()) / ML_NS_PER_MS;
        if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) != 1)
            return;
        ssize_t got = recv(fd, bytes + len, REQUEST_MAX - len, MSG_DONTWAIT);
        if (got <= 0)
            return;
        len += (size_t)got;
        bytes[len] = '\0';
        if (end && strstr(bytes, end))
            return;
    }
}

/* Answers 503 to any request. Waits for the client to close first: bytes that arrive on a closed
 * socket make the kernel reset the connection, and the answer is lost. */
static void watchdog_refuse_probe(const struct ml_watchdog *self)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                 "Content-Type: text/plain; charset=utf-8\r\n"
                                 "Connection: close\r\n\r\n" REASON;
    int fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    probe_read_until(fd, "\r\n\r\n");
    ssize_t sent = send(fd, answer, sizeof answer - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)sent;
    shutdown(fd, SHUT_WR);
    probe_read_until(fd, NULL);
    close(fd);
}

/* Returns when the tick is over; false: the thread is to end. */
static bool watchdog_wait_tick(const struct ml_watchdog *self, bool stands)
{
    const int64_t end = watchdog_now_ns() + self->tick_ns;
    for (int left_ms = self->tick_ms; left_ms > 0;
         left_ms = (int)((end - watchdog_now_ns()) / ML_NS_PER_MS)) {
        struct pollfd ready[] = {
            {.fd = self->stop, .events = POLLIN},
            {.fd = stands ? self->listener : -1, .events = POLLIN},
        };
        if (poll(ready, ML_COUNT(ready), left_ms) <= 0)
            continue;
        if (ready[0].revents)
            return false;
        watchdog_refuse_probe(self);
    }
    return true;
}

/* Counts ticks instead of time: while the process was stopped or the machine suspended, this thread
 * did not run either. */
static void *watchdog_thread(void *context)
{
    struct ml_watchdog *self = context;
    unsigned seen = 0;
    int ticks = 0;
    while (watchdog_wait_tick(self, ticks >= self->ticks_max)) {
        unsigned beats = atomic_load(&self->beats);
        if (beats == seen && beats > 0) {
            ticks++;
            if (ticks == self->ticks_max)
                watchdog_log(self, "error", BLOCKED, ticks);
            continue;
        }
        if (ticks >= self->ticks_max)
            watchdog_log(self, "warn", RUNS, ticks);
        seen = beats;
        ticks = 0;
    }
    return NULL;
}

/* ---- the loop ---- */

static void watchdog_on_beat(void *context)
{
    struct ml_watchdog *self = context;
    atomic_fetch_add(&self->beats, 1);
    ml_timer_start(&self->beat, self->tick_ns);
}

/* Blocks all signals in the thread: those that end the process, and the CPU timer of the scripts,
 * must reach the thread that runs the loop. */
static int watchdog_start_thread(struct ml_watchdog *self)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&self->thread, &attributes, watchdog_thread, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed;
}

int ml_watchdog_new(const struct ml_watchdog_opts *opts, struct ml_watchdog **out,
                    struct ml_err *err)
{
    struct ml_watchdog *self = ml_new(struct ml_watchdog);
    self->tick_ns = opts->tick_ns ? opts->tick_ns : TICK_NS;
    self->tick_ms = (int)(self->tick_ns / ML_NS_PER_MS);
    self->ticks_max = opts->ticks_max ? opts->ticks_max : TICKS_MAX;
    self->log_fd = opts->log->fd;
    self->log_format = opts->log->format;
    self->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->listener = opts->listener < 0 ? -1 : fcntl(opts->listener, F_DUPFD_CLOEXEC, 0);
    int failed = self->stop < 0 ? errno : watchdog_start_thread(self);
    if (failed) {
        ml_close_fd(&self->stop);
        ml_close_fd(&self->listener);
        free(self);
        return ml_err_set(err, ML_EIO, "watchdog: %s", strerror(failed));
    }
    ml_timer_init(&self->beat, opts->loop, watchdog_on_beat, self);
    ml_timer_start(&self->beat, 0);
    *out = self;
    return 0;
}

void ml_watchdog_free(struct ml_watchdog *self)
{
    if (!self)
        return;
    ml_timer_stop(&self->beat);
    eventfd_write(self->stop, 1);
    pthread_join(self->thread, NULL);
    ml_close_fd(&self->stop);
    ml_close_fd(&self->listener);
    free(self);
}
