/* Local processes as the host has them: forks the supervisor, sends it requests, delivers output
 * and ends, and writes standard input. */
#include "cluster/host/process.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/host/process_internal.h"

/* ---- a request, and what connects host and process ---- */

static void close_open_fds(const int *fds, size_t count)
{
    int saved = errno;
    for (size_t i = 0; i < count; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    errno = saved;
}

/* The host's ends of the pipes and sockets of a process, and the other ends; -1 where there is
 * none. */
struct ends {
    int ours[PROCESS_FD_COUNT];
    int theirs[PROCESS_FD_COUNT];
};

static bool open_pipe(int *reader, int *writer)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return false;
    *reader = fds[0];
    *writer = fds[1];
    return true;
}

static bool open_sockets(int *ours, int *theirs)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return false;
    *ours = fds[0];
    *theirs = fds[1];
    return true;
}

/* Leaves in `ends` whatever was opened, also on failure; all is -1 before. */
static bool open_ends(struct ends *ends, const struct ml_process_opts *opts)
{
    int *ours = ends->ours, *theirs = ends->theirs;
    theirs[PROCESS_FD_REQUEST] = process_request_open(
        opts, opts->beside ? ml_process_pid(opts->beside) : 0);
    if (theirs[PROCESS_FD_REQUEST] < 0 ||
        !open_sockets(&ours[PROCESS_FD_CONTROL], &theirs[PROCESS_FD_CONTROL]))
        return false;
    if (opts->terminal)
        return open_sockets(&ours[PROCESS_FD_OUTPUT], &theirs[PROCESS_FD_OUTPUT]);
    return open_pipe(&ours[PROCESS_FD_OUTPUT], &theirs[PROCESS_FD_OUTPUT]) &&
           (!opts->errors || open_pipe(&ours[PROCESS_FD_ERRORS], &theirs[PROCESS_FD_ERRORS])) &&
           (!opts->has_input || open_pipe(&theirs[PROCESS_FD_INPUT], &ours[PROCESS_FD_INPUT]));
}

/* Sends a request over the socket `supervisor`, and returns the host's ends of the pipes and
 * sockets between the two, which do not block; -1 where there is none. False and errno: it was not
 * sent. */
static bool process_submit(int supervisor, const struct ml_process_opts *opts,
                           int ours[PROCESS_FD_COUNT])
{
    struct ends ends;
    memset(&ends, -1, sizeof ends);
    bool sent = open_ends(&ends, opts);
    if (sent) {
        int fds[PROCESS_FD_COUNT];
        memcpy(fds, ends.theirs, sizeof fds);
        fds[PROCESS_FD_NETWORK] = opts->has_network ? opts->network : -1; /* stays the caller's */
        fds[PROCESS_FD_MEMORY] = opts->has_memory ? opts->memory : -1;    /* as well */
        sent = process_fds_send(supervisor, fds);
    }
    close_open_fds(ends.theirs, PROCESS_FD_COUNT);
    if (!sent) {
        close_open_fds(ends.ours, PROCESS_FD_COUNT);
        return false;
    }
    for (size_t i = 0; i < PROCESS_FD_COUNT; i++) {
        if (ends.ours[i] >= 0)
            fcntl(ends.ours[i], F_SETFL, O_NONBLOCK);
    }
    memcpy(ours, ends.ours, sizeof ends.ours);
    return true;
}

/* ---- processes ---- */

#define PIECE_BYTES    (16 * 1024)
#define PIECES_AT_ONCE 64 /* of what is left in the pipe at the end */

struct ml_processes {
    struct ml_loop *loop;
    int socket;
    pid_t supervisor;
    size_t count; /* not freed yet */
};

/* A descriptor that is read as bytes come, by the callback of a watch. */
struct stream {
    int fd; /* -1: at its end */
    struct ml_loop_watch *watch;
    struct ml_process *process;
    void (*deliver)(void *context, struct ml_str bytes); /* of output and errors */
};

