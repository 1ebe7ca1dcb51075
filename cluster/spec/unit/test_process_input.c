/* The input of a process, its standard error apart, and its terminal. test_process_container.c has
 * the same for containers. */
#include <signal.h>
#include <time.h>

#include "process_unit.h"

static struct ml_buf errors_written; /* standard error */
static size_t drained_count;

static void on_errors(void *context, struct ml_str bytes)
{
    (void)context;
    ml_buf_append_str(&errors_written, bytes);
}

static void on_drained(void *context)
{
    struct fixture *f = context;
    drained_count++;
    ml_loop_stop(f->net.loop);
}

static void start_script(struct fixture *f, const char *script, const struct ml_process_opts *opts)
{
    struct ml_process_opts all = *opts;
    all.argv = (const char *[]){"sh", "-c", script, NULL};
    ml_buf_clear(&errors_written);
    drained_count = 0;
    start_with(f, &all);
}

/* Begins a script that says "up", and goes on when it gets SIGUSR1. */
#define TILL_TOLD                                                                                  \
    "exec 2>/dev/null; trap 'go=1' USR1; echo up; until test $go; do sleep 0.01; done; "

static size_t write_text(struct fixture *f, const char *text)
{
    return ml_process_write(f->process, ml_str_of(text));
}

static const struct ml_process_opts with_input = {.has_input = true, .drained = on_drained};
static const struct ml_process_terminal small = {.rows = 11, .columns = 22};
static const struct ml_process_opts with_terminal = {.has_input = true, .terminal = &small};

/* ---- pipes ---- */

static void test_process_reads_what_is_written(void **state)
{
    struct fixture *f = *state;
    start_script(f, "cat; echo over", &with_input);
    assert_int_equal(write_text(f, "one\n"), 0); /* before it runs */
    wait_said(f, "one\n");
    assert_int_equal(write_text(f, "two\n"), 0);
    wait_said(f, "two\n");
    ml_process_end_input(f->process);
    assert_int_equal(write_text(f, "never\n"), 0);
    wait_end(f);
    assert_string_equal(ml_buf_cstr(&f->said), "one\ntwo\nover\n");
    start_script(f, "cat; readlink /proc/self/fd/0 | cut -c 1-5; echo x >/dev/stdin; echo $?",
                 &with_input);
    ml_process_end_input(f->process);
    wait_end(f);
    assert_string_equal(ml_buf_cstr(&f->said), "pipe:\n0\n");
}

/* More than the pipe takes waits in the host, up to a limit. */
static void test_process_input_waits_for_a_slow_reader(void **state)
{
    struct fixture *f = *state;
    size_t len = ML_PROCESS_INPUT_MAX / 2;
    ML_AUTO_FREE char *much = ml_alloc(len);
    memset(much, 'x', len);
    const struct ml_str bytes = {much, len};
    start_script(f, TILL_TOLD "wc -c", &with_input);
    wait_said(f, "up\n");
    size_t waiting = ml_process_write(f->process, bytes);
    assert_true(waiting > len - 2 * 1024 * 1024 && waiting < len);
    assert_int_equal(ml_process_write(f->process, bytes), waiting + len);
    assert_true(ml_process_write(f->process, bytes) == ML_PROCESS_INPUT_FULL);
    ml_process_end_input(f->process);
    net_settle(&f->net, 50);
    assert_int_equal(drained_count, 0);
    ml_process_signal(f->process, SIGUSR1);
    net_run(&f->net);
    assert_int_equal(drained_count, 1);
    wait_end(f);
    assert_int_equal(drained_count, 1);
    assert_int_equal(said_pid(f, "up\n"), 2 * len);
}

/* One that ends, or closes its input, loses what waits; nobody is held up. */
static void test_process_input_is_dropped_when_nobody_reads_it(void **state)
{
    static const char *const scripts[] = {TILL_TOLD "exec <&-; echo closed; exec sleep 100",
                                          TILL_TOLD "read one; exit 3"};
    struct fixture *f = *state;
    size_t len = 1024 * 1024;
    ML_AUTO_FREE char *much = ml_alloc(len);
    memset(much, '\n', len);
    for (size_t i = 0; i < ML_COUNT(scripts); i++) {
        start_script(f, scripts[i], &with_input);
        wait_said(f, "up\n");
        assert_true(ml_process_write(f->process, (struct ml_str){much, len}) >
                    ML_PROCESS_INPUT_LOW);
        ml_process_signal(f->process, SIGUSR1);
        if (i == 1) {
            while (!f->is_over)
                net_run(&f->net);
            assert_int_equal(f->end.code, 3);
            continue;
        }
        net_run(&f->net);
        assert_int_equal(drained_count, 1);
        assert_int_equal(write_text(f, "more"), 0);
        ml_process_stop(f->process, 0);
        wait_end(f);
    }
}

