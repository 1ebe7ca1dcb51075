#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_unit.h"

static void test_process_tells_output_and_exit(void **state)
{
    static const struct {
        const char *script;
        const char *said;
        int code;
        int signo;
    } cases[] = {
        {"echo one; echo two >&2", "one\ntwo\n", 0, 0},
        {"printf none; exit 7", "none", 7, 0},
        {"cat; echo $?", "0\n", 0, 0}, /* no standard input */
        {"kill -KILL $$", "", 137, SIGKILL},
        {"kill -TERM $$", "", 143, SIGTERM},
        {"yes | head -c 3; true", "y\ny", 0, 0},   /* SIGPIPE as usual */
        {"ls /proc/self/fd | wc -l", "4\n", 0, 0}, /* and that of ls itself */
        {"env", "PATH=/usr/bin:/bin\nPWD=", 0, 0},
        /* From 32 on they are the C library's, and stay as whoever started the test has them. */
        {"sed -nE 's/^(Sig(Blk|Ign|Cgt):).*(.{7})$/\\1\\3/p' /proc/self/status | tr -d '\\n0'",
         "SigBlk:SigIgn:SigCgt:", 0, 0},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        start(f, cases[i].script);
        wait_end(f);
        assert_true(f->end.started);
        assert_string_equal(f->end.message, "");
        if (f->end.code != cases[i].code || f->end.signo != cases[i].signo)
            fail_msg("%s: %d %d", cases[i].script, f->end.code, f->end.signo);
        assert_has(ml_buf_cstr(&f->said), cases[i].said);
        if (strncmp(ml_buf_cstr(&f->said), cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("%s: %s", cases[i].script, ml_buf_cstr(&f->said));
    }
}

static void test_process_tells_why_it_cannot_start(void **state)
{
    static const struct {
        const char *command;
        const char *directory;
        const char *message;
    } cases[] = {
        {"no-such-command", NULL, "exec: \"no-such-command\": executable file not found in $PATH"},
        {"/no/such", NULL, "exec: \"/no/such\": no such file or directory"},
        {"/etc/passwd", NULL, "exec: \"/etc/passwd\": permission denied"},
        {"/", NULL, "exec: \"/\": permission denied"},
        {"sh", "/no/folder", "chdir to cwd (\"/no/folder\"): no such file or directory"},
        {"", NULL, "exec: \"\": executable file not found in $PATH"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        start_with(f, &(struct ml_process_opts){.argv = (const char *[]){cases[i].command, NULL},
                                                .directory = cases[i].directory});
        wait_end(f);
        assert_false(f->end.started);
        assert_int_equal(f->end.code, 128);
        assert_string_equal(f->end.message, cases[i].message);
    }
}

static void test_process_takes_command_and_environment_as_they_are(void **state)
{
    static const char *const argv[] = {
        "sh", "-c", "printf '%s|' \"$0\" \"$1\" \"$A\"; pwd", "a b", "$(no) 'shell'", NULL};
    static const char *const env[] = {"A=x\ny", NULL}; /* and PATH's default */
    struct fixture *f = *state;
    start_with(f, &(struct ml_process_opts){.argv = argv, .env = env, .directory = "/usr"});
    wait_end(f);
    assert_string_equal(ml_buf_cstr(&f->said), "a b|$(no) 'shell'|x\ny|/usr\n");
}

static void test_process_gets_signals_with_its_group(void **state)
{
    struct fixture *f = *state;
    start(f, "trap 'echo hup' HUP; sh -c 'echo child; exec sleep 100' & wait; wait; echo out");
    wait_said(f, "child\n");
    for (int i = 0; i < 1000 && !ml_process_pid(f->process); i++)
        net_settle(&f->net, 5); /* output and pid come by different ways */
    assert_true(runs((pid_t)ml_process_pid(f->process)));
    ml_process_signal(f->process, SIGHUP); /* ends the child, which has no trap */
    wait_end(f);
    assert_has(ml_buf_cstr(&f->said), "hup\n");
    assert_has(ml_buf_cstr(&f->said), "out\n");
    assert_int_equal(f->end.code, 0);
}

static void test_process_is_killed_after_its_grace(void **state)
{
    static const struct {
        const char *script;
        int64_t grace_ms;
        int code;
    } cases[] = {
        {"echo up; sleep 100; echo no", 60000, 143},
        {"trap 'echo bye; exit 3' TERM; echo up; sleep 100 & wait", 60000, 3},
        {"trap '' TERM; echo up; while :; do sleep 100; done", 100, 137},
        {"trap '' TERM; echo up; while :; do sleep 100; done", 0, 137},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(cases); i++) {
        start(f, cases[i].script);
        wait_said(f, "up");
        ml_process_stop(f->process, cases[i].grace_ms * ML_NS_PER_MS);
        wait_end(f);
        if (f->end.code != cases[i].code)
            fail_msg("%s: %d", cases[i].script, f->end.code);
    }
}

/* The shim's last report arrives even if the shim leaves a command unread. */
static void test_process_tells_its_end_whatever_it_is_sent_meanwhile(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        start(f, "echo up; exit 6");
        wait_said(f, "up");
        for (int k = 0; k < 50 && f->process; k++)
            ml_process_signal(f->process, SIGURG);
        wait_end(f);
        assert_int_equal(f->end.code, 6);
        assert_string_equal(f->end.message, "");
    }
}

static void test_process_stop_asked_again_takes_the_earlier_time(void **state)
{
    struct fixture *f = *state;
    start(f, "trap '' TERM; echo up; while :; do sleep 100; done");
    wait_said(f, "up");
    ml_process_stop(f->process, 3600 * ML_NS_PER_S);
    ml_process_stop(f->process, 50 * ML_NS_PER_MS);
    ml_process_stop(f->process, 3600 * ML_NS_PER_S);
    wait_end(f);
    assert_int_equal(f->end.code, 137);
}

/* In the background, in a session of its own, and orphaned twice over. "up" comes when all of them
 * have said so into a pipe. */
#define DAEMONS                                                                                    \
    "pipe=$(mktemp -u); mkfifo $pipe; exec 3<>$pipe; rm $pipe; "                                   \
    "sleep 100 & echo a=$!; setsid sh -c 'echo b=$$; echo >&3; sleep 100; true' & "                \
    "(setsid sh -c 'echo c=$$; trap \"\" HUP TERM; echo >&3; sleep 100; true' >&2 &); "            \
    "read b <&3; read c <&3; echo up;"

static void test_process_leaves_nothing_behind(void **state)
{
    static const char *const labels[] = {"a=", "b=", "c="};
    struct fixture *f = *state;
    pid_t pids[ML_COUNT(labels)];
    for (int how = 0; how < 3; how++) { /* it ends, is stopped, is freed */
        start(f, how == 0 ? DAEMONS "exit 5" : DAEMONS "sleep 100");
        wait_said(f, "up");
        for (size_t i = 0; i < ML_COUNT(labels); i++)
            pids[i] = said_pid(f, labels[i]);
        if (how == 1)
            ml_process_stop(f->process, 0);
        if (how == 2)
            ml_process_free(ml_take(&f->process));
        else
            wait_end(f);
        for (size_t i = 0; i < ML_COUNT(labels); i++)
            assert_gone(f, pids[i]);
        if (how == 0)
            assert_int_equal(f->end.code, 5);
    }
}

/* A second host, which is killed without a chance to clean up. */
static void test_process_does_not_outlive_a_killed_host(void **state)
{
    struct fixture *f = *state;
    int ready[2];
    char text[128] = "";
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t host = fork();
    if (host == 0) {
        struct fixture other = {.keep = true};
        struct ml_err err = ML_ERR_INIT;
        net_init(&other.net);
        if (ml_processes_new(other.net.loop, &other.processes, &err) < 0)
            _exit(1);
        start(&other, DAEMONS "sleep 100");
        wait_said(&other, "up");
        if (write(ready[1], other.said.ptr, other.said.len) < 0)
            _exit(1);
        pause();
    }
    close(ready[1]);
    assert_true(read(ready[0], text, sizeof text - 1) > 0);
    close(ready[0]);
    ml_buf_puts(&f->said, text);
    kill(host, SIGKILL);
    waitpid(host, NULL, 0);
    assert_gone(f, said_pid(f, "a="));
    assert_gone(f, said_pid(f, "b="));
    assert_gone(f, said_pid(f, "c="));
}

static void test_process_with_too_many_below_it_is_killed(void **state)
{
    static const char *const scripts[] = {
        "i=0; while [ $i -lt 60 ]; do sleep 100 & i=$((i+1)); done; echo p=$!; wait",
        "i=0; while [ $i -lt 60 ]; do setsid sleep 100 & i=$((i+1)); done; echo p=$!; wait",
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ML_COUNT(scripts); i++) {
        start(f, scripts[i]);
        wait_end(f);
        assert_true(f->end.too_many);
        assert_int_equal(f->end.code, 137);
        assert_string_equal(f->end.message, "killed: more than 20 processes");
        if (strstr(ml_buf_cstr(&f->said), "p="))
            assert_gone(f, said_pid(f, "p="));
    }
    start(f, "i=0; while [ $i -lt 15 ]; do sleep 0.5 & i=$((i+1)); done; wait");
    wait_end(f);
    assert_false(f->end.too_many);
    assert_int_equal(f->end.code, 0);
}

static size_t resident_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_process_that_prints_without_end_takes_no_memory(void **state)
{
    enum { MUCH = 1024 * 1024 * 1024 };
    struct fixture *f = *state;
    f->keep = false;
    start(f, "exec yes 'the same line again and again, as fast as it goes'");
    f->bytes_until = 1;
    net_run(&f->net);
    size_t before = resident_bytes();
    f->bytes_until = MUCH;
    net_run(&f->net);
    assert_true(f->bytes >= MUCH);
    assert_true(resident_bytes() < before + 4 * 1024 * 1024);
    ml_process_pause(f->process, true);
    size_t seen = f->bytes;
    f->bytes_until = 0;
    net_settle(&f->net, 50);
    assert_int_equal(f->bytes, seen);
    ml_process_stop(f->process, 0);
    net_settle(&f->net, 50);
    assert_false(f->is_over); /* its last words have not been read */
    ml_process_pause(f->process, false);
    wait_end(f);
    assert_true(f->bytes > seen);
    assert_int_equal(f->end.code, 137);
}

static void test_process_pause_holds_back_end_and_output(void **state)
{
    struct fixture *f = *state;
    start(f, "echo last words");
    ml_process_pause(f->process, true);
    net_settle(&f->net, 100);
    assert_false(f->is_over);
    ml_process_pause(f->process, false);
    wait_end(f);
    assert_string_equal(ml_buf_cstr(&f->said), "last words\n");
}

static void test_process_start_says_that_the_command_is_too_long(void **state)
{
    struct fixture *f = *state;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *word = ml_zalloc(9 * 1024 * 1024 + 1);
    memset(word, 'x', 9 * 1024 * 1024);
    const char *const argv[] = {"true", word, NULL};
    const struct ml_process_opts opts = {.argv = argv, .env = no_env};
    assert_int_equal(ml_process_start(f->processes, &opts, &f->process, &err), ML_EIO);
    assert_string_equal(err.message, "start true: Argument list too long");
    assert_null(f->process);
    word[200 * 1024] = '\0'; /* the system's limit for one word */
    start_with(f, &(struct ml_process_opts){.argv = argv});
    wait_end(f);
    assert_string_equal(f->end.message, "exec: \"true\": argument list too long");
}

static void test_process_many_at_once(void **state)
{
    enum { COUNT = 100 };
    static struct fixture each[COUNT];
    struct fixture *f = *state;
    for (int i = 0; i < COUNT; i++) {
        each[i] = (struct fixture){.net = f->net, .processes = f->processes, .keep = true};
        start(&each[i], "echo $$; exit 4");
    }
    for (int i = 0; i < COUNT; i++) {
        while (!each[i].is_over)
            net_run(&f->net);
        assert_int_equal(each[i].end.code, 4);
        assert_true(each[i].said.len > 0);
        ml_buf_fini(&each[i].said);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS(test_process_tells_output_and_exit),
        PROCESS(test_process_tells_why_it_cannot_start),
        PROCESS(test_process_takes_command_and_environment_as_they_are),
        PROCESS(test_process_gets_signals_with_its_group),
        PROCESS(test_process_is_killed_after_its_grace),
        PROCESS(test_process_tells_its_end_whatever_it_is_sent_meanwhile),
        PROCESS(test_process_stop_asked_again_takes_the_earlier_time),
        PROCESS(test_process_leaves_nothing_behind),
        PROCESS(test_process_does_not_outlive_a_killed_host),
        PROCESS(test_process_with_too_many_below_it_is_killed),
        PROCESS(test_process_that_prints_without_end_takes_no_memory),
        PROCESS(test_process_pause_holds_back_end_and_output),
        PROCESS(test_process_start_says_that_the_command_is_too_long),
        PROCESS(test_process_many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
