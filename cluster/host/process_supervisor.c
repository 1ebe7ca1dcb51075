/* The processes between the host and those that it starts: the supervisor, which the host forks
 * once, and a shim for each process, which the supervisor forks. The supervisor counts what each
 * shim has below it. A shim is the parent of its process, and by PR_SET_CHILD_SUBREAPER that of
 * every descendant whose own parent has ended. Of all that the host has, a shim uses only the
 * socket. */
#include "cluster/host/process_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "cluster/host/process_child.h"

/* ---- the tree of all processes of the machine, from /proc ---- */

struct process_entry {
    pid_t parent;
    pid_t pid;
};

struct tree {
    struct process_entry *entries; /* by parent */
    size_t count;
    size_t capacity;
    pid_t *found; /* work space */
    size_t found_capacity;
};

/* The parent as /proc/PID/stat has it: "PID (name) S PARENT …"; 0 when the process is gone. */
static pid_t read_parent_pid(int proc, const char *pid)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "%.10s/stat", pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    text[ML_MAX(len, 0)] = '\0';
    /* The name may contain parentheses; nothing after it does. */
    const char *behind = strrchr(text, ')');
    int parent = 0;
    if (!behind || sscanf(behind, ") %*c %d", &parent) != 1)
        return 0;
    return parent;
}

static int compare_by_parent(const void *a, const void *b)
{
    const struct process_entry *x = a, *y = b;
    return (x->parent > y->parent) - (x->parent < y->parent);
}

/* Reads all processes anew. */
static void tree_read(struct tree *tree)
{
    tree->count = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return;
    for (const struct dirent *entry; (entry = readdir(proc));) {
        uint64_t pid = 0;
        if (!ml_str_to_u64(ml_str_of(entry->d_name), &pid))
            continue;
        pid_t parent = read_parent_pid(dirfd(proc), entry->d_name);
        if (parent <= 0)
            continue;
        tree->entries = ml_grow(tree->entries, &tree->capacity, tree->count,
                                sizeof(*tree->entries));
        tree->entries[tree->count++] = (struct process_entry){parent, (pid_t)pid};
    }
    closedir(proc);
    if (tree->count)
        qsort(tree->entries, tree->count, sizeof(*tree->entries), compare_by_parent);
}

/* The index of the first entry whose parent is `parent` or greater. */
static size_t find_first_child(const struct tree *tree, pid_t parent)
{
    size_t low = 0, high = tree->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree->entries[middle].parent < parent)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t append_children(struct tree *tree, size_t found, pid_t parent)
{
    for (size_t i = find_first_child(tree, parent);
         i < tree->count && tree->entries[i].parent == parent; i++)
        tree->found[found++] = tree->entries[i].pid;
    return found;
}

/* The descendants of `root`, without it; valid until the next call. Returns how many. */
static size_t tree_below(struct tree *tree, pid_t root, const pid_t **out)
{
    /* /proc is read while processes come and go, so that a reused pid could make a cycle; the loop
     * below stops after as many pids as there are entries. */
    if (tree->found_capacity < 2 * tree->count + 1) {
        tree->found_capacity = 2 * tree->capacity + 1;
        tree->found = ml_realloc(tree->found, tree->found_capacity * sizeof(*tree->found));
    }
    size_t found = append_children(tree, 0, root);
    for (size_t i = 0; i < found && found <= tree->count; i++)
        found = append_children(tree, found, tree->found[i]);
    *out = tree->found;
    return found;
}

static void tree_fini(struct tree *tree)
{
    free(tree->entries);
    free(tree->found);
    *tree = (struct tree){0};
}

/* ---- a shim ---- */

#define KILL_AGAIN_NS (2 * ML_NS_PER_MS)

/* Of one process; it reports over its control socket. */
struct shim {
    struct process_request request;
    int control;
    int signals; /* signalfd */
    int reports; /* of the init of a container, which is `pid` then; else -1 */
    pid_t pid;   /* the process; 0 when it has ended */
    int status;
    bool too_many;
};

/* ---- the process, until it is another program ---- */

ML_NORETURN static void exec_process(const struct process_request *request,
                                     const struct process_stdio *stdio, int failed)
{
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parent != getppid())
        _exit(127);
    process_exec(request, stdio, failed);
}

static pid_t fork_process(const struct process_request *request, const struct process_stdio *stdio,
                          const int reports[2])
{
    if (request->has_container)
        return process_container_start(request, stdio, reports);
    if (request->beside)
        return process_container_join(request, stdio, reports);
    pid_t pid = fork();
    if (pid == 0)
        exec_process(request, stdio, reports[1]);
    return pid;
}

static void send_report(const struct shim *shim, const struct process_report *message)
{
    send(shim->control, message, sizeof *message, MSG_NOSIGNAL);
}

/* Reads the report of a child; false when it closed the pipe without one. Others can write to the
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

/* Enters the mounts of a pod, and the user namespace that owns them, unless that is its network's
 * and was entered with it. */
