/* The helper that runs tests of scripts, the process of each run, and the host's side of them. */
#include "cluster/host/tester.h"

#include "cluster/host/process_child.h"
#include "cluster/host/process_path.h"
#include "cluster/host/world.h"
#include "codec/json.h"
#include "operator/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SANITIZED_SHARE 2 /* sanitizers make tests so many times slower */
#define CPU_S           (ML_SANITIZED ? SANITIZED_SHARE * ML_TESTS_CPU_S : ML_TESTS_CPU_S)
#define WALL_S          (3 * CPU_S)
#define MIB             ((size_t)1024 * 1024)
#define MEMORY_MAX      (2048 * MIB) /* of the process of a run */
#define FILE_MAX        (64 * MIB)   /* that it writes */
#define JOB_MAX         (64 * MIB)
#define ANSWER_MAX      ((size_t)16 * 1024)
#define REPORT_MAX      MIB
#define RUNS_AT_ONCE    2

#define REPORT "report" /* beside the folder of the files */
#define FILES  "files"
#define CRDS   FILES "/crds"

/* The protocol. The host sends the helper one end of a new pair of sockets for each run, and over
 * that the job: its size, then records. The answer is an outcome, one byte, and its message; the
 * end of the connection ends a run. */
enum record_kind {
    RECORD_FILE,       /* name, text */
    RECORD_TEST,       /* name of a file to run */
    RECORD_DEFINITION, /* name, text */
    RECORD_CRDS,       /* a folder */
    RECORD_FOLDER,     /* a folder */
};

struct record {
    enum record_kind kind;
    struct ml_str name, text; /* in the job */
};

struct record_head {
    enum record_kind kind;
    uint32_t name_len;
    uint64_t text_len;
};

/* False: that was the last one. */
static bool next_record(struct ml_str *rest, struct record *out)
{
    struct record_head head;
    if (rest->len < sizeof head)
        return false;
    memcpy(&head, rest->ptr, sizeof head);
    const char *name = rest->ptr + sizeof head;
    out->kind = head.kind;
    out->name = (struct ml_str){name, head.name_len};
    out->text = (struct ml_str){name + head.name_len, head.text_len};
    size_t len = sizeof head + head.name_len + head.text_len;
    *rest = (struct ml_str){rest->ptr + len, rest->len - len};
    return true;
}

/* The text of the first record of the kind, or NULL; the caller frees it. */
static char *find_text(struct ml_str job, enum record_kind kind)
{
    struct record record;
    while (next_record(&job, &record))
        if (record.kind == kind)
            return ml_str_dup(record.text);
    return NULL;
}

/* ---- the process that runs the tests ---- */

static void limit(int what, rlim_t soft, rlim_t hard)
{
    const struct rlimit both = {soft, hard};
    setrlimit(what, &both);
}

/* Gives up what tests do not need. Without user namespaces the network stays. */
static void confine(const char *root, const char *folder, const char *crds)
{
    struct ml_log log;
    ML_AUTO_FREE char *own = ml_asprintf("%s/.", root);
    const char *readable[] = {own, folder ? folder : own, folder ? "./." : own, crds, NULL};
    const char *const writable[] = {own, NULL};
    limit(RLIMIT_CPU, CPU_S, CPU_S + 1);
    limit(RLIMIT_FSIZE, FILE_MAX, FILE_MAX);
    if (!ML_SANITIZED)
        limit(RLIMIT_AS, MEMORY_MAX, MEMORY_MAX);
    (void)!unshare(CLONE_NEWUSER | CLONE_NEWNET);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* new credentials reset it */
    ml_log_init(&log, ml_clock_real(), STDOUT_FILENO, ML_LOG_TEXT, ML_LOG_ERROR);
    ml_lockdown(
        &(struct ml_lockdown_opts){.readable = readable, .writable = writable, .log = &log});
}

/* The argument of run() in cluster/testing/verdict.lua. */
static void describe_run(struct ml_buf *out, const char *root, struct ml_str job)
{
    struct ml_json_writer writer;
    struct record record;
    ML_AUTO_FREE char *report = ml_asprintf("%s/" REPORT, root);
    ML_AUTO_FREE char *folder = ml_asprintf("%s/" FILES, root);
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "report", ml_str_of(report));
    ml_json_put_string(&writer, "folder", ml_str_of(folder));
    ml_json_key(&writer, ML_STR("tests"));
    ml_json_begin_array(&writer);
    while (next_record(&job, &record))
        if (record.kind == RECORD_TEST)
            ml_json_string(&writer, record.name);
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
}

