#include "cluster/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/process_internal.h"

#define PIECE_BYTES    (16 * 1024)
#define PIECES_AT_ONCE 64 /* of what is left in the pipe at the end */

struct ml_processes {
    struct ml_loop *loop;
    int socket;
    pid_t warden;
    size_t count; /* not freed yet */
};

struct ml_process {
    struct ml_processes *processes;
    struct ml_process_opts opts; /* without the strings */
    int output_fd;
    int control_fd;
    struct ml_loop_watch *output;
    struct ml_loop_watch *control;
    struct ml_timer killer;
    int64_t kill_due; /* monotonic */
    struct ml_task resume;
    pid_t pid;
    bool asked_to_end;
    bool paused;
    bool over; /* `end` is set; the last output may not be read yet */
    struct ml_process_end end;
};

/* ---- the warden ---- */

int ml_processes_new(struct ml_loop *loop, struct ml_processes **out, struct ml_err *err)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return ml_err_set(err, ML_EIO, "start processes: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        process_warden(sockets[1]);
    }
    int failed = errno;
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        return ml_err_set(err, ML_EIO, "start processes: %s", strerror(failed));
    }
    struct ml_processes *processes = ml_new(struct ml_processes);
    *processes = (struct ml_processes){.loop = loop, .socket = sockets[0], .warden = pid};
    *out = processes;
    return 0;
}

int ml_processes_try_container(const char *folder, struct ml_err *err)
{
    struct process_report report = {0};
    if (process_container_try(folder, &report))
        return 0;
    return ml_err_set(err, ML_EIO, "%s", report.message);
}

void ml_processes_free(struct ml_processes *processes)
{
    if (!processes)
        return;
    ml_assert(processes->count == 0);
    close(processes->socket);
    while (waitpid(processes->warden, NULL, 0) < 0 && errno == EINTR)
        ;
    free(processes);
}

/* ---- starting ---- */

