/* The keeper of one process: its parent, and by PR_SET_CHILD_SUBREAPER that of everything below it
 * whose own parent has ended. Forked from the warden; reports over its control socket. */
#include <ctype.h>
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

#include "cluster/process_internal.h"

#define PATH_DEFAULT  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define KILL_AGAIN_NS (2 * ML_NS_PER_MS)

struct keeper {
    int control;
    int signals; /* signalfd */
    char *text;  /* what argv, env and directory point into */
    char **argv;
    char **env;
    const char *directory;
    pid_t pid; /* the process; 0 when it has ended */
    int status;
    bool too_many;
};

/* ---- the request ---- */

static char *read_all(int fd, size_t *out_len)
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

/* A list of `count` strings that stand one behind the other at `*at`. */
static char **read_list(char **at, size_t count)
{
    char **list = ml_alloc((count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        list[i] = *at;
        *at += strlen(*at) + 1;
    }
    list[count] = NULL;
    return list;
}

static bool read_request(struct keeper *keeper, int fd)
{
    struct process_request request;
    size_t len = 0;
    keeper->text = read_all(fd, &len);
    if (!keeper->text)
        return false;
    memcpy(&request, keeper->text, sizeof request);
    char *at = keeper->text + sizeof request;
    keeper->argv = read_list(&at, request.argc);
    keeper->env = read_list(&at, request.envc);
    keeper->directory = request.has_directory ? at : NULL;
    return true;
}

/* ---- the process, until it is another program ---- */

static const char *path_of(char *const *env)
{
    for (; *env; env++) {
        if (strncmp(*env, "PATH=", 5) == 0)
            return *env + 5;
    }
    return PATH_DEFAULT;
}

/* Returns only when there is no such program, with errno. As execvpe, but never by a shell. */
static void exec_found(char *const *argv, char *const *env)
{
    int found = ENOENT;
    if (strchr(argv[0], '/')) {
        execve(argv[0], argv, env);
        return;
    }
    struct ml_str rest = ml_str_of(path_of(env));
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

static void say(struct process_report *report, const char *format, ...) ML_PRINTF(2, 3);

static void say(struct process_report *report, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report->what = PROCESS_FAILED;
    vsnprintf(report->message, sizeof report->message, format, args);
    va_end(args);
}

/* errno in words, as Go writes them: "no such file or directory". */
static const char *reason(void)
{
    static char text[128];
    snprintf(text, sizeof text, "%s", strerror(errno));
    text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

/* In the words of Go's os/exec and of runc. */
static void say_why(struct process_report *report, const struct keeper *keeper, bool in_folder)
{
    const char *command = keeper->argv[0], *why = reason();
    if (!in_folder)
        say(report, "chdir to cwd (\"%s\"): %s", keeper->directory, why);
    else if (errno == ENOENT && !strchr(command, '/'))
        say(report, "exec: \"%s\": executable file not found in $PATH", command);
    else
        say(report, "exec: \"%s\": %s", command, why);
}

ML_NORETURN static void become(struct keeper *keeper, int output, int tell)
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
        exec_found(keeper->argv, keeper->env);
    struct process_report report = {0};
    say_why(&report, keeper, in_folder);
    ssize_t written = write(tell, &report, sizeof report);
    (void)written; /* a keeper that cannot be told is gone, and with it this process */
    _exit(127);
}

static void report(const struct keeper *keeper, const struct process_report *message)
{
    send(keeper->control, message, sizeof *message, MSG_NOSIGNAL);
}

/* False when it could not be started; `message` tells either way. The process says on a pipe why
 * it has not become another program; when it has, the pipe is closed. */
static bool start(struct keeper *keeper, int output, struct process_report *message)
{
    int tell[2];
    if (pipe2(tell, O_CLOEXEC) < 0) {
        say(message, "pipe: %s", reason());
        return false;
    }
    keeper->pid = fork();
    if (keeper->pid == 0)
        become(keeper, output, tell[1]);
    if (keeper->pid < 0)
        say(message, "fork: %s", reason());
    close(tell[1]);
    bool failed = keeper->pid < 0 || read(tell[0], message, sizeof *message) == sizeof *message;
    close(tell[0]);
    if (!failed)
        *message = (struct process_report){.what = PROCESS_STARTED, .value = keeper->pid};
    return !failed;
}

/* ---- keeping it ---- */

static void note_end(struct keeper *keeper, pid_t pid, int status)
{
    if (pid != keeper->pid)
        return;
    keeper->pid = 0;
    keeper->status = status;
}

static void kill_below(struct process_tree *tree)
{
    const pid_t *pids;
    process_tree_read(tree);
    size_t count = process_tree_below(tree, getpid(), &pids);
    for (size_t i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
}

/* Kills all there is below, until nothing is left. What loses its parent comes to us, so nothing
 * escapes; the group goes first, in one step against which it cannot fork. */
static void kill_all(struct keeper *keeper)
{
    const struct timespec again = {.tv_nsec = KILL_AGAIN_NS};
    struct process_tree tree = {0};
    pid_t pid;
    int status;
    if (keeper->pid > 0)
        kill(-keeper->pid, SIGKILL);
    for (;;) {
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            note_end(keeper, pid, status);
        if (pid < 0 && errno == ECHILD)
            break;
        kill_below(&tree);
        nanosleep(&again, NULL);
    }
    process_tree_fini(&tree);
}

ML_NORETURN static void end(struct keeper *keeper)
{
    kill_all(keeper);
    struct process_report message = {
        .what = PROCESS_ENDED, .value = keeper->status, .too_many = keeper->too_many};
    report(keeper, &message);
    _exit(0);
}

static void on_command(struct keeper *keeper)
{
    process_command signo;
    ssize_t len = recv(keeper->control, &signo, sizeof signo, 0);
    if (len < 0 && errno == EINTR)
        return;
    if (len != sizeof signo || signo == SIGKILL)
        end(keeper);
    kill(-keeper->pid, signo);
}

static void on_signals(struct keeper *keeper)
{
    struct signalfd_siginfo info;
    pid_t pid;
    int status;
    while (read(keeper->signals, &info, sizeof info) == sizeof info)
        keeper->too_many |= info.ssi_signo == PROCESS_SIGNAL_TOO_MANY;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        note_end(keeper, pid, status);
    if (keeper->too_many || keeper->pid == 0)
        end(keeper);
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, PROCESS_SIGNAL_TOO_MANY);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void process_keeper(const int fds[PROCESS_FD_COUNT])
{
    struct keeper keeper = {.control = fds[PROCESS_FD_CONTROL], .signals = open_signals()};
    prctl(PR_SET_NAME, "moonloop-keeper");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!read_request(&keeper, fds[PROCESS_FD_REQUEST]))
        _exit(1);
    struct process_report message = {0};
    bool started = start(&keeper, fds[PROCESS_FD_OUTPUT], &message);
    close(fds[PROCESS_FD_REQUEST]);
    close(fds[PROCESS_FD_OUTPUT]);
    report(&keeper, &message);
    if (!started)
        _exit(1);
    for (;;) {
        struct pollfd ready[] = {{keeper.control, POLLIN, 0}, {keeper.signals, POLLIN, 0}};
        poll(ready, ML_COUNT(ready), -1);
        if (ready[1].revents)
            on_signals(&keeper);
        if (ready[0].revents)
            on_command(&keeper);
    }
}