/* Its verdict is in the report; the exit code is 0 when that is complete. */
ML_NORETURN static void run_tests(const char *root, struct ml_str job)
{
    ML_AUTO(ml_buf_fini) struct ml_buf argument = ML_BUF_INIT;
    const struct ml_world_options options = {.log_fd = -1};
    struct ml_world *world;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *folder = find_text(job, RECORD_FOLDER);
    ML_AUTO_FREE char *crds = find_text(job, RECORD_CRDS);
    ML_AUTO_FREE char *files = ml_asprintf("%s/" FILES, root);
    describe_run(&argument, root, job);
    if (!folder && chdir(files) < 0)
        _exit(1);
    confine(root, folder, crds);
    if (ml_world_new(&options, &world, &err) < 0)
        _exit(1);
    ml_world_lua_open(world);
    int r = ml_server_lua_call(ml_world_server_lua(world), "cluster.testing.verdict", "run",
                               ml_buf_str(&argument), NULL, &err);
    _exit(r < 0);
}

/* ---- the process that keeps a run ---- */

struct keeper {
    int socket; /* of the host */
    struct ml_buf job;
    struct ml_str records; /* in the job */
    char *root;            /* the folder of the run */
    char problem[256];     /* why nothing could be run; "": none */
};

ML_PRINTF(2, 3)
static void keeper_fail(struct keeper *self, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!self->problem[0])
        vsnprintf(self->problem, sizeof self->problem, format, args);
    va_end(args);
}

static bool read_all(int fd, void *bytes, size_t len)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = read(fd, (char *)bytes + got, len - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* False: the host does not want it any more. */
static bool keeper_read_job(struct keeper *self)
{
    uint64_t len;
    if (!read_all(self->socket, &len, sizeof len) || len > JOB_MAX)
        return false;
    ml_buf_init(&self->job, JOB_MAX + 1);
    char *into = ml_buf_reserve(&self->job, len + 1);
    if (!into || !read_all(self->socket, into, len))
        return false;
    self->job.len += len;
    self->records = ml_buf_str(&self->job);
    return true;
}

static void keeper_write_file(struct keeper *self, const char *folder, const struct record *record)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/%s/" ML_STR_FMT, self->root, folder,
                                          ML_STR_ARG(record->name));
    ML_AUTO(ml_close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    for (struct ml_str rest = record->text; fd >= 0 && rest.len > 0;) {
        ssize_t n = write(fd, rest.ptr, rest.len);
        if (n < 0 && errno != EINTR)
            break;
        rest = (struct ml_str){rest.ptr + ML_MAX(n, 0), rest.len - (size_t)ML_MAX(n, 0)};
        if (rest.len == 0)
            return;
    }
    if (fd < 0 || record->text.len > 0)
        keeper_fail(self, "%s: cannot be written: %s", path, strerror(errno));
}

/* crds/ is always made: the tests would take another one that is beside the folder. */
static void keeper_make_crds(struct keeper *self)
{
    char real[PATH_MAX];
    ML_AUTO_FREE char *path = ml_asprintf("%s/" CRDS, self->root);
    ML_AUTO_FREE char *crds = find_text(self->records, RECORD_CRDS);
    if (crds ? !realpath(crds, real) || symlink(real, path) < 0 : mkdir(path, 0700) < 0)
        keeper_fail(self, "%s: %s", crds ? crds : path, strerror(errno));
}

static void keeper_make_folder(struct keeper *self)
{
    const char *parent = getenv("TMPDIR");
    self->root = ml_asprintf("%s/moonloop-tests-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(self->root)) {
        keeper_fail(self, "%s: cannot be made: %s", self->root, strerror(errno));
        free(ml_take(&self->root));
        return;
    }
    ML_AUTO_FREE char *files = ml_asprintf("%s/" FILES, self->root);
    if (mkdir(files, 0700) < 0)
        keeper_fail(self, "%s: %s", files, strerror(errno));
    keeper_make_crds(self);
    struct ml_str rest = self->records;
    for (struct record record; next_record(&rest, &record);) {
        if (record.kind == RECORD_FILE)
            keeper_write_file(self, FILES, &record);
        if (record.kind == RECORD_DEFINITION)
            keeper_write_file(self, CRDS, &record);
    }
}

static int64_t now_ms(void)
{
    return ml_clock_monotonic(ml_clock_real()) / ML_NS_PER_MS;
}