/* The standard input of a process, which the host writes. */
struct input {
    int fd;                 /* -1: not there yet, or closed */
    struct event *writable; /* waits, when something waits in the host */
    struct evbuffer *bytes; /* that wait; NULL: nothing is taken any more */
    bool is_ending;         /* closed once nothing waits */
    bool owes_drained;      /* the writer knows that much waits, and waits for drained() */
};

struct ml_process {
    struct ml_processes *processes;
    struct ml_process_opts opts; /* without what they point to */
    struct stream output;        /* with a terminal: at first the socket over which it comes */
    struct stream errors;
    struct stream control;
    struct input input;
    bool has_terminal;
    int terminal; /* the upper end, once it is here; else -1 */
    struct ml_process_terminal size;
    struct ml_timer killer;
    int64_t kill_due; /* monotonic */
    struct ml_task resume;
    pid_t pid;
    bool asked_to_end;
    bool is_paused;
    bool is_over; /* `end` is set; the last output may not be read yet */
    struct ml_process_end end;
};

/* ---- input ---- */

/* Nothing more is taken, and drained() is not called. */
static void close_input(struct input *input)
{
    if (input->writable)
        event_free(ml_take(&input->writable));
    if (input->bytes)
        evbuffer_free(ml_take(&input->bytes));
    ml_close_fd(&input->fd);
}

static size_t count_waiting(const struct input *input)
{
    return input->bytes ? evbuffer_get_length(input->bytes) : 0;
}

/* Writes as much as is taken. False when nobody takes any more. */
static bool write_waiting(struct input *input)
{
    int written = 1;
    while (count_waiting(input) > 0 && written > 0)
        written = evbuffer_write(input->bytes, input->fd);
    return written > 0 || errno == EAGAIN || errno == EINTR;
}

static void flush_input(struct input *input)
{
    if (input->fd < 0)
        return;
    bool is_taken = write_waiting(input);
    if (!is_taken || (input->is_ending && count_waiting(input) == 0))
        close_input(input);
    else if (count_waiting(input) > 0)
        event_add(input->writable, NULL);
}

static void tell_drained(struct ml_process *process)
{
    struct input *input = &process->input;
    if (!input->owes_drained || count_waiting(input) >= ML_PROCESS_INPUT_LOW)
        return;
    input->owes_drained = false;
    if (process->opts.drained)
        process->opts.drained(process->opts.context);
}

static void on_input_writable(evutil_socket_t fd, short what, void *context)
{
    struct ml_process *process = context;
    (void)fd, (void)what;
    flush_input(&process->input);
    tell_drained(process);
}

/* From now on input is written to `fd`, which is owned and does not block. */
static void connect_input(struct ml_process *process, int fd)
{
    struct input *input = &process->input;
    if (!input->bytes) {
        close(fd);
        return;
    }
    input->fd = fd;
    input->writable = event_new(ml_loop_base(process->processes->loop), fd, EV_WRITE,
                                on_input_writable, process);
    ml_assert(input->writable != NULL);
    if (count_waiting(input) > 0 || input->is_ending)
        event_active(input->writable, EV_WRITE, 0); /* from the loop, as drained() has to be */
}

size_t ml_process_write(struct ml_process *process, struct ml_str bytes)
{
    struct input *input = &process->input;
    size_t before = count_waiting(input);
    if (!input->bytes || input->is_ending)
        return 0;
    if (bytes.len > ML_PROCESS_INPUT_MAX - before)
        return ML_PROCESS_INPUT_FULL;
    evbuffer_add(input->bytes, bytes.ptr, bytes.len);
    if (before == 0)
        flush_input(input);
    size_t waiting = count_waiting(input);
    input->owes_drained |= waiting >= ML_PROCESS_INPUT_LOW;
    return waiting;
}

void ml_process_end_input(struct ml_process *process)
{
    if (process->has_terminal)
        return;
    process->input.is_ending = true;
    if (count_waiting(&process->input) == 0)
        flush_input(&process->input);
}

/* ---- the supervisor ---- */

int ml_processes_new(struct ml_loop *loop, struct ml_processes **out, struct ml_err *err)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return ml_err_set(err, ML_EIO, "start processes: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        process_supervisor(sockets[1]);
    }
    int failed = errno;
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        return ml_err_set(err, ML_EIO, "start processes: %s", strerror(failed));
    }
    struct ml_processes *processes = ml_new(struct ml_processes);
    *processes = (struct ml_processes){.loop = loop, .socket = sockets[0], .supervisor = pid};
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

