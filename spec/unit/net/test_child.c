#include "net_unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/child.h"

extern char **environ;

struct run {
    struct net *net;
    struct ml_child *child;
    int ends;
    struct ml_child_end end;
    char output[128], errors[64];
    size_t output_len;
};

static void on_ended(void *context, const struct ml_child_end *end)
{
    struct run *run = context;
    run->ends++;
    run->end = *end;
    run->output_len = end->output.len;
    snprintf(run->output, sizeof run->output, ML_STR_FMT, ML_STR_ARG(end->output));
    snprintf(run->errors, sizeof run->errors, ML_STR_FMT, ML_STR_ARG(end->errors));
    ml_child_free(ml_take(&run->child));
    ml_loop_stop(run->net->loop);
}

static int start(struct run *run, struct net *net, const char *script, int64_t timeout_ms)
{
    struct ml_err err = ML_ERR_INIT;
    const struct ml_child_opts opts = {
        .argv = (const char *[]){"sh", "-c", script, NULL},
        .env = (const char *[]){"PATH=/usr/bin:/bin", "NAME=value", NULL},
        .output_max = 100000,
        .errors_max = 8,
        .timeout_ns = timeout_ms * ML_NS_PER_MS,
        .ended = on_ended,
        .context = run,
    };
    *run = (struct run){.net = net};
    return ml_child_start(net->loop, &opts, &run->child, &err);
}

static void run_to_end(struct run *run, struct net *net, const char *script, int64_t timeout_ms)
{
    assert_int_equal(start(run, net, script, timeout_ms), 0);
    net_run(net);
    assert_int_equal(run->ends, 1);
}

static void test_child_hands_over_what_it_writes(void **state)
{
    struct run run;
    run_to_end(&run, *state, "echo \"$NAME$HOME\"; echo 0123456789 >&2; cat; exit 3", 20000);
    assert_string_equal(run.output, "value\n");
    assert_string_equal(run.errors, "01234567"); /* the beginning */
    assert_int_equal(run.end.code, 3);
    assert_int_equal(run.end.signo, 0);
    assert_false(run.end.timed_out);
}

static void test_child_output_is_whole_up_to_its_limit(void **state)
{
    struct run run;
    run_to_end(&run, *state, "head -c 100000 /dev/zero", 20000);
    assert_int_equal(run.output_len, 100000);
    assert_false(run.end.too_long);
    assert_int_equal(run.end.code, 0);
    run_to_end(&run, *state, "head -c 100001 /dev/zero; sleep 60", 20000);
    assert_true(run.end.too_long);
    run_to_end(&run, *state, "yes", 20000);
    assert_true(run.end.too_long);
    assert_int_equal(run.end.signo, SIGKILL);
}

static void test_child_that_hangs_is_killed_with_all_it_started(void **state)
{
    struct run run;
    run_to_end(&run, *state, "trap '' TERM; sleep 300 & echo $!; wait", 100);
    assert_true(run.end.timed_out);
    assert_int_equal(run.end.signo, SIGKILL);
    assert_int_equal(run.end.code, 128 + SIGKILL);
    int left = atoi(run.output);
    assert_true(left > 1);
    for (int i = 0; i < 1000 && kill(left, 0) == 0; i++)
        net_settle(*state, 5); /* init reaps it */
}

static void test_child_does_not_wait_for_what_it_leaves_running(void **state)
{
    struct run run;
    run_to_end(&run, *state, "sleep 2 & echo done", 20000);
    assert_string_equal(run.output, "done\n");
    assert_int_equal(run.end.code, 0);
}

static void test_child_says_when_there_is_no_such_program(void **state)
{
    struct net *net = *state;
    struct ml_err err = ML_ERR_INIT;
    struct ml_child *child = NULL;
    const char *const names[] = {"no-such-program-here", "/etc/passwd", "/etc"};
    for (size_t i = 0; i < ML_COUNT(names); i++) {
        const struct ml_child_opts opts = {.argv = (const char *[]){names[i], NULL},
                                           .env = (const char *const *)environ,
                                           .ended = on_ended};
        assert_int_equal(ml_child_start(net->loop, &opts, &child, &err), ML_ENOT_FOUND);
        assert_null(child);
        assert_has(err.message, names[i]);
    }
}

static void test_child_has_no_descriptor_of_ours(void **state)
{
    struct run run;
    int fds[2];
    assert_int_equal(pipe(fds), 0); /* without close-on-exec, as a library may open one */
    run_to_end(&run, *state, "ls /proc/self/fd | wc -l", 20000);
    assert_string_equal(run.output, "4\n"); /* 0, 1, 2 and ls's own */
    close(fds[0]);
    close(fds[1]);
}

static void test_child_freed_early_is_killed_and_reaped(void **state)
{
    struct run run;
    assert_int_equal(start(&run, *state, "sleep 300", 20000), 0);
    ml_child_free(run.child);
    net_settle(*state, 20);
    assert_int_equal(run.ends, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    ml_child_free(NULL);
}

#define NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(test_child_hands_over_what_it_writes),
        NET(test_child_output_is_whole_up_to_its_limit),
        NET(test_child_that_hangs_is_killed_with_all_it_started),
        NET(test_child_does_not_wait_for_what_it_leaves_running),
        NET(test_child_says_when_there_is_no_such_program),
        NET(test_child_has_no_descriptor_of_ours),
        NET(test_child_freed_early_is_killed_and_reaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