/* Waits for the end of the process. False: the host does not want it any more. Sets `out_late` when
 * it took too long. */
static bool keeper_await(const struct keeper *self, int pidfd, bool *out_late)
{
    int64_t until_ms = now_ms() + INT64_C(1000) * WALL_S;
    for (;;) {
        struct pollfd ready[] = {{pidfd, POLLIN, 0}, {self->socket, POLLIN, 0}};
        int64_t left_ms = until_ms - now_ms();
        *out_late = left_ms <= 0;
        if (*out_late)
            return true;
        if (poll(ready, ML_COUNT(ready), (int)left_ms) < 0 && errno != EINTR)
            return false;
        if (ready[1].revents) /* it sends nothing: that is the end */
            return false;
        if (ready[0].revents)
            return true;
    }
}

/* Fills in how the process ended. False: the host does not want it any more. */
static bool keeper_run(struct keeper *self, int *out_status, bool *out_late)
{
    *out_late = false;
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        run_tests(self->root, self->records);
    }
    ML_AUTO(ml_close_fd) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (pid < 0)
        keeper_fail(self, "no process can be made: %s", strerror(errno));
    bool wanted = pid < 0 || pidfd < 0 || keeper_await(self, pidfd, out_late);
    if (pid > 0) {
        kill(-pid, SIGKILL);
        kill(pid, SIGKILL); /* it may not have its group yet */
        while (waitpid(pid, out_status, 0) < 0 && errno == EINTR)
            ;
    }
    return wanted;
}

/* The last line of the report that begins with the word, or an empty one. */
static struct ml_str last_line(struct ml_str report, const char *word)
{
    struct ml_str found = {NULL, 0};
    while (report.len > 0) {
        struct ml_str line = ml_str_cut(&report, '\n');
        if (ml_str_starts(line, word))
            found = (struct ml_str){line.ptr + strlen(word), line.len - strlen(word)};
    }
    return found;
}

static void keeper_read_report(const struct keeper *self, struct ml_buf *out)
{
    ML_AUTO_FREE char *path = ml_asprintf("%s/" REPORT, self->root);
    ML_AUTO(ml_close_fd) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ml_buf_init(out, REPORT_MAX + 1);
    char *into = fd >= 0 ? ml_buf_reserve(out, REPORT_MAX) : NULL;
    ssize_t got = into ? read(fd, into, REPORT_MAX) : 0;
    out->len += (size_t)ML_MAX(got, 0);
}

/* Why the process ended before its verdict. */
static void describe_end(struct ml_buf *out, int status, bool late)
{
    int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (late)
        ml_buf_printf(out, "it has not ended after %d s", WALL_S);
    else if (signo == SIGXCPU)
        ml_buf_printf(out, "all tests of a version have %d s of CPU time, and it needs more",
                      CPU_S);
    else if (signo)
        ml_buf_printf(out, "it ends its process (signal %d)", signo);
    else
        ml_buf_printf(out, "it ends its process (exit code %d)", WEXITSTATUS(status));
}

static struct ml_str first_test(const struct keeper *self)
{
    struct ml_str rest = self->records;
    for (struct record record; next_record(&rest, &record);)
        if (record.kind == RECORD_TEST)
            return record.name;
    return ML_STR("tests");
}

/* From the report's lines (verdict.lua). */
static enum ml_tests_outcome keeper_judge(struct keeper *self, int status, bool late,
                                          struct ml_buf *message)
{
    ML_AUTO(ml_buf_fini) struct ml_buf report = ML_BUF_INIT;
    keeper_read_report(self, &report);
    struct ml_str lost = last_line(ml_buf_str(&report), "lost ");
    struct ml_str failed = last_line(ml_buf_str(&report), "failed ");
    struct ml_str began = last_line(ml_buf_str(&report), "began ");
    bool ended = last_line(ml_buf_str(&report), "passed").ptr;
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 && !failed.ptr)
        return ML_TESTS_PASS;
    if (lost.ptr) {
        ml_buf_append_str(message, lost);
        return ML_TESTS_LOST;
    }
    if (failed.ptr) {
        ml_buf_append_str(message, failed);
        return ML_TESTS_FAIL;
    }
    ml_buf_append_str(message, began.ptr ? began : first_test(self));
    ml_buf_puts(message, ": ");
    describe_end(message, status, late);
    return ML_TESTS_FAIL;
}

