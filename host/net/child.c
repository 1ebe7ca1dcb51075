/* Runs a helper program, and gathers its output in the loop. */
#include "net/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wipe.h"

#define PIECE_BYTES    4096
#define PIECES_AT_ONCE 16 /* the loop has others to serve */

/* One of the two pipes. */
struct stream {
    struct ml_child *child;
    int fd; /* ours, or -1 */
    struct ml_loop_watch *watch;
    struct ml_buf text;
};

struct ml_child {
    pid_t pid;
    int pidfd; /* -1: reaped */
    struct ml_loop_watch *exit;
    struct stream output;
    struct stream errors;
    struct ml_timer timeout;
    bool timed_out;
    bool too_long;
    void (*ended)(void *context, const struct ml_child_end *end);
    void *context;
};

static void child_kill_group(const struct ml_child *child)
{
    kill(-child->pid, SIGKILL);
}

/* ---- starting ---- */

/* Signals as a program expects them, whatever the host ignores; a group of its own, so that what
 * it starts can be killed with it. */
static void set_spawn_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    posix_spawnattr_init(attributes);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &ignored);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                             POSIX_SPAWN_SETPGROUP);
}

/* Returns an errno. */
static int spawn_child(const struct ml_child_opts *opts, int output, int errors, pid_t *out_pid)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    set_spawn_attributes(&attributes);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    int failed = posix_spawnp(out_pid, opts->argv[0], &actions, &attributes,
                              (char *const *)opts->argv, (char *const *)opts->env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static int set_spawn_error(struct ml_err *err, const char *name, int failed)
{
    int kind = failed == EAGAIN || failed == ENOMEM || failed == EMFILE || failed == ENFILE ||
                       failed == E2BIG
                   ? ML_EIO
                   : ML_ENOT_FOUND;
    return ml_err_set(err, kind, "%s: %s", name, strerror(failed));
}

/* ---- its output and its end ---- */

static void stream_close(struct stream *stream)
{
    ml_loop_watch_free(ml_take(&stream->watch));
    ml_close_fd(&stream->fd);
}

/* Standard error keeps its beginning; output is all or nothing. */
static void stream_append(struct stream *stream, const char *bytes, size_t len)
{
    struct ml_child *child = stream->child;
    if (stream == &child->errors) {
        ml_buf_append(&stream->text, bytes, ML_MIN(len, stream->text.len_max - stream->text.len));
    } else if (!child->too_long && !ml_buf_append(&stream->text, bytes, len)) {
        child->too_long = true;
        child_kill_group(child);
    }
}

/* Reads without waiting. */
static void stream_read(void *context)
{
    struct stream *stream = context;
    char bytes[PIECE_BYTES];
    for (int i = 0; stream->fd >= 0 && i < PIECES_AT_ONCE; i++) {
        ssize_t len = read(stream->fd, bytes, sizeof bytes);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN)
            return;
        if (len <= 0)
            stream_close(stream);
        else
            stream_append(stream, bytes, (size_t)len);
    }
}

/* Makes the pipe. Returns the end that is the program's, or -1 with errno set. */
static int stream_open(struct stream *stream, struct ml_child *child, struct ml_loop *loop,
                       size_t len_max)
{
    int ends[2];
    stream->child = child;
    stream->fd = -1;
    ml_buf_init(&stream->text, len_max);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* only ours: programs expect that theirs blocks */
    stream->fd = ends[0];
    stream->watch = ml_loop_watch_fd(loop, stream->fd, stream_read, stream);
    return ends[1];
}

static void child_reap(struct ml_child *child, struct ml_child_end *out)
{
    siginfo_t info = {0};
    while (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED) < 0 && errno == EINTR)
        ;
    bool by_signal = info.si_code != CLD_EXITED;
    out->signo = by_signal ? info.si_status : 0;
    out->code = by_signal ? 128 + info.si_status : info.si_status;
    ml_loop_watch_free(ml_take(&child->exit));
    ml_close_fd(&child->pidfd);
}

static void on_child_exit(void *context)
{
    struct ml_child *child = context;
    struct ml_child_end end = {0};
    child_reap(child, &end);
    ml_timer_stop(&child->timeout);
    stream_read(&child->output); /* a pipe holds no more than is read at once */
    stream_read(&child->errors);
    stream_close(&child->output);
    stream_close(&child->errors);
    end.timed_out = child->timed_out;
    end.too_long = child->too_long;
    end.output = ml_buf_str(&child->output.text);
    end.errors = ml_buf_str(&child->errors.text);
    child->ended(child->context, &end); /* may free it */
}

static void on_child_timeout(void *context)
{
    struct ml_child *child = context;
    child->timed_out = true;
    child_kill_group(child);
}

/* ---- the interface ---- */

int ml_child_start(struct ml_loop *loop, const struct ml_child_opts *opts, struct ml_child **out,
                   struct ml_err *err)
{
    struct ml_child *child = ml_new(struct ml_child);
    child->pidfd = -1;
    child->ended = opts->ended;
    child->context = opts->context;
    ml_timer_init(&child->timeout, loop, on_child_timeout, child);
    int output = stream_open(&child->output, child, loop, opts->output_max);
    int errors = stream_open(&child->errors, child, loop, opts->errors_max);
    int failed = output < 0 || errors < 0 ? errno : spawn_child(opts, output, errors, &child->pid);
    ml_close_fd(&output);
    ml_close_fd(&errors);
    if (!failed && (child->pidfd = pidfd_open(child->pid, 0)) < 0) {
        failed = EMFILE;
        child_kill_group(child);
        waitpid(child->pid, NULL, 0);
    }
    if (failed) {
        ml_child_free(child);
        return set_spawn_error(err, opts->argv[0], failed);
    }
    child->exit = ml_loop_watch_fd(loop, child->pidfd, on_child_exit, child);
    ml_timer_start(&child->timeout, opts->timeout_ns);
    *out = child;
    return 0;
}

void ml_child_free(struct ml_child *child)
{
    struct ml_child_end ignored;
    if (!child)
        return;
    ml_timer_stop(&child->timeout);
    if (child->pidfd >= 0) {
        child_kill_group(child);
        child_reap(child, &ignored);
    }
    stream_close(&child->output);
    stream_close(&child->errors);
    ml_wipe_buf(&child->output.text); /* may hold a key */
    ml_buf_fini(&child->errors.text);
    free(child);
}