/* Without the last one, when it is -1. */
static bool send_fds_to_warden(int socket, const int fds[PROCESS_FD_COUNT])
{
    size_t count = fds[PROCESS_FD_NETWORK] < 0 ? PROCESS_FD_NETWORK : PROCESS_FD_COUNT;
    char byte = 0;
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(sizeof(int) * PROCESS_FD_COUNT)];
    } control = {.space = {0}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static void close_open_fds(const int *fds, size_t count)
{
    int saved = errno;
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    errno = saved;
}

/* Sends the request to the warden and returns our ends of output and control. */
static bool submit_to_warden(struct ml_processes *processes, const struct ml_process_opts *opts,
                             int *out_output, int *out_control)
{
    int request = process_request_open(opts), output[2] = {-1, -1}, control[2] = {-1, -1};
    bool sent = request >= 0 && pipe2(output, O_CLOEXEC) == 0 &&
                socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0 &&
                send_fds_to_warden(processes->socket,
                                   (int[]){request, output[1], control[1],
                                           opts->has_network ? opts->network : -1});
    close_open_fds((int[]){request, output[1], control[1]}, 3);
    if (!sent) {
        close_open_fds((int[]){output[0], control[0]}, 2);
        return false;
    }
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    fcntl(control[0], F_SETFL, O_NONBLOCK);
    *out_output = output[0];
    *out_control = control[0];
    return true;
}

/* ---- output and end ---- */

static void close_watched_fd(struct ml_loop_watch **watch, int *fd)
{
    ml_loop_watch_free(ml_take(watch));
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void notify_process_ended(struct ml_process *process)
{
    close_watched_fd(&process->output, &process->output_fd);
    if (process->opts.ended)
        process->opts.ended(process->opts.context, &process->end); /* may free it */
}

/* Delivers one piece; false when there is none now, or at the end. */
static bool read_output_piece(struct ml_process *process)
{
    static char bytes[PIECE_BYTES];
    ssize_t len = process->output_fd < 0 ? 0 : read(process->output_fd, bytes, sizeof bytes);
    if (len > 0)
        process->opts.output(process->opts.context, (struct ml_str){bytes, (size_t)len});
    else if (len == 0)
        close_watched_fd(&process->output, &process->output_fd);
    return len > 0;
}

static void on_process_output(void *context)
{
    struct ml_process *process = context;
    bool more = read_output_piece(process);
    if (!process->over)
        return;
    /* Nothing of it runs any more: the pipe holds the last output, whoever has it open. */
    for (int i = 0; more && !process->paused && i < PIECES_AT_ONCE; i++)
        more = read_output_piece(process);
    if (!process->paused)
        notify_process_ended(process);
}

static void end_process(struct ml_process *process)
{
    close_watched_fd(&process->control, &process->control_fd);
    ml_timer_stop(&process->killer);
    process->over = true;
    if (!process->paused)
        on_process_output(process);
}

static void fill_process_end(struct ml_process *process, const struct process_report *report)
{
    struct ml_process_end *out = &process->end;
    int status = report->value;
    out->signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->code = out->signo ? 128 + out->signo : WEXITSTATUS(status);
    out->too_many = report->too_many;
    if (report->too_many)
        snprintf(out->message, sizeof out->message, "killed: more than %u processes",
                 process->opts.count_max);
}

/* The keeper reports; a socket that closes without a report: the keeper was killed. */
static void on_keeper_report(void *context)
{
    struct ml_process *process = context;
    struct process_report report;
    ssize_t len;
    do /* a keeper that exits with an unread command resets the socket before its report is read */
        len = recv(process->control_fd, &report, sizeof report, 0);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    if (len < 0 && errno == EAGAIN)
        return;
    if (len != sizeof report) {
        process->end.code = process->pid ? 128 + SIGKILL : 128;
        snprintf(process->end.message, sizeof process->end.message, "its keeper has gone");
        end_process(process);
    } else if (report.what == PROCESS_STARTED) {
        process->pid = report.value;
        process->end.started = true;
        if (process->opts.started)
            process->opts.started(process->opts.context);
    } else if (report.what == PROCESS_FAILED) {
        process->end.code = 128;
        memcpy(process->end.message, report.message, sizeof report.message);
        end_process(process);
    } else {
        fill_process_end(process, &report);
        end_process(process);
    }
}

/* ---- the interface ---- */

static void kill_whole_process(void *context)
{
    ml_process_signal(context, SIGKILL);
}

int ml_process_start(struct ml_processes *processes, const struct ml_process_opts *opts,
                     struct ml_process **out, struct ml_err *err)
{
    int output, control;
    if (!submit_to_warden(processes, opts, &output, &control))
        return ml_err_set(err, ML_EIO, "start %s: %s", opts->argv[0], strerror(errno));
    struct ml_process *process = ml_new(struct ml_process);
    process->processes = processes;
    process->opts = *opts;
    process->opts.count_max = opts->count_max ? opts->count_max : ML_PROCESS_COUNT_MAX;
    process->output_fd = output;
    process->control_fd = control;
    process->output = ml_loop_watch_fd(processes->loop, output, on_process_output, process);
    process->control = ml_loop_watch_fd(processes->loop, control, on_keeper_report, process);
    ml_timer_init(&process->killer, processes->loop, kill_whole_process, process);
    ml_task_init(&process->resume, on_process_output, process);
    processes->count++;
    *out = process;
    return 0;
}

void ml_process_free(struct ml_process *process)
{
    if (!process)
        return;
    close_watched_fd(&process->control, &process->control_fd); /* upon which the keeper kills all */
    close_watched_fd(&process->output, &process->output_fd);
    ml_timer_stop(&process->killer);
    ml_task_cancel(&process->resume);
    process->processes->count--;
    free(process);
}

void ml_process_signal(struct ml_process *process, int signo)
{
    process_command command = signo;
    if (process->control_fd >= 0)
        send(process->control_fd, &command, sizeof command, MSG_NOSIGNAL);
}

void ml_process_stop(struct ml_process *process, int64_t grace_ns)
{
    if (process->control_fd < 0)
        return;
    if (grace_ns <= 0) {
        kill_whole_process(process);
        return;
    }
    if (!process->asked_to_end)
        ml_process_signal(process, SIGTERM);
    process->asked_to_end = true;
    int64_t due = ml_clock_monotonic(ml_loop_clock(process->processes->loop)) + grace_ns;
    if (ml_timer_active(&process->killer) && process->kill_due <= due)
        return;
    process->kill_due = due;
    ml_timer_start(&process->killer, grace_ns);
}

void ml_process_pause(struct ml_process *process, bool paused)
{
    if (process->paused == paused)
        return;
    process->paused = paused;
    if (paused)
        ml_loop_watch_free(ml_take(&process->output));
    else if (process->over)
        ml_task_defer(&process->resume, process->processes->loop);
    else if (process->output_fd >= 0)
        process->output = ml_loop_watch_fd(process->processes->loop, process->output_fd,
                                           on_process_output, process);
}

int ml_process_pid(const struct ml_process *process)
{
    return process->pid;
}