/* One run, from the job to the answer. */
ML_NORETURN static void keep_run(int socket)
{
    struct keeper self = {.socket = socket};
    ML_AUTO(ml_buf_fini) struct ml_buf message = ML_BUF_INIT, answer = ML_BUF_INIT;
    int status = 0;
    bool late = false, wanted = keeper_read_job(&self);
    char outcome = ML_TESTS_LOST;
    prctl(PR_SET_NAME, "moonloop-tests");
    if (wanted)
        keeper_make_folder(&self);
    if (wanted && !self.problem[0])
        wanted = keeper_run(&self, &status, &late);
    if (wanted && !self.problem[0])
        outcome = (char)keeper_judge(&self, status, late, &message);
    if (self.problem[0])
        ml_buf_puts(&message, self.problem);
    if (self.root)
        process_path_remove(AT_FDCWD, self.root);
    ml_buf_append(&answer, &outcome, 1);
    ml_buf_append(&answer, message.ptr, ML_MIN(message.len, ANSWER_MAX - 1));
    if (wanted)
        (void)!send(socket, answer.ptr, answer.len, MSG_NOSIGNAL);
    _exit(0);
}

/* ---- the helper ---- */

/* They say where busted is, and where temporary files go; all others are wiped. */
static const char *const kept_variables[] = {
    "PATH", "TMPDIR", "TZ", "LUA_PATH", "LUA_PATH_5_4", "LUA_CPATH", "LUA_CPATH_5_4"};