static bool enter_memory(const int fds[PROCESS_FD_COUNT], struct process_report *message)
{
    int memory = fds[PROCESS_FD_MEMORY];
    if (memory < 0)
        return true;
    ML_AUTO(ml_close_fd) int users = ioctl(memory, NS_GET_USERNS);
    bool is_user = fds[PROCESS_FD_NETWORK] >= 0 || (users >= 0 && setns(users, CLONE_NEWUSER) == 0);
    if (is_user && setns(memory, CLONE_NEWNS) == 0)
        return true;
    process_report_failure(message, "enter the pod's mounts: %s", process_errno_text());
    return false;
}

/* Starts the process; `message` reports the outcome. The child writes to a pipe why it could not be
 * started; a successful exec closes the pipe, but an init keeps it and says that, too. */
static bool shim_start_process(struct shim *shim, const struct process_stdio *stdio,
                               struct process_report *message)
{
    const struct process_request *request = &shim->request;
    int reports[2];
    if (pipe2(reports, O_CLOEXEC) < 0) {
        process_report_failure(message, "pipe: %s", process_errno_text());
        return false;
    }
    shim->pid = fork_process(request, stdio, reports);
    if (shim->pid < 0)
        process_report_failure(message, "%s: %s", request->has_container ? "clone" : "fork",
                               process_errno_text());
    close(reports[1]);
    bool got_report = read_child_report(reports[0], message);
    if (!got_report && request->has_container && shim->pid > 0)
        process_report_failure(message, "its init has gone");
    bool started = shim->pid > 0 &&
                   (request->has_container ? message->what == PROCESS_STARTED : !got_report);
    shim->reports = started && request->has_container ? reports[0] : -1;
    if (shim->reports < 0)
        close(reports[0]);
    if (started)
        *message = (struct process_report){.what = PROCESS_STARTED, .value = shim->pid};
    return started;
}

/* ---- keeping it ---- */

/* An init that was not killed tells how its command ended. */
static void shim_note_exit(struct shim *shim, pid_t pid, int status)
{
    struct process_report report;
    if (pid != shim->pid)
        return;
    shim->pid = 0;
    shim->status = status;
    if (shim->reports >= 0 && read_child_report(shim->reports, &report) &&
        report.what == PROCESS_ENDED)
        shim->status = report.value;
}

static void kill_descendants(struct tree *tree)
{
    const pid_t *pids;
    tree_read(tree);
    size_t count = tree_below(tree, getpid(), &pids);
    for (size_t i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
}

/* Kills all descendants, until none is left. Orphans become our children, so nothing escapes. The
 * group is killed first, in a single step that a fork cannot outrun. */
static void shim_kill_all(struct shim *shim)
{
    const struct timespec again = {.tv_nsec = KILL_AGAIN_NS};
    struct tree tree = {0};
    pid_t pid;
    int status;
    if (shim->pid > 0)
        kill(-shim->pid, SIGKILL);
    for (;;) {
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            shim_note_exit(shim, pid, status);
        if (pid < 0 && errno == ECHILD)
            break;
        kill_descendants(&tree);
        nanosleep(&again, NULL);
    }
    tree_fini(&tree);
}

ML_NORETURN static void shim_finish(struct shim *shim)
{
    shim_kill_all(shim);
    struct process_report message = {
        .what = PROCESS_ENDED, .value = shim->status, .too_many = shim->too_many};
    send_report(shim, &message);
    _exit(0);
}

static void shim_on_command(struct shim *shim)
{
    process_command signo;
    ssize_t len = recv(shim->control, &signo, sizeof signo, 0);
    if (len < 0 && errno == EINTR)
        return;
    if (len != sizeof signo || signo == SIGKILL)
        shim_finish(shim);
    kill(-shim->pid, signo);
}

static void shim_on_signals(struct shim *shim)
{
    struct signalfd_siginfo info;
    pid_t pid;
    int status;
    while (read(shim->signals, &info, sizeof info) == sizeof info)
        shim->too_many |= info.ssi_signo == PROCESS_SIGNAL_TOO_MANY;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        shim_note_exit(shim, pid, status);
    if (shim->too_many || shim->pid == 0)
        shim_finish(shim);
}

static int shim_open_signalfd(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, PROCESS_SIGNAL_TOO_MANY);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Runs to its end in a child of the supervisor. */
ML_NORETURN static void run_shim(const int fds[PROCESS_FD_COUNT])
{
    struct shim shim = {
        .control = fds[PROCESS_FD_CONTROL], .signals = shim_open_signalfd(), .reports = -1};
    prctl(PR_SET_NAME, "moonloop-shim");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!process_request_read(&shim.request, fds[PROCESS_FD_REQUEST]))
        _exit(1);
    struct process_report message = {0};
    const struct process_stdio stdio = {fds[PROCESS_FD_INPUT], fds[PROCESS_FD_OUTPUT],
                                        fds[PROCESS_FD_ERRORS]};
    bool started = enter_network(fds[PROCESS_FD_NETWORK], &message) &&
                   enter_memory(fds, &message) && shim_start_process(&shim, &stdio, &message);
    for (int i = 0; i < PROCESS_FD_COUNT; i++) {
        if (i != PROCESS_FD_CONTROL && fds[i] >= 0)
            close(fds[i]);
    }
    send_report(&shim, &message);
    if (!started)
        _exit(1);
    for (;;) {
        struct pollfd ready[] = {{shim.control, POLLIN, 0}, {shim.signals, POLLIN, 0}};
        poll(ready, ML_COUNT(ready), -1);
        if (ready[1].revents)
            shim_on_signals(&shim);
        if (ready[0].revents)
            shim_on_command(&shim);
    }
}