static void test_process_without_input_takes_none(void **state)
{
    struct fixture *f = *state;
    start_script(f, "cat; readlink /proc/self/fd/0", &(struct ml_process_opts){0});
    assert_int_equal(write_text(f, "no"), 0);
    ml_process_end_input(f->process);
    ml_process_resize(f->process, 1, 2);
    wait_end(f);
    assert_string_equal(ml_buf_cstr(&f->said), "/dev/null\n");
}

static void test_process_errors_come_apart(void **state)
{
    struct fixture *f = *state;
    start_script(f, "echo fine; echo bad >&2; echo last >&2",
                 &(struct ml_process_opts){.errors = on_errors});
    wait_end(f);
    assert_string_equal(ml_buf_cstr(&f->said), "fine\n");
    assert_string_equal(ml_buf_cstr(&errors_written), "bad\nlast\n");
    /* The end comes behind the last of both, and not before a pause is over. */
    start_script(f, "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; (sleep 100 &)",
                 &(struct ml_process_opts){.errors = on_errors});
    ml_process_pause(f->process, true);
    net_settle(&f->net, 50);
    assert_int_equal(f->bytes + errors_written.len, 0);
    ml_process_pause(f->process, false);
    wait_end(f);
    assert_int_equal(f->bytes, 300000);
    assert_int_equal(errors_written.len, 300000);
}

/* ---- terminals ---- */

static void test_process_has_a_terminal(void **state)
{
    skip_without_terminals();
    struct fixture *f = *state;
    start_script(
        f,
        "for i in 0 1 2; do test -t $i || exit 1; done; tty | cut -c 1-9; stty size;"
        "echo bad >&2; : >/dev/tty && echo its own; read line; echo \"<$line>\"",
        &(struct ml_process_opts){.has_input = true, .terminal = &small, .errors = on_errors});
    write_text(f, "typed\n"); /* perhaps before there is a terminal */
    wait_end(f);
    assert_int_equal(f->end.code, 0);
    /* The echo of what is typed may come between any two. */
    static const char *const lines[] = {"/dev/pts/", "11 22", "bad", "its own", "typed", "<typed>"};
    for (size_t i = 0; i < ML_COUNT(lines); i++) {
        ML_AUTO_FREE char *line = ml_asprintf("%s\r\n", lines[i]);
        assert_has(ml_buf_cstr(&f->said), line);
    }
    assert_int_equal(errors_written.len, 0);
}

static void test_process_is_told_the_size_of_its_terminal(void **state)
{
    skip_without_terminals();
    struct fixture *f = *state;
    start_script(f,
                 "until stty size | grep '33 44'; do sleep 0.01; done;"
                 "trap 'stty size; exit 4' WINCH; echo up; while :; do sleep 0.01; done",
                 &with_terminal);
    ml_process_resize(f->process, 44, 33); /* perhaps before there is a terminal */
    wait_said(f, "up");
    ml_process_resize(f->process, 66, 55);
    wait_end(f);
    assert_int_equal(f->end.code, 4);
    assert_has(ml_buf_cstr(&f->said), "up\r\n55 66\r\n");
}

/* Typed keys: an interrupt, and an end of the input, which is another thing than its close. */
static void test_process_is_reached_by_what_is_typed(void **state)
{
    skip_without_terminals();
    struct fixture *f = *state;
    start_script(f,
                 "trap 'echo interrupted; got=1' INT; echo up; until test $got; do sleep 0.01; "
                 "done; cat; echo behind",
                 &with_terminal);
    wait_said(f, "up");
    ml_process_end_input(f->process);
    write_text(f, "\003");
    wait_said(f, "interrupted");
    write_text(f, "\004");
    wait_end(f);
    assert_has(ml_buf_cstr(&f->said), "behind");
    assert_int_equal(f->end.code, 0);
}

