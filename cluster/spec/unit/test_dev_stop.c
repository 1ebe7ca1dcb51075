/* The end of `moonloop dev` by a signal, whatever it is in the middle of. Each case is a process of
 * its own. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_unit.h"

#include "cluster/host/dev_stop.h"

static char kubeconfig[64], ended[64];

static void make_file(char *path, const char *name)
{
    snprintf(path, 64, "/tmp/test_dev_stop.%s.XXXXXX", name);
    close(mkstemp(path));
}

static void on_signal(void *context, int signo)
{
    (void)signo;
    ml_dev_stop_heard();
    ml_loop_stop(context);
}

/* As dev.c does: `end` is called from within Lua. */
static void end(void *context)
{
    (void)context;
    unlink(ended);
}

struct world {
    struct ml_loop *loop;
    struct ml_server_lua *lua;
    struct ml_dev_stop stop;
};

static void start(struct world *w)
{
    w->loop = ml_loop_new(ml_clock_real());
    w->lua = ml_server_lua_new(&(struct ml_server_lua_options){.loop = w->loop});
    ml_loop_on_signal(w->loop, SIGTERM, on_signal, w->loop);
    w->stop = (struct ml_dev_stop){.lua = w->lua, .kubeconfig = kubeconfig, .end = end};
    ml_dev_stop_watch(&w->stop);
    raise(SIGTERM);
}

static void work_in_lua(struct world *w, const char *text)
{
    struct ml_err err = ML_ERR_INIT;
    start(w);
    int r = ml_server_lua_run(w->lua, "work", ml_str_of(text), &err);
    _exit(r == 0 ? 8 : 9); /* the work has no end */
}

static void catching(struct world *w)
{
    work_in_lua(w, "while true do pcall(function() while true do end end) end");
}

static void calling(struct world *w)
{
    work_in_lua(w, "while true do require('cluster.host').json.decode('[1]') end");
}

static void deferred(struct world *w)
{
    struct ml_err err = ML_ERR_INIT;
    start(w);
    ml_dev_stop_heard();
    if (ml_server_lua_run(w->lua, "work",
                          ML_STR("require('cluster.host').defer(function()\n"
                                 "  coroutine.wrap(function() while true do end end)()\n"
                                 "end)"),
                          &err) < 0)
        _exit(8);
    ml_loop_on_signal(w->loop, SIGTERM, NULL, NULL);
    ml_loop_run(w->loop);
    _exit(9);
}

/* One call of a function of C, to which no instruction of Lua follows. */
static void matching(struct world *w)
{
    work_in_lua(w, "return (('a'):rep(60) .. 'b'):match(('a*'):rep(60) .. 'c')");
}

static void listening(struct world *w)
{
    start(w);
    ml_loop_run(w->loop);
    ml_dev_stop_forget();
    ml_loop_on_signal(w->loop, SIGTERM, NULL, NULL);
    ml_server_lua_free(w->lua);
    ml_loop_free(w->loop);
    _exit(7);
}

static int run(void (*work)(struct world *w))
{
    int status;
    make_file(kubeconfig, "kubeconfig");
    make_file(ended, "ended");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct world w = {0};
        alarm(60); /* of a test that would not end */
        work(&w);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Was the file removed? It is gone after this. */
static bool is_gone(const char *path)
{
    return unlink(path) < 0;
}

static void test_dev_ends_in_the_middle_of_lua(void **state)
{
    static void (*const works[])(struct world *) = {catching, calling, deferred};
    (void)state;
    for (size_t i = 0; i < ML_COUNT(works); i++) {
        assert_int_equal(run(works[i]), 0);
        bool called = is_gone(ended), removed = is_gone(kubeconfig);
        /* A coroutine of Lua's own has no hook: the process exits as in the middle of C. */
        assert_true(works[i] == deferred ? removed : called && !removed);
    }
}

static void test_dev_ends_in_the_middle_of_c(void **state)
{
    (void)state;
    assert_int_equal(run(matching), 0);
    assert_false(is_gone(ended));
    assert_true(is_gone(kubeconfig));
}

static void test_dev_whose_loop_turns_ends_by_itself(void **state)
{
    (void)state;
    assert_int_equal(run(listening), 7);
    assert_false(is_gone(ended));
    assert_false(is_gone(kubeconfig));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dev_ends_in_the_middle_of_lua),
        cmocka_unit_test(test_dev_ends_in_the_middle_of_c),
        cmocka_unit_test(test_dev_whose_loop_turns_ends_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
