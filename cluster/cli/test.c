/* moonloop test: the *_test.lua beside scripts, by busted, on a world in virtual time. */
#include "base/escape.h"
#include "cluster/cli/commands.h"
#include "cluster/host/world.h"
#include "codec/json.h"
#include "include/moonloop.h"
#include "operator/files.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct test {
    struct ml_option_list paths;
    struct ml_option_list filters;
    const char *output;
    const char *seed;
    const char *log_level;
    bool shuffle;
    bool watch;
};

/* The argument of run() in cluster/testing/runner.lua. */
static void describe(struct ml_buf *out, const struct test *test)
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
    ml_json_end_object(&writer);
}

/* Returns an exit code; `err` has the reason unless tests failed. */
static int run_once(const struct test *test, enum ml_log_level level, struct ml_err *err)
{
    ML_AUTO(ml_buf_fini) struct ml_buf argument = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf result = ML_BUF_INIT;
    const struct ml_world_options options = {
        .log_fd = test->log_level ? STDERR_FILENO : -1,
        .log_level = level,
    };
    struct ml_world *world;
    int64_t failed = 0;
    if (ml_world_new(&options, &world, err) < 0)
        return MOONLOOP_EXIT_BAD;
    ml_world_lua_open(world);
    describe(&argument, test);
    int r = ml_server_lua_call(ml_world_server_lua(world), "cluster.testing.runner", "run",
                               ml_buf_str(&argument), &result, err);
    ml_world_free(world);
    if (r < 0 || !ml_str_to_i64(ml_buf_str(&result), &failed))
        return MOONLOOP_EXIT_BAD;
    return failed == 0 ? MOONLOOP_EXIT_OK : MOONLOOP_EXIT_BAD;
}

/* ---- --watch: each run in a process of its own, so that none sees what another left ---- */

struct watching {
    const struct test *test;
    enum ml_log_level level;
    struct ml_loop *loop;
    struct ml_timer settle; /* one run for what several watches tell */
};

static void tell(const struct ml_err *err)
{
    if (err->kind)
        ml_print_line(stderr, "moonloop test: %s", err->message);
}

static void run_aside(void *context)
{
    const struct watching *self = context;
    struct ml_err err = ML_ERR_INIT;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int code = run_once(self->test, self->level, &err);
        tell(&err);
        fflush(NULL);
        _exit(code);
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
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
    ml_timer_init(&self.settle, loop, run_aside, &self);
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
    .run = run,
};