/* A paste into a terminal that is full: all of it arrives later, and the host stays idle. */
static void test_process_terminal_waits_for_a_slow_reader(void **state)
{
    skip_without_terminals();
    enum { MUCH = 1000000 };
    struct fixture *f = *state;
    ML_AUTO_FREE char *much = ml_alloc(MUCH);
    memset(much, 'x', MUCH);
    start_script(
        f,
        "trap 'go=1' USR1; stty raw -echo; echo up; until test $go; do sleep 0.01; done;"
        "head -c 1000000 | wc -c; echo over",
        &(struct ml_process_opts){.has_input = true, .terminal = &small, .drained = on_drained});
    wait_said(f, "up");
    assert_true(ml_process_write(f->process, (struct ml_str){much, MUCH}) > MUCH / 2);
    clock_t before = clock();
    net_settle(&f->net, 300);
    assert_true(clock() - before < CLOCKS_PER_SEC / 10);
    assert_int_equal(drained_count, 0);
    ml_process_signal(f->process, SIGUSR1);
    net_run(&f->net);
    assert_int_equal(drained_count, 1);
    wait_end(f);
    assert_has(ml_buf_cstr(&f->said), "1000000\nover\n");
}

static void test_process_that_leaves_its_terminal_goes_on(void **state)
{
    skip_without_terminals();
    struct fixture *f = *state;
    size_t len = 1024 * 1024;
    ML_AUTO_FREE char *much = ml_zalloc(len);
    start_script(
        f, "echo up; exec </dev/null >/dev/null 2>&1; sleep 0.2; exit 6",
        &(struct ml_process_opts){.has_input = true, .terminal = &small, .drained = on_drained});
    ml_process_write(f->process, (struct ml_str){much, len});
    net_run(&f->net);
    assert_int_equal(drained_count, 1); /* what waited was dropped */
    wait_end(f);
    assert_int_equal(f->end.code, 6);
    assert_has(ml_buf_cstr(&f->said), "up\r\n");
}

static void test_process_terminal_goes_with_it(void **state)
{
    skip_without_terminals();
    struct fixture *f = *state;
    start_script(f,
                 "trap '' HUP; sleep 100 & echo a=$!; setsid sleep 100 & echo b=$!; echo up; wait",
                 &with_terminal);
    wait_said(f, "up");
    pid_t a = said_pid(f, "a="), b = said_pid(f, "b=");
    ml_process_free(ml_take(&f->process));
    assert_gone(f, a);
    assert_gone(f, b);
    start_script(f, "head -c 100000 /dev/zero | tr '\\0' x; echo last; (setsid sleep 100 &)",
                 &with_terminal);
    wait_end(f);
    assert_has(ml_buf_cstr(&f->said), "xlast\r\n");
    assert_int_equal(f->bytes, 100000 + 6);
}

static void test_process_with_a_terminal_that_cannot_start_says_why(void **state)
{
    skip_without_terminals();
    struct fixture *f = *state;
    struct ml_process_opts opts = with_terminal;
    opts.argv = (const char *[]){"no-such-command", NULL};
    start_with(f, &opts);
    write_text(f, "typed\n");
    wait_end(f);
    assert_false(f->end.started);
    assert_string_equal(f->end.message,
                        "exec: \"no-such-command\": executable file not found in $PATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS(test_process_reads_what_is_written),
        PROCESS(test_process_input_waits_for_a_slow_reader),
        PROCESS(test_process_input_is_dropped_when_nobody_reads_it),
        PROCESS(test_process_without_input_takes_none),
        PROCESS(test_process_errors_come_apart),
        PROCESS(test_process_has_a_terminal),
        PROCESS(test_process_is_told_the_size_of_its_terminal),
        PROCESS(test_process_is_reached_by_what_is_typed),
        PROCESS(test_process_terminal_waits_for_a_slow_reader),
        PROCESS(test_process_that_leaves_its_terminal_goes_on),
        PROCESS(test_process_terminal_goes_with_it),
        PROCESS(test_process_with_a_terminal_that_cannot_start_says_why),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ml_buf_fini(&errors_written);
    return failed;
}
