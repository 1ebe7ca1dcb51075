/* The warden of process.h. process.c forks it once; it forks a keeper for each process that the
 * host asks for, and counts what each has below it. */
#include "cluster/process_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/process_child.h"
#include "cluster/process_keeper.h"
#include "cluster/process_request.h"
#include "cluster/process_tree.h"

#define LEAVE_WITHIN_S 5
#define COUNT_EVERY_MS 200
#define COUNT_SHARE    50 /* counting uses at most 1/50 of a core */

struct kept {
    pid_t pid;
    size_t count_max;
};

struct warden {
    int socket;
    int children; /* signalfd of SIGCHLD */
    struct kept *keepers;
    size_t keeper_count;
    size_t keeper_capacity;
    struct process_tree tree;
    int pause_ms; /* between two counts */
};

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / ML_NS_PER_MS;
}

static void warden_forget_keeper(struct warden *warden, pid_t pid)
{
    for (size_t i = 0; i < warden->keeper_count; i++) {
        if (warden->keepers[i].pid == pid)
            warden->keepers[i--] = warden->keepers[--warden->keeper_count];
    }
}

static void warden_reap_keepers(struct warden *warden)
{
    struct signalfd_siginfo info;
    pid_t pid;
    while (read(warden->children, &info, sizeof info) > 0)
        ;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        warden_forget_keeper(warden, pid);
}

static void warden_fork_keeper(struct warden *warden, const int fds[PROCESS_FD_COUNT])
{
    struct process_request_head head;
    if (pread(fds[PROCESS_FD_REQUEST], &head, sizeof head, 0) != sizeof head)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        close(warden->socket);
        close(warden->children);
        process_keeper(fds);
    }
    if (pid <= 0)
        return;
    warden->keepers = ml_grow(warden->keepers, &warden->keeper_capacity, warden->keeper_count,
                              sizeof(*warden->keepers));
    warden->keepers[warden->keeper_count++] = (struct kept){pid, head.count_max};
}

/* The host is gone, or waits for us to exit: the keepers notice it themselves and kill their
 * processes. The alarm ends the wait for one that cannot be killed. */
ML_NORETURN static void warden_leave(void)
{
    alarm(LEAVE_WITHIN_S);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(0);
}

static void warden_serve_request(struct warden *warden)
{
    int fds[PROCESS_FD_COUNT];
    if (!process_fds_receive(warden->socket, fds))
        warden_leave();
    warden_fork_keeper(warden, fds);
    for (size_t i = 0; i < PROCESS_FD_COUNT; i++)
        ml_close_fd(&fds[i]); /* if no keeper was forked, the host sees its sockets closed */
}

static void warden_count_processes(struct warden *warden)
{
    int64_t start = monotonic_ms();
    process_tree_read(&warden->tree);
    for (size_t i = 0; i < warden->keeper_count; i++) {
        const struct kept *keeper = &warden->keepers[i];
        const pid_t *below;
        if (process_tree_below(&warden->tree, keeper->pid, &below) > keeper->count_max)
            kill(keeper->pid, PROCESS_SIGNAL_TOO_MANY);
    }
    int64_t took = monotonic_ms() - start;
    warden->pause_ms = (int)ML_MAX(took * COUNT_SHARE, (int64_t)COUNT_EVERY_MS);
}

/* SIGCHLD and PROCESS_SIGNAL_TOO_MANY are read from a signalfd. */
static void block_read_signals(void)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigaddset(&blocked, PROCESS_SIGNAL_TOO_MANY);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

void process_warden(int socket)
{
    struct warden warden = {.socket = socket, .pause_ms = COUNT_EVERY_MS};
    sigset_t child;
    process_child_begin(socket, "moonloop-warden");
    block_read_signals();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    warden.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    int64_t last = 0;
    for (;;) {
        struct pollfd ready[] = {{socket, POLLIN, 0}, {warden.children, POLLIN, 0}};
        int64_t wait = ML_MAX(last + warden.pause_ms - monotonic_ms(), INT64_C(0));
        poll(ready, ML_COUNT(ready), warden.keeper_count ? (int)wait : -1);
        if (ready[1].revents)
            warden_reap_keepers(&warden);
        if (ready[0].revents)
            warden_serve_request(&warden);
        if (warden.keeper_count && monotonic_ms() >= last + warden.pause_ms) {
            warden_count_processes(&warden);
            last = monotonic_ms();
        }
    }
}