/* ---- the supervisor ---- */

#define LEAVE_WITHIN_S 5
#define COUNT_EVERY_MS 200
#define COUNT_SHARE    50 /* counting uses at most 1/50 of a core */

struct shim_entry {
    pid_t pid;
    size_t count_max;
};

struct supervisor {
    int socket;
    int children; /* signalfd of SIGCHLD */
    struct shim_entry *shims;
    size_t shim_count;
    size_t shim_capacity;
    struct tree tree;
    int pause_ms; /* between two counts */
};

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / ML_NS_PER_MS;
}

static void supervisor_forget_shim(struct supervisor *supervisor, pid_t pid)
{
    for (size_t i = 0; i < supervisor->shim_count; i++) {
        if (supervisor->shims[i].pid == pid)
            supervisor->shims[i--] = supervisor->shims[--supervisor->shim_count];
    }
}

static void supervisor_reap_shims(struct supervisor *supervisor)
{
    struct signalfd_siginfo info;
    pid_t pid;
    while (read(supervisor->children, &info, sizeof info) > 0)
        ;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        supervisor_forget_shim(supervisor, pid);
}

static void supervisor_fork_shim(struct supervisor *supervisor, const int fds[PROCESS_FD_COUNT])
{
    struct process_request_head head;
    if (pread(fds[PROCESS_FD_REQUEST], &head, sizeof head, 0) != sizeof head)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        close(supervisor->socket);
        close(supervisor->children);
        run_shim(fds);
    }
    if (pid <= 0)
        return;
    supervisor->shims = ml_grow(supervisor->shims, &supervisor->shim_capacity,
                                supervisor->shim_count, sizeof(*supervisor->shims));
    supervisor->shims[supervisor->shim_count++] = (struct shim_entry){pid, head.count_max};
}

/* The host is gone, or waits for us to exit: the shims notice it themselves and kill their
 * processes. The alarm ends the wait for one that cannot be killed. */
ML_NORETURN static void supervisor_leave(void)
{
    alarm(LEAVE_WITHIN_S);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(0);
}

static void supervisor_serve_request(struct supervisor *supervisor)
{
    int fds[PROCESS_FD_COUNT];
    if (!process_fds_receive(supervisor->socket, fds))
        supervisor_leave();
    supervisor_fork_shim(supervisor, fds);
    for (size_t i = 0; i < PROCESS_FD_COUNT; i++)
        ml_close_fd(&fds[i]); /* if no shim was forked, the host sees its sockets closed */
}

static void supervisor_count_processes(struct supervisor *supervisor)
{
    int64_t start = monotonic_ms();
    tree_read(&supervisor->tree);
    for (size_t i = 0; i < supervisor->shim_count; i++) {
        const struct shim_entry *shim = &supervisor->shims[i];
        const pid_t *below;
        if (tree_below(&supervisor->tree, shim->pid, &below) > shim->count_max)
            kill(shim->pid, PROCESS_SIGNAL_TOO_MANY);
    }
    int64_t took = monotonic_ms() - start;
    supervisor->pause_ms = (int)ML_MAX(took * COUNT_SHARE, (int64_t)COUNT_EVERY_MS);
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

void process_supervisor(int socket)
{
    struct supervisor supervisor = {.socket = socket, .pause_ms = COUNT_EVERY_MS};
    sigset_t child;
    process_child_begin(socket, "moonloop-superv");
    block_read_signals();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    supervisor.children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    int64_t last = 0;
    for (;;) {
        struct pollfd ready[] = {{socket, POLLIN, 0}, {supervisor.children, POLLIN, 0}};
        int64_t wait = ML_MAX(last + supervisor.pause_ms - monotonic_ms(), INT64_C(0));
        poll(ready, ML_COUNT(ready), supervisor.shim_count ? (int)wait : -1);
        if (ready[1].revents)
            supervisor_reap_shims(&supervisor);
        if (ready[0].revents)
            supervisor_serve_request(&supervisor);
        if (supervisor.shim_count && monotonic_ms() >= last + supervisor.pause_ms) {
            supervisor_count_processes(&supervisor);
            last = monotonic_ms();
        }
    }
}
