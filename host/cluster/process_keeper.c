#include "cluster/process_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/process_container.h"
#include "cluster/process_exec.h"
#include "cluster/process_tree.h"

#define KILL_AGAIN_NS (2 * ML_NS_PER_MS)

/* The keeper of one process; it reports over its control socket. */
struct keeper {
    struct process_request request;
    int control;
    int signals; /* signalfd */
    int reports; /* of the init of a container, which is `pid` then; else -1 */
    pid_t pid;   /* the process; 0 when it has ended */
    int status;
    bool too_many;
};

/* ---- the process, until it is another program ---- */

ML_NORETURN static void exec_kept_process(const struct process_request *request,
                                          const struct process_stdio *stdio, int failed)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parent != getppid())
        _exit(127);
    process_exec(request, stdio, failed);
}

static pid_t fork_kept_process(const struct process_request *request,
                               const struct process_stdio *stdio, const int reports[2])
{
    if (request->has_container)
        return process_container_start(request, stdio, reports);
    if (request->beside)
        return process_container_join(request, stdio, reports);
    pid_t pid = fork();
    if (pid == 0)
        exec_kept_process(request, stdio, reports[1]);
    return pid;
}

static void send_report(const struct keeper *keeper, const struct process_report *message)
{
    send(keeper->control, message, sizeof *message, MSG_NOSIGNAL);
}

/* What a child has reported; false when it closed the pipe without a word. Others can write to the
 * pipe of an init: its text is cut where it has to end. */
static bool read_child_report(int reports, struct process_report *message)
{
    ssize_t len;
    do
        len = read(reports, message, sizeof *message);
    while (len < 0 && errno == EINTR);
    message->message[sizeof message->message - 1] = '\0';
    return len == sizeof *message;
}

/* Enters a pod's network, and the user namespace that owns it: the container's own lies in it. */
static bool enter_network(int network, struct process_report *message)
{
    if (network < 0)
        return true;
    ML_AUTO(ml_close_fd) int users = ioctl(network, NS_GET_USERNS);
    if (users >= 0 && setns(users, CLONE_NEWUSER) == 0 && setns(network, CLONE_NEWNET) == 0)
        return true;
    process_report_failure(message, "enter the pod's network: %s", process_errno_text());
    return false;
}

/* Starts the process; `message` reports the outcome. The child writes to a pipe why it could not be
 * started; a successful exec closes the pipe, but an init keeps it and says that, too. */
static bool keeper_start_process(struct keeper *keeper, const struct process_stdio *stdio,
                                 struct process_report *message)
{
    const struct process_request *request = &keeper->request;
    int reports[2];
    if (pipe2(reports, O_CLOEXEC) < 0) {
        process_report_failure(message, "pipe: %s", process_errno_text());
        return false;
    }
    keeper->pid = fork_kept_process(request, stdio, reports);
    if (keeper->pid < 0)
        process_report_failure(message, "%s: %s", request->has_container ? "clone" : "fork",
                               process_errno_text());
    close(reports[1]);
    bool told = read_child_report(reports[0], message);
    if (!told && request->has_container && keeper->pid > 0)
        process_report_failure(message, "its init has gone");
    bool started = keeper->pid > 0 &&
                   (request->has_container ? message->what == PROCESS_STARTED : !told);
    keeper->reports = started && request->has_container ? reports[0] : -1;
    if (keeper->reports < 0)
        close(reports[0]);
    if (started)
        *message = (struct process_report){.what = PROCESS_STARTED, .value = keeper->pid};
    return started;
}

/* ---- keeping it ---- */

/* An init that was not killed tells how its command ended. */
static void keeper_note_exit(struct keeper *keeper, pid_t pid, int status)
{
    struct process_report report;
    if (pid != keeper->pid)
        return;
    keeper->pid = 0;
    keeper->status = status;
    if (keeper->reports >= 0 && read_child_report(keeper->reports, &report) &&
        report.what == PROCESS_ENDED)
        keeper->status = report.value;
}

static void kill_descendants(struct process_tree *tree)
{
    const pid_t *pids;
    process_tree_read(tree);
    size_t count = process_tree_below(tree, getpid(), &pids);
    for (size_t i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
}

/* Kills all descendants, until none is left. Orphans become our children, so nothing escapes. The
 * group is killed first, in a single step that a fork cannot outrun. */
static void keeper_kill_all(struct keeper *keeper)
{
    const struct timespec again = {.tv_nsec = KILL_AGAIN_NS};
    struct process_tree tree = {0};
    pid_t pid;
    int status;
    if (keeper->pid > 0)
        kill(-keeper->pid, SIGKILL);
    for (;;) {
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            keeper_note_exit(keeper, pid, status);
        if (pid < 0 && errno == ECHILD)
            break;
        kill_descendants(&tree);
        nanosleep(&again, NULL);
    }
    process_tree_fini(&tree);
}

ML_NORETURN static void keeper_finish(struct keeper *keeper)
{
    keeper_kill_all(keeper);
    struct process_report message = {
        .what = PROCESS_ENDED, .value = keeper->status, .too_many = keeper->too_many};
    send_report(keeper, &message);
    _exit(0);
}

static void keeper_on_command(struct keeper *keeper)
{
    process_command signo;
    ssize_t len = recv(keeper->control, &signo, sizeof signo, 0);
    if (len < 0 && errno == EINTR)
        return;
    if (len != sizeof signo || signo == SIGKILL)
        keeper_finish(keeper);
    kill(-keeper->pid, signo);
}

static void keeper_on_signals(struct keeper *keeper)
{
    struct signalfd_siginfo info;
    pid_t pid;
    int status;
    while (read(keeper->signals, &info, sizeof info) == sizeof info)
        keeper->too_many |= info.ssi_signo == PROCESS_SIGNAL_TOO_MANY;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        keeper_note_exit(keeper, pid, status);
    if (keeper->too_many || keeper->pid == 0)
        keeper_finish(keeper);
}

static int keeper_open_signalfd(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, PROCESS_SIGNAL_TOO_MANY);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void process_keeper(const int fds[PROCESS_FD_COUNT])
{
    struct keeper keeper = {
        .control = fds[PROCESS_FD_CONTROL], .signals = keeper_open_signalfd(), .reports = -1};
    prctl(PR_SET_NAME, "moonloop-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!process_request_read(&keeper.request, fds[PROCESS_FD_REQUEST]))
        _exit(1);
    struct process_report message = {0};
    const struct process_stdio stdio = {fds[PROCESS_FD_INPUT], fds[PROCESS_FD_OUTPUT],
                                        fds[PROCESS_FD_ERRORS]};
    bool started = enter_network(fds[PROCESS_FD_NETWORK], &message) &&
                   keeper_start_process(&keeper, &stdio, &message);
    for (int i = 0; i < PROCESS_FD_COUNT; i++) {
        if (i != PROCESS_FD_CONTROL && fds[i] >= 0)
            close(fds[i]);
    }
    send_report(&keeper, &message);
    if (!started)
        _exit(1);
    for (;;) {
        struct pollfd ready[] = {{keeper.control, POLLIN, 0}, {keeper.signals, POLLIN, 0}};
        poll(ready, ML_COUNT(ready), -1);
        if (ready[1].revents)
            keeper_on_signals(&keeper);
        if (ready[0].revents)
            keeper_on_command(&keeper);
    }
}
