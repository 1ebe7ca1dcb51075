/* The warden and the keepers of process.h. process.c forks the warden once; the warden forks a
 * keeper for each process that the host asks for. A keeper is the parent of its process, and by
 * PR_SET_CHILD_SUBREAPER of every descendant whose own parent has ended. Nothing here may use
 * anything of the host's but the socket. */
#include "cluster/process_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATH_DEFAULT   "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define KILL_AGAIN_NS  (2 * ML_NS_PER_MS)
#define LEAVE_WITHIN_S 5
#define COUNT_EVERY_MS 200
#define COUNT_SHARE    50 /* counting uses at most 1/50 of a core */

/* ---- the tree of all processes, from /proc ---- */

struct process_entry {
    pid_t parent;
    pid_t pid;
};

struct process_tree {
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
static void process_tree_read(struct process_tree *tree)
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
static size_t find_first_child(const struct process_tree *tree, pid_t parent)
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

static size_t append_children(struct process_tree *tree, size_t found, pid_t parent)
{
    for (size_t i = find_first_child(tree, parent);
         i < tree->count && tree->entries[i].parent == parent; i++)
        tree->found[found++] = tree->entries[i].pid;
    return found;
}

/* The descendants of `root`, without it; valid until the next call. Returns how many. */
static size_t process_tree_below(struct process_tree *tree, pid_t root, const pid_t **out)
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

static void process_tree_fini(struct process_tree *tree)
{
    free(tree->entries);
    free(tree->found);
    *tree = (struct process_tree){0};
}

/* The keeper of one process; it reports over its control socket. */
struct keeper {
    int control;
    int signals; /* signalfd */
    char *text;  /* argv, env and directory point into it */
    char **argv;
    char **env;
    const char *directory;
    pid_t pid; /* the process; 0 when it has ended */
    int status;
    bool too_many;
};

/* ---- a keeper: its request ---- */

static char *read_request_file(int fd, size_t *out_len)
{
    struct stat info;
    if (fstat(fd, &info) < 0 || info.st_size < (off_t)sizeof(struct process_request))
        return NULL;
    char *text = ml_alloc((size_t)info.st_size);
    if (pread(fd, text, (size_t)info.st_size, 0) != info.st_size)
        free(ml_take(&text));
    *out_len = (size_t)info.st_size;
    return text;
}

/* A list of the `count` consecutive strings at `*at`. */
static char **split_string_list(char **at, size_t count)
{
    char **list = ml_alloc((count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        list[i] = *at;
        *at += strlen(*at) + 1;
    }
    list[count] = NULL;
    return list;
}

static bool keeper_read_request(struct keeper *keeper, int fd)
{
    struct process_request request;
    size_t len = 0;
    keeper->text = read_request_file(fd, &len);
    if (!keeper->text)
        return false;
    memcpy(&request, keeper->text, sizeof request);
    char *at = keeper->text + sizeof request;
    keeper->argv = split_string_list(&at, request.argc);
    keeper->env = split_string_list(&at, request.envc);
    keeper->directory = request.has_directory ? at : NULL;
    return true;
}

/* ---- the process, until it is another program ---- */

static const char *find_path_variable(char *const *env)
{
    for (; *env; env++) {
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    }
    return PATH_DEFAULT;
}

/* As execvpe, but never runs a shell. Returns, with errno, only if there is no such program. */
static void exec_from_path(char *const *argv, char *const *env)
{
    int found = ENOENT;
    if (strchr(argv[0], '/')) {
        execve(argv[0], argv, env);
        return;
    }
    struct ml_str rest = ml_str_of(find_path_variable(env));
    while (rest.len && argv[0][0]) {
        struct ml_str folder = ml_str_cut(&rest, ':');
        ML_AUTO_FREE char *path = ml_asprintf(ML_STR_FMT "/%s", ML_STR_ARG(folder), argv[0]);
        if (folder.len)
            execve(path, argv, env);
        if (folder.len && errno != ENOENT && errno != ENOTDIR)
            found = errno;
    }
    errno = found;
}

static void set_start_failure(struct process_report *report, const char *format, ...)
    ML_PRINTF(2, 3);

static void set_start_failure(struct process_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report->what = PROCESS_FAILED;
    vsnprintf(report->message, sizeof report->message, format, args);
    va_end(args);
}

/* errno in words, as Go writes them: "no such file or directory". */
static const char *errno_text(void)
{
    static char text[128];
    snprintf(text, sizeof text, "%s", strerror(errno));
    text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

/* In the words of Go's os/exec and of runc. */
static void describe_exec_failure(struct process_report *report, const struct keeper *keeper,
                                  bool in_folder)
{
    const char *command = keeper->argv[0], *why = errno_text();
    if (!in_folder)
        set_start_failure(report, "chdir to cwd (\"%s\"): %s", keeper->directory, why);
    else if (errno == ENOENT && !strchr(command, '/'))
        set_start_failure(report, "exec: \"%s\": executable file not found in $PATH", command);
    else
        set_start_failure(report, "exec: \"%s\": %s", command, why);
}

ML_NORETURN static void exec_kept_process(struct keeper *keeper, int output, int exec_error)
{
    static const struct rlimit no_core;
    sigset_t none;
    pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parent != getppid())
        _exit(127);
    setsid();
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(output, 1);
    dup2(output, 2);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    bool in_folder = !keeper->directory || chdir(keeper->directory) == 0;
    if (in_folder)
        exec_from_path(keeper->argv, keeper->env);
    struct process_report report = {0};
    describe_exec_failure(&report, keeper, in_folder);
    ssize_t written = write(exec_error, &report, sizeof report);
    (void)written; /* if the keeper is gone, so is this process */
    _exit(127);
}

static void send_report(const struct keeper *keeper, const struct process_report *message)
{
    send(keeper->control, message, sizeof *message, MSG_NOSIGNAL);
}

/* Forks and executes the process; `message` reports the outcome. The child writes to a pipe why
 * exec failed; a successful exec closes the pipe. */
static bool keeper_start_process(struct keeper *keeper, int output, struct process_report *message)
{
    int exec_error[2];
    if (pipe2(exec_error, O_CLOEXEC) < 0) {
        set_start_failure(message, "pipe: %s", errno_text());
        return false;
    }
    keeper->pid = fork();
    if (keeper->pid == 0)
        exec_kept_process(keeper, output, exec_error[1]);
    if (keeper->pid < 0)
        set_start_failure(message, "fork: %s", errno_text());
    close(exec_error[1]);
    bool failed = keeper->pid < 0 ||
                  read(exec_error[0], message, sizeof *message) == sizeof *message;
    close(exec_error[0]);
    if (!failed)
        *message = (struct process_report){.what = PROCESS_STARTED, .value = keeper->pid};
    return !failed;
}

/* ---- keeping it ---- */

static void keeper_note_exit(struct keeper *keeper, pid_t pid, int status)
{
    if (pid != keeper->pid)
        return;
    keeper->pid = 0;
    keeper->status = status;
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

/* Never returns. Closes the descriptors. */
ML_NORETURN static void process_keeper(const int fds[PROCESS_FD_COUNT])
{
    struct keeper keeper = {.control = fds[PROCESS_FD_CONTROL], .signals = keeper_open_signalfd()};
    prctl(PR_SET_NAME, "moonloop-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!keeper_read_request(&keeper, fds[PROCESS_FD_REQUEST]))
        _exit(1);
    struct process_report message = {0};
    bool started = keeper_start_process(&keeper, fds[PROCESS_FD_OUTPUT], &message);
    close(fds[PROCESS_FD_REQUEST]);
    close(fds[PROCESS_FD_OUTPUT]);
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

/* ---- the warden: forks keepers, and counts what each has below it ---- */

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
    struct process_request request;
    if (pread(fds[PROCESS_FD_REQUEST], &request, sizeof request, 0) != sizeof request)
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
    warden->keepers[warden->keeper_count++] = (struct kept){pid, request.count_max};
}

/* The descriptors of one request; false at the host's end. */
static bool receive_request_fds(int socket, int fds[PROCESS_FD_COUNT])
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
    if (!receive_request_fds(warden->socket, fds))
        warden_leave();
    warden_fork_keeper(warden, fds);
    for (size_t i = 0; i < PROCESS_FD_COUNT; i++)
        close(fds[i]); /* if no keeper was forked, the host sees its sockets closed */
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

/* Closes the host's descriptors, or its peers would not see them closed when it ends. */
static void close_inherited_fds(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    if (socket > 3)
        close_range(3, (unsigned)socket - 1, 0);
    close_range((unsigned)socket + 1, ~0U, 0);
}

/* Resets handlers, and blocked or ignored signals, which started processes would inherit. SIGCHLD
 * and PROCESS_SIGNAL_TOO_MANY stay blocked: they are read from a signalfd. */
static void reset_inherited_signals(void)
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
    setsid(); /* ^C at the terminal goes to the host only */
    prctl(PR_SET_NAME, "moonloop-warden");
    close_inherited_fds(socket);
    reset_inherited_signals();
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