ML_NORETURN static void serve_runs(int socket)
{
    char *values[ML_COUNT(kept_variables)];
    int fds[PROCESS_CHILD_FDS_MAX];
    size_t count;
    char byte;
    for (size_t i = 0; i < ML_COUNT(values); i++)
        values[i] = ml_strdup(getenv(kept_variables[i]));
    process_child_begin(socket, "moonloop-tester");
    for (size_t i = 0; i < ML_COUNT(values); i++)
        if (values[i])
            setenv(kept_variables[i], values[i], 1);
    while (process_child_receive(socket, &byte, 1, fds, &count, 0) > 0) {
        if (count > 0 && fork() == 0) {
            close(socket);
            keep_run(fds[0]);
        }
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    _exit(0);
}

/* ---- the host's side ---- */

struct tester {
    struct ml_tester interface;
    pid_t helper;
    int socket;
    struct ml_list waiting; /* runs */
    size_t running;
};

struct ml_tests_run {
    struct tester *tester;
    struct ml_loop *loop;
    struct ml_list node;
    bool is_running;
    struct ml_buf job; /* with its size */
    size_t sent;
    int socket; /* or -1 */
    struct ml_loop_watch *readable;
    struct ml_timer send; /* more of the job; the loop does not tell when there is room */
    struct ml_buf answer;
    ml_tests_done *done;
    void *context;
};

#define SEND_AGAIN_NS ML_NS_PER_MS

static void begin_waiting(struct tester *self);

/* Frees the run, and lets another one begin. */
static void run_free(struct ml_tests_run *run)
{
    struct tester *tester = run->tester;
    ml_timer_stop(&run->send);
    ml_loop_watch_free(run->readable);
    ml_close_fd(&run->socket);
    if (run->is_running)
        tester->running--;
    else
        ml_list_remove(&run->node);
    ml_buf_fini(&run->job);
    ml_buf_fini(&run->answer);
    free(run);
    begin_waiting(tester);
}

static void run_end(struct ml_tests_run *run)
{
    struct ml_err err = ML_ERR_INIT;
    enum ml_tests_outcome outcome = ML_TESTS_LOST;
    ml_tests_done *done = run->done;
    void *context = run->context;
    if (run->answer.len > 0) {
        outcome = (enum ml_tests_outcome)run->answer.ptr[0];
        if (outcome != ML_TESTS_PASS)
            ml_err_set(&err, ML_ESCRIPT, "%.*s", (int)run->answer.len - 1, run->answer.ptr + 1);
    } else {
        ml_err_set(&err, ML_EIO,
                   "the process that runs tests has died; start moonloop again to have them run");
    }
    run_free(run);
    done(context, outcome, &err);
}

static void run_on_readable(void *context)
{
    struct ml_tests_run *run = context;
    char bytes[4096];
    ssize_t len = recv(run->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len > 0 && ml_buf_append(&run->answer, bytes, (size_t)len))
        return;
    run_end(run);
}

static void run_send(void *context)
{
    struct ml_tests_run *run = context;
    while (run->socket >= 0 && run->sent < run->job.len) {
        ssize_t len = send(run->socket, run->job.ptr + run->sent, run->job.len - run->sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
        if (len < 0 && errno != EAGAIN && errno != EINTR)
            return; /* the end comes to be read */
        if (len < 0) {
            ml_timer_start(&run->send, SEND_AGAIN_NS);
            return;
        }
        run->sent += (size_t)len;
    }
    if (run->socket < 0) /* there is no helper any more */
        run_end(run);
}

static void begin_run(struct tester *self, struct ml_tests_run *run)
{
    int ends[2];
    self->running++;
    run->is_running = true;
    ml_timer_start(&run->send, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return;
    if (process_child_send(self->socket, "j", 1, &ends[1], 1)) {
        run->socket = ends[0];
        run->readable = ml_loop_watch_fd(run->loop, run->socket, run_on_readable, run);
    } else {
        close(ends[0]);
    }
    close(ends[1]);
}

static void begin_waiting(struct tester *self)
{
    while (self->running < RUNS_AT_ONCE && !ml_list_empty(&self->waiting))
        begin_run(self, ml_container_of(ml_list_shift(&self->waiting), struct ml_tests_run, node));
}

static void put_record(struct ml_buf *job, enum record_kind kind, struct ml_str name,
                       struct ml_str text)
{
    const struct record_head head = {kind, (uint32_t)name.len, text.len};
    ml_buf_append(job, &head, sizeof head);
    ml_buf_append_str(job, name);
    ml_buf_append_str(job, text);
}

static void put_files(struct ml_buf *job, enum record_kind kind, const struct ml_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        put_record(job, kind, files->files[i].name, files->files[i].text);
}

static void put_job(struct ml_buf *out, const struct ml_tests_job *job)
{
    uint64_t len = 0;
    ml_buf_append(out, &len, sizeof len);
    put_files(out, RECORD_FILE, job->files);
    put_files(out, RECORD_DEFINITION, job->definitions);
    for (const char *const *test = job->tests; *test; test++)
        put_record(out, RECORD_TEST, ml_str_of(*test), ML_STR(""));
    if (job->crds)
        put_record(out, RECORD_CRDS, ML_STR(""), ml_str_of(job->crds));
    if (job->folder)
        put_record(out, RECORD_FOLDER, ML_STR(""), ml_str_of(job->folder));
    len = out->len - sizeof len;
    memcpy(out->ptr, &len, sizeof len);
}

static struct ml_tests_run *tester_begin(struct ml_tester *tester, struct ml_loop *loop,
                                         const struct ml_tests_job *job, ml_tests_done *done,
                                         void *context)
{
    struct tester *self = ml_container_of(tester, struct tester, interface);
    struct ml_tests_run *run = ml_new(struct ml_tests_run);
    run->tester = self;
    run->loop = loop;
    run->socket = -1;
    run->done = done;
    run->context = context;
    ml_buf_init(&run->job, JOB_MAX);
    ml_buf_init(&run->answer, ANSWER_MAX);
    ml_timer_init(&run->send, loop, run_send, run);
    put_job(&run->job, job);
    ml_list_push(&self->waiting, &run->node);
    begin_waiting(self);
    return run;
}

struct ml_tester *ml_tester_new(struct ml_err *err)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
        ml_err_set(err, ML_EIO, "start the process that runs tests: %s", strerror(errno));
        return NULL;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        serve_runs(sockets[1]);
    }
    int failed = errno;
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        ml_err_set(err, ML_EIO, "start the process that runs tests: %s", strerror(failed));
        return NULL;
    }
    struct tester *self = ml_new(struct tester);
    self->interface = (struct ml_tester){.begin = tester_begin, .cancel = run_free};
    self->helper = pid;
    self->socket = sockets[0];
    ml_list_init(&self->waiting);
    return &self->interface;
}

/* A process that has given up its rights may not wait for a child, but sees its end. */
void ml_tester_free(struct ml_tester *tester)
{
    if (!tester)
        return;
    struct tester *self = ml_container_of(tester, struct tester, interface);
    char byte;
    ml_assert(self->running == 0 && ml_list_empty(&self->waiting));
    shutdown(self->socket, SHUT_WR);
    while (recv(self->socket, &byte, 1, 0) < 0 && errno == EINTR)
        ;
    close(self->socket);
    while (waitpid(self->helper, NULL, 0) < 0 && errno == EINTR)
        ;
    free(self);
}