void ml_processes_end(struct ml_processes *processes)
{
    close(processes->socket);
    while (waitpid(processes->supervisor, NULL, 0) < 0 && errno == EINTR)
        ;
}

void ml_processes_free(struct ml_processes *processes)
{
    if (!processes)
        return;
    ml_assert(processes->count == 0);
    ml_processes_end(processes);
    free(processes);
}

/* ---- output and end ---- */

static void close_stream(struct stream *stream)
{
    ml_loop_watch_free(ml_take(&stream->watch));
    ml_close_fd(&stream->fd);
}

static void close_process_ends(struct ml_process *process)
{
    close_stream(&process->output);
    close_stream(&process->errors);
    close_input(&process->input);
    ml_close_fd(&process->terminal);
}

static void notify_process_ended(struct ml_process *process)
{
    close_process_ends(process);
    if (process->opts.ended)
        process->opts.ended(process->opts.context, &process->end); /* may free it */
}

static void on_stream_readable(void *context);

static void watch_stream(struct stream *stream)
{
    if (stream->fd >= 0)
        stream->watch = ml_loop_watch_fd(stream->process->processes->loop, stream->fd,
                                         on_stream_readable, stream);
}

static void set_terminal_size(struct ml_process *process)
{
    const struct winsize size = {.ws_row = process->size.rows, .ws_col = process->size.columns};
    ioctl(process->terminal, TIOCSWINSZ, &size);
}

/* Takes over the terminal that the process has opened: it is input and output from now on. False
 * when it has not come. */
static bool receive_terminal(struct ml_process *process)
{
    int terminal = process_fds_receive_terminal(process->output.fd);
    if (terminal < 0) {
        if (errno != EAGAIN)
            close_stream(&process->output);
        return false;
    }
    close_stream(&process->output);
    int output = fcntl(terminal, F_DUPFD_CLOEXEC, 3), input = fcntl(terminal, F_DUPFD_CLOEXEC, 3);
    if (output < 0 || input < 0) { /* no descriptors: the terminal hangs up */
        ml_close_fd(&terminal);
        ml_close_fd(&output);
        ml_close_fd(&input);
        return false;
    }
    process->terminal = terminal;
    process->output.fd = output;
    if (!process->is_paused)
        watch_stream(&process->output);
    set_terminal_size(process);
    connect_input(process, input);
    return true;
}

/* Delivers one piece; false when there is none now, or at the end. */
static bool read_piece(struct stream *stream)
{
    static char bytes[PIECE_BYTES];
    struct ml_process *process = stream->process;
    if (stream->fd < 0)
        return false;
    if (process->has_terminal && process->terminal < 0)
        return receive_terminal(process);
    ssize_t len = read(stream->fd, bytes, sizeof bytes);
    bool hung_up = len < 0 && errno == EIO; /* nobody has the terminal any more */
    if (len > 0)
        stream->deliver(process->opts.context, (struct ml_str){bytes, (size_t)len});
    else if (len == 0 || hung_up)
        close_stream(stream);
    if (hung_up) { /* what waits is dropped */
        close_input(&process->input);
        tell_drained(process);
    }
    return len > 0;
}

/* Nothing of it runs any more: the pipes hold the last output, whoever has them open. */
static void read_last_output(struct ml_process *process)
{
    bool more = true, more_errors = true;
    for (int i = 0; (more || more_errors) && !process->is_paused && i < PIECES_AT_ONCE; i++) {
        more = more && read_piece(&process->output);
        if (!process->is_paused)
            more_errors = more_errors && read_piece(&process->errors);
    }
    if (!process->is_paused)
        notify_process_ended(process);
}

static void on_stream_readable(void *context)
{
    struct stream *stream = context;
    read_piece(stream);
    if (stream->process->is_over)
        read_last_output(stream->process);
}

static void resume_last_output(void *context)
{
    read_last_output(context);
}

