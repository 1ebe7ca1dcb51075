/* moonloop test: the *_test.lua beside scripts, by busted, on a world in virtual time, in a process
 * of its own. A test that ends this process, or does not end, is named, and fails in a second run
 * of the others. */
#include "base/escape.h"
#include "cluster/cli/commands.h"
#include "cluster/host/world.h"
#include "codec/json.h"
#include "include/moonloop.h"
#include "operator/files.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct test {
    struct ml_option_list paths;
    struct ml_option_list filters;
    const char *output;
    const char *seed;
    const char *log_level;
    const char *coverage; /* file of lcov, or "" */
    int timeout_ms;
    bool shuffle;
    bool watch;
};

/* `stopped`: of struct runs. The argument of run() in cluster/testing/runner.lua. */
static void describe(struct ml_buf *out, const struct test *test, struct ml_str stopped)
{
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    ml_json_put_string(&writer, "output", ml_str_of(test->output ? test->output : "utfTerminal"));
    ml_option_list_put(&writer, "paths", &test->paths);
    ml_option_list_put(&writer, "filters", &test->filters);
    ml_json_put_bool(&writer, "shuffle", test->shuffle);
    if (test->seed)
        ml_json_put_string(&writer, "seed", ml_str_of(test->seed));
    if (test->coverage)
        ml_json_put_string(&writer, "coverage", ml_str_of(test->coverage));
    ml_json_key(&writer, ML_STR("stopped"));
    ml_json_begin_array(&writer);
    while (stopped.len > 0)
        ml_json_raw(&writer, ml_str_cut(&stopped, '\n'));
    ml_json_end_array(&writer);
    ml_json_end_object(&writer);
}

/* ---- the process that runs the tests ---- */

#define AT_MAX 2048

/* Written by the process of the tests, and read by the one that waits for it, in shared memory. */
struct progress {
    _Atomic unsigned steps; /* grows when a test begins or ends */
    _Atomic bool is_finished;
    char at[AT_MAX]; /* JSON of cluster/testing/observer.lua: the test that runs, or its file */
};

/* note{id=, text=} */
static int note_progress(void *context, struct ml_str argument, struct ml_buf *result,
                         struct ml_err *err)
{
    struct progress *progress = context;
    (void)result;
    if (argument.len >= AT_MAX)
        return ml_err_set(err, ML_ELIMIT, "note: more than %d bytes", AT_MAX);
    memcpy(progress->at, argument.ptr, argument.len);
    progress->at[argument.len] = '\0';
    progress->steps++;
    return 0;
}

/* Returns an exit code; `err` has the reason unless tests failed. */
static int run_tests(const struct test *test, enum ml_log_level level, struct ml_str stopped,
                     struct progress *progress, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf argument = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf result = ML_BUF_INIT;
    const struct ml_world_options options = {
        .log_fd = test->log_level ? STDERR_FILENO : -1,
        .log_level = level,
        .coverage = test->coverage != NULL,
    };
    struct ml_world *world;
    int64_t failed = 0;
    if (ml_world_new(&options, &world, err) < 0)
        return MOONLOOP_EXIT_BAD;
    ml_world_lua_open(world);
    ml_server_lua_define(ml_world_server_lua(world), "cluster.test_progress", "note", note_progress,
                         progress);
    describe(&argument, test, stopped);
    int r = ml_server_lua_call(ml_world_server_lua(world), "cluster.testing.runner", "run",
                               ml_buf_str(&argument), &result, err);
    ml_world_free(world);
    if (r < 0 || !ml_str_to_i64(ml_buf_str(&result), &failed))
        return MOONLOOP_EXIT_BAD;
    return failed == 0 ? MOONLOOP_EXIT_OK : MOONLOOP_EXIT_BAD;
}

static void tell(const struct ml_err *err)
{
    if (err->kind)
        ml_print_line(stderr, "moonloop test: %s", err->message);
}

/* ---- the process that waits for it ---- */

#define STOPPED_MAX 8 /* tests that end their process: after so many the run ends */
#define TICK_MS     250
#define TIMEOUT_MS  (ML_SANITIZED ? 300000 : 120000)

struct runs {
    const struct test *test;
    enum ml_log_level level;
    struct progress *progress;
    struct ml_buf stopped; /* a line of JSON for each test that ended its process: {"at":,"why":} */
    size_t stopped_count;
};

ML_NORETURN static void run_in_child(const struct runs *self)
{
    struct ml_err err = ML_ERR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = run_tests(self->test, self->level, ml_buf_str(&self->stopped), self->progress, &err);
    self->progress->is_finished = true;
    tell(&err);
    exit(code);
}

/* Waits for the end. Kills a process whose test takes too long, and returns false then. The start
 * of the process takes no test's time. It counts ticks, and does not look at a clock: a suspended
 * job is not late. */
