/* The warden: forks a keeper for each request, and counts what each has below it. It was forked
 * from the host and must not touch anything of the host's but its end of the socket. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/process_internal.h"

#define LEAVE_WITHIN_S 5
#define COUNT_EVERY_MS 200
#define COUNT_SHARE    50 /* counting takes at most one part in so many of a core */

struct keeper {
    pid_t pid;
    size_t count_max;
};

struct warden {
    int socket;
    int children; /* signalfd of SIGCHLD */
    struct keeper *keepers;
    size_t keeper_count;
    size_t keeper_capacity;
    struct process_tree tree;
    int pause_ms; /* between two counts */
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / ML_NS_PER_MS;
}

static void add_keeper(struct warden *warden, struct keeper keeper)
{
    if (warden->keeper_count == warden->keeper_capacity) {
        warden->keeper_capacity = ML_MAX(warden->keeper_capacity * 2, (size_t)16);
        warden->keepers = ml_realloc(warden->keepers,
                                     warden->keeper_capacity * sizeof(*warden->keepers));
    }
    warden->keepers[warden->keeper_count++] = keeper;
}

static void forget_keeper(struct warden *warden, pid_t pid)
{
    for (size_t i = 0; i < warden->keeper_count; i++) {
        if (warden->keepers[i].pid == pid)
            warden->keepers[i--] = warden->keepers[--warden->keeper_count];
    }
}

static void reap_keepers(struct warden *warden)
{
    struct signalfd_siginfo info;
    pid_t pid;
    while (read(warden->children, &info, sizeof info) > 0)
        ;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        forget_keeper(warden, pid);
}

static void fork_keeper(struct warden *warden, const int fds[PROCESS_FD_COUNT])
{
    struct process_request request;
    if (pread(fds[PROCESS_FD_REQUEST], &request, sizeof request, 0) != sizeof request)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        close(warden->socket);
        close(warden->children);
        process_keeper(fds);
    }
    if (pid > 0)
        add_keeper(warden, (struct keeper){pid, request.count_max});
}

/* The descriptors of one request; false at the host's end. */
static bool receive(int socket, int fds[PROCESS_FD_COUNT])
{
    char byte;
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(sizeof(int) * PROCESS_FD_COUNT)];
    } control;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t len;
    do
        len = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    const struct cmsghdr *head = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_len != CMSG_LEN(sizeof(int) * PROCESS_FD_COUNT))
        return false;
    memcpy(fds, CMSG_DATA(head), sizeof(int) * PROCESS_FD_COUNT);
    return true;
}

/* The host is gone, or frees us and waits: keepers see it for themselves, and kill what they have.
 * What cannot be killed is not waited for without end. */
ML_NORETURN static void leave(void)
{
    alarm(LEAVE_WITHIN_S);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(0);
}

static void serve(struct warden *warden)
{
    int fds[PROCESS_FD_COUNT];
    if (!receive(warden->socket, fds))
        leave();
    fork_keeper(warden, fds);
    for (size_t i = 0; i < PROCESS_FD_COUNT; i++)
        close(fds[i]); /* without a keeper the host sees its sockets closed */
}

static void count(struct warden *warden)
{
    int64_t start = now_ms();
    process_tree_read(&warden->tree);
    for (size_t i = 0; i < warden->keeper_count; i++) {
        const struct keeper *keeper = &warden->keepers[i];
        const pid_t *below;
        if (process_tree_below(&warden->tree, keeper->pid, &below) > keeper->count_max)
            kill(keeper->pid, PROCESS_SIGNAL_TOO_MANY);
    }
    int64_t took = now_ms() - start;
    warden->pause_ms = (int)ML_MAX(took * COUNT_SHARE, (int64_t)COUNT_EVERY_MS);
}

/* Nothing of the host's stays open, or its peers would not see the end of it. */
static void close_others(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    if (socket > 3)
        close_range(3, (unsigned)socket - 1, 0);
    close_range((unsigned)socket + 1, ~0U, 0);
}

/* The host's handlers must not run here, and its blocked or ignored signals are not for what is
 * started. SIGCHLD and the one of process_keeper.c stay blocked: they are read from descriptors. */
static void reset_signals(void)
{
    sigset_t blocked;
    for (int signo = 1; signo < NSIG; signo++)
        signal(signo, SIG_DFL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigaddset(&blocked, PROCESS_SIGNAL_TOO_MANY);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

void process_warden(int socket)
{
    struct warden warden = {.socket = socket, .pause_ms = COUNT_EVERY_MS};
    sigset_t child;
    setsid(); /* ^C at the terminal is the host's to answer */
    prctl(PR_SET_NAME, "moonloop-warden");
    close_others(socket);
    reset_signals();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    warden.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    int64_t last = 0;
    for (;;) {
        struct pollfd ready[] = {{socket, POLLIN, 0}, {warden.children, POLLIN, 0}};
        int64_t wait = ML_MAX(last + warden.pause_ms - now_ms(), INT64_C(0));
        poll(ready, ML_COUNT(ready), warden.keeper_count ? (int)wait : -1);
        if (ready[1].revents)
            reap_keepers(&warden);
        if (ready[0].revents)
            serve(&warden);
        if (warden.keeper_count && now_ms() >= last + warden.pause_ms) {
            count(&warden);
            last = now_ms();
        }
    }
}