static void end_process(struct ml_process *process)
{
    close_stream(&process->control);
    ml_timer_stop(&process->killer);
    process->is_over = true;
    if (!process->is_paused)
        read_last_output(process);
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

/* The shim reports; a socket that closes without a report: the shim was killed. */
static void on_shim_report(void *context)
{
    struct ml_process *process = context;
    struct process_report report;
    ssize_t len;
    do /* a shim that exits with an unread command resets the socket before its report is read */
        len = recv(process->control.fd, &report, sizeof report, 0);
    while (len < 0 && (errno == EINTR || errno == ECONNRESET));
    if (len < 0 && errno == EAGAIN)
        return;
    if (len != sizeof report) {
        process->end.code = process->pid ? 128 + SIGKILL : 128;
        snprintf(process->end.message, sizeof process->end.message, "its shim was killed");
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

/* Connects it with our ends. */
static void connect_process(struct ml_process *process, const int ours[PROCESS_FD_COUNT])
{
    struct ml_loop *loop = process->processes->loop;
    process->output = (struct stream){ours[PROCESS_FD_OUTPUT], NULL, process, process->opts.output};
    process->errors = (struct stream){ours[PROCESS_FD_ERRORS], NULL, process, process->opts.errors};
    process->control.fd = ours[PROCESS_FD_CONTROL];
    watch_stream(&process->output);
    watch_stream(&process->errors);
    process->control.watch = ml_loop_watch_fd(loop, process->control.fd, on_shim_report, process);
    process->input = (struct input){.fd = -1};
    if (process->opts.has_input) {
        process->input.bytes = evbuffer_new();
        ml_assert(process->input.bytes != NULL);
    }
    if (process->opts.has_input && !process->has_terminal)
        connect_input(process, ours[PROCESS_FD_INPUT]);
}

int ml_process_start(struct ml_processes *processes, const struct ml_process_opts *opts,
                     struct ml_process **out, struct ml_err *err)
{
    int ours[PROCESS_FD_COUNT];
    if (!process_submit(processes->socket, opts, ours))
        return ml_err_set(err, ML_EIO, "start %s: %s", opts->argv[0], strerror(errno));
    struct ml_process *process = ml_new(struct ml_process);
    process->processes = processes;
    process->opts = *opts;
    process->opts.count_max = opts->count_max ? opts->count_max : ML_PROCESS_COUNT_MAX;
    process->terminal = -1;
    process->has_terminal = opts->terminal != NULL;
    if (opts->terminal)
        process->size = *opts->terminal;
    connect_process(process, ours);
    ml_timer_init(&process->killer, processes->loop, kill_whole_process, process);
    ml_task_init(&process->resume, resume_last_output, process);
    processes->count++;
    *out = process;
    return 0;
}

void ml_process_free(struct ml_process *process)
{
    if (!process)
        return;
    close_stream(&process->control); /* upon which the shim kills all */
    close_process_ends(process);
    ml_timer_stop(&process->killer);
    ml_task_cancel(&process->resume);
    process->processes->count--;
    free(process);
}

void ml_process_signal(struct ml_process *process, int signo)
{
    process_command command = signo;
    if (process->control.fd >= 0)
        send(process->control.fd, &command, sizeof command, MSG_NOSIGNAL);
}

void ml_process_stop(struct ml_process *process, int64_t grace_ns)
{
    if (process->control.fd < 0)
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
    if (process->is_paused == paused)
        return;
    process->is_paused = paused;
    if (paused) {
        ml_loop_watch_free(ml_take(&process->output.watch));
        ml_loop_watch_free(ml_take(&process->errors.watch));
    } else if (process->is_over) {
        ml_task_defer(&process->resume, process->processes->loop);
    } else {
        watch_stream(&process->output);
        watch_stream(&process->errors);
    }
}

void ml_process_resize(struct ml_process *process, uint16_t columns, uint16_t rows)
{
    process->size = (struct ml_process_terminal){.rows = rows, .columns = columns};
    if (process->terminal >= 0)
        set_terminal_size(process);
}

int ml_process_pid(const struct ml_process *process)
{
    return process->pid;
}