static bool await_end(const struct runs *self, int pidfd, pid_t pid)
{
    struct pollfd end = {pidfd, POLLIN, 0};
    unsigned steps = self->progress->steps;
    int waited_ms = 0;
    for (int ready; (ready = poll(&end, 1, TICK_MS)) <= 0;) {
        if (ready < 0 && errno != EINTR)
            return true;
        bool same = steps > 0 && steps == self->progress->steps;
        waited_ms = same ? waited_ms + TICK_MS : 0;
        steps = self->progress->steps;
        if (waited_ms < self->test->timeout_ms)
            continue;
        kill(pid, SIGKILL);
        return false;
    }
    return true;
}

/* Runs the tests once. Returns how their process ended, or -1. `out_late`: a test took too long. */
static int run_child(const struct runs *self, bool *out_late, struct ml_err *err)
{
    int status = -1;
    *self->progress = (struct progress){0};
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run_in_child(self);
    ML_AUTO(ml_close_fd) int pidfd = pid > 0 ? pidfd_open(pid, 0) : -1;
    if (pid < 0)
        return ml_err_set(err, ML_EIO, "no process can be made: %s", strerror(errno)), -1;
    *out_late = pidfd >= 0 && !await_end(self, pidfd, pid);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void describe_end(struct ml_buf *out, int status, bool late, int timeout_ms)
{
    if (late)
        ml_buf_printf(out, "it has not ended after %g s (--timeout)", timeout_ms / 1000.0);
    else if (WIFSIGNALED(status))
        ml_buf_printf(out, "it ended the process of the tests: signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    else
        ml_buf_printf(out, "it ended the process of the tests: exit code %d", WEXITSTATUS(status));
}

/* Notes and names what was at work when the process ended. ML_ELIMIT: another run makes no sense.
 */
static int note_stopped(struct runs *self, struct ml_str why, struct ml_err *err)
{
    struct ml_json_writer writer;
    struct ml_str at = ml_str_of(self->progress->at);
    ML_AUTO_FREE char *text = ml_json_find_string(at, "text", NULL);
    if (!text)
        return ml_err_set(err, ML_ELIMIT, "before a test began: " ML_STR_FMT, ML_STR_ARG(why));
    if (self->stopped.len > 0 && strstr(ml_buf_cstr(&self->stopped), self->progress->at))
        return ml_err_set(err, ML_ELIMIT, "%s: again: " ML_STR_FMT, text, ML_STR_ARG(why));
    if (++self->stopped_count > STOPPED_MAX)
        return ml_err_set(err, ML_ELIMIT, "%s: " ML_STR_FMT "; it is the last of %d", text,
                          ML_STR_ARG(why), STOPPED_MAX + 1);
    ml_json_writer_init(&writer, &self->stopped);
    ml_json_begin_object(&writer);
    ml_json_key(&writer, ML_STR("at"));
    ml_json_raw(&writer, at);
    ml_json_put_string(&writer, "why", why);
    ml_json_end_object(&writer);
    ml_buf_putc(&self->stopped, '\n');
    fputc('\n', stderr); /* behind the dots of the tests before */
    ml_print_line(stderr, "moonloop test: %s: " ML_STR_FMT "; the others run again", text,
                  ML_STR_ARG(why));
    return 0;
}

/* Runs the tests until they come to their end. */
static int run_until_finished(struct runs *self, struct ml_err *err)
{
    for (;;) {
        ML_AUTO(ml_buf_fini) struct ml_buf why = ML_BUF_INIT;
        bool late = false;
        int status = run_child(self, &late, err);
        if (status == -1)
            return MOONLOOP_EXIT_BAD;
        if (self->progress->is_finished)
            return status == 0 ? MOONLOOP_EXIT_OK : MOONLOOP_EXIT_BAD;
        describe_end(&why, status, late, self->test->timeout_ms);
        if (note_stopped(self, ml_buf_str(&why), err) < 0)
            return MOONLOOP_EXIT_BAD;
    }
}

static int run_once(const struct test *test, enum ml_log_level level, struct ml_err *err)
{
    struct runs self = {.test = test, .level = level};
    self.progress = mmap(NULL, sizeof *self.progress, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (self.progress == MAP_FAILED)
        return ml_err_set(err, ML_EIO, "no memory: %s", strerror(errno)), MOONLOOP_EXIT_BAD;
    int code = run_until_finished(&self, err);
    munmap(self.progress, sizeof *self.progress);
    ml_buf_fini(&self.stopped);
    return code;
}

/* ---- --watch ---- */

struct watching {
    const struct test *test;
    enum ml_log_level level;
    struct ml_loop *loop;
    struct ml_timer settle; /* one run for what several watches tell */
};

static void run_again(void *context)
{
    const struct watching *self = context;
    struct ml_err err = ML_ERR_INIT;
    (void)run_once(self->test, self->level, &err);
    tell(&err);
    printf("\nmoonloop test: waiting for a change; Ctrl-C ends\n");
    fflush(stdout);
}

static bool on_change(void *context)
{
    struct watching *self = context;
    ml_timer_start(&self->settle, 0);
    return true;
}

static void on_signal(void *context, int signo)
{
    (void)signo;
    ml_loop_stop(context);
}

static int watch(const struct test *test, enum ml_log_level level)
{
    struct ml_loop *loop = ml_loop_new(ml_clock_real());
    struct watching self = {.test = test, .level = level, .loop = loop};
    struct ml_path_watch *watches[ML_OPTION_VALUES_MAX];
    ml_timer_init(&self.settle, loop, run_again, &self);
    for (size_t i = 0; i < test->paths.count; i++)
        watches[i] = ml_path_watch_new(loop, test->paths.values[i], on_change, &self);
    ml_loop_on_signal(loop, SIGINT, on_signal, loop);
    ml_loop_on_signal(loop, SIGTERM, on_signal, loop);
    ml_loop_run(loop);
    ml_loop_on_signal(loop, SIGINT, NULL, NULL);
    ml_loop_on_signal(loop, SIGTERM, NULL, NULL);
    for (size_t i = 0; i < test->paths.count; i++)
        ml_path_watch_free(watches[i]);
    ml_timer_stop(&self.settle);
    ml_loop_free(loop);
    return MOONLOOP_EXIT_OK;
}

static int check(const struct test *test, enum ml_log_level *level, struct ml_err *err)
{
    if (test->paths.count == 0)
        return ml_err_set(err, ML_EINVALID, "no tests given: moonloop test PATH");
    for (size_t i = 0; i < test->paths.count; i++)
        if (access(test->paths.values[i], R_OK) < 0)
            return ml_err_set(err, ML_EINVALID, "%s: %s", test->paths.values[i], strerror(errno));
    if (test->log_level && !ml_log_level_parse(test->log_level, level))
        return ml_err_set(err, ML_EINVALID, "--log-level %s: expected debug, info, warn or error",
                          test->log_level);
    return 0;
}

static const struct ml_option options[] = {
    {"--watch", NULL, "run again whenever a test or a script is saved", ML_OPTION_FLAG,
     offsetof(struct test, watch)},
    {"--filter", "PATTERN", "only tests whose name matches this Lua pattern (repeat)",
     ML_OPTION_LIST, offsetof(struct test, filters)},
    {"--output", "HANDLER", "busted's: utfTerminal (default), TAP, junit, json, gtest, …",
     ML_OPTION_TEXT, offsetof(struct test, output)},
    {"--shuffle", NULL, "in random order", ML_OPTION_FLAG, offsetof(struct test, shuffle)},
    {"--seed", "N", "of the random order", ML_OPTION_TEXT, offsetof(struct test, seed)},
    {"--coverage", "FILE",
     "say which lines of the scripts ran, and which fields no test set; FILE gets lcov's form",
     ML_OPTION_MAY_TEXT, offsetof(struct test, coverage)},
    {"--timeout", "DURATION", "how long a test may take; default 2m", ML_OPTION_DURATION,
     offsetof(struct test, timeout_ms)},
    {"--log-level", "LEVEL", "show the operator's log from this level on: debug, info, …",
     ML_OPTION_TEXT, offsetof(struct test, log_level)},
};

static int run(void *values, char **argv, struct ml_err *err)
{
    const struct test *test = values;
    enum ml_log_level level = ML_LOG_INFO;
    (void)argv;
    if (check(test, &level, err) < 0)
        return MOONLOOP_EXIT_USAGE;
    return test->watch ? watch(test, level) : run_once(test, level, err);
}

static const struct test defaults = {.timeout_ms = TIMEOUT_MS};

const struct ml_command ml_command_test = {
    .name = "test",
    .usage = "PATH… [OPTIONS]",
    .summary = "run script tests on an in-memory cluster with virtual time",
    .description =
        "Runs tests (*_test.lua, in busted's style) of scripts: each script in its sandbox, on a\n"
        "cluster in memory, with a clock that stands still until the test moves it. See\n"
        "docs/testing.md. CustomResourceDefinitions are taken from crds/ beside the test's\n"
        "folder, or in it.",
    .example = "reconcilers/ --watch",
    .options = options,
    .option_count = ML_COUNT(options),
    .words = offsetof(struct test, paths),
    .values_size = sizeof(struct test),
    .defaults = &defaults,
    .run = run,
};
