/* moonloop top on a pseudo terminal: it asks a host, reads keys, and gives the terminal back at
 * each end. The host is a process that answers the same to each question. */
#include "unit.h"

#include "cli/command.h"
#include "cli/top.h"
#include "net/http_routes.h"
#include "operator/inspect_server.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <utmp.h>

#define WAIT_NS     (20 * ML_NS_PER_S)
#define GIVES_BACK  "\x1b[?1049l"
#define SHOWS_TABLE "objects in trouble or active"

struct terminal {
    pid_t host, top;
    int master;
    struct termios before;
    char said[1 << 20]; /* since the last key */
    size_t len;
};

static void answer(void *context, struct ml_http_page *page)
{
    (void)context;
    page->content_type = "application/json";
    if (strncmp(page->path, "/why/", 5) == 0)
        ml_buf_puts(&page->reply, "{\"kind\":\"At\",\"name\":\"d/a\",\"controllers\":[{\"now\":"
                                  "\"it is \\u001b[5m odd\"}],\"runs\":[],\"writes\":[]}");
    else
        ml_buf_puts(&page->reply,
                    "{\"at\":\"2026-01-02T15:04:05Z\",\"ready\":true,\"leads\":true,\"keys\":[{"
                    "\"controller\":\"cnat\",\"kind\":\"At\",\"name\":\"d/a\",\"state\":\"fails\","
                    "\"failures\":3,\"error\":\"bad \\u001b]0;title\\u0007 luck\"}]}");
}

/* The host's process; `ready` is closed when it listens. */
static void serve(int ready)
{
    struct ml_loop *loop = ml_loop_new(ml_clock_real());
    struct ml_http_routes *routes = NULL;
    struct ml_err err = ML_ERR_INIT;
    ML_AUTO_FREE char *pid = ml_asprintf("%d", (int)getpid());
    ML_AUTO_FREE char *name = ml_inspect_socket(pid);
    ML_AUTO_FREE char *address = ml_asprintf("@%s", name);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ml_http_routes_new(loop, address, &routes, &err) < 0)
        _exit(1);
    ml_http_routes_add(routes, "/top/", answer, NULL);
    ml_http_routes_add(routes, "/why/", answer, NULL);
    close(ready);
    ml_loop_run(loop);
    _exit(0);
}

/* Both sides of the terminal end when nobody has them. */
static pid_t start_host(int master, int slave)
{
    int ready[2];
    char none;
    assert_int_equal(0, pipe(ready));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ready[0]);
        close(master);
        close(slave);
        serve(ready[1]);
    }
    close(ready[1]);
    assert_int_equal(0, read(ready[0], &none, 1));
    close(ready[0]);
    return pid;
}

/* Runs it on a new terminal. False: there is none on this machine. */
static bool start_top(struct terminal *self, bool has_host)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};
    int slave;
    *self = (struct terminal){.master = -1};
    if (openpty(&self->master, &slave, NULL, NULL, &size) < 0)
        return false;
    self->host = has_host ? start_host(self->master, slave) : 0;
    ML_AUTO_FREE char *pid = ml_asprintf("%d", has_host ? (int)self->host : 4194304);
    assert_int_equal(0, tcgetattr(slave, &self->before));
    self->top = fork();
    assert_true(self->top >= 0);
    if (self->top == 0) {
        char *argv[] = {"top", "--pid", pid, NULL};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(self->master);
        if (login_tty(slave) < 0)
            _exit(99);
        int code = ml_command_main(&ml_command_top, 3, argv);
        fflush(NULL);
        _exit(code);
    }
    close(slave);
    return true;
}

static int open_terminal(void **state)
{
    static struct terminal self;
    *state = start_top(&self, true) ? &self : NULL;
    return 0;
}

/* The one that the setup opened. */
static struct terminal *terminal_of(void **state)
{
    skip_without_terminals();
    assert_non_null(*state);
    return *state;
}

static void end(pid_t *pid)
{
    if (*pid <= 0)
        return;
    kill(*pid, SIGKILL);
    waitpid(*pid, NULL, 0);
    *pid = 0;
}

static int close_terminal(void **state)
{
    struct terminal *self = *state;
    if (!self)
        return 0;
    end(&self->top);
    end(&self->host);
    close(self->master);
    return 0;
}

/* Waits until it has said `text` since the last key. */
static void till(struct terminal *self, const char *text)
{
    const int64_t end_ns = ml_clock_monotonic(ml_clock_real()) + WAIT_NS;
    while (!strstr(self->said, text)) {
        struct pollfd in = {.fd = self->master, .events = POLLIN};
        int64_t left_ns = end_ns - ml_clock_monotonic(ml_clock_real());
        ssize_t n = 0;
        if (left_ns > 0 && poll(&in, 1, (int)(left_ns / ML_NS_PER_MS) + 1) > 0)
            n = read(self->master, self->said + self->len, sizeof self->said - 1 - self->len);
        if (n <= 0)
            fail_msg("it did not say %s, but: %s", text, self->said);
        self->len += (size_t)n;
        self->said[self->len] = '\0';
    }
}

static void forget(struct terminal *self)
{
    self->len = 0;
    self->said[0] = '\0';
}

static void press(struct terminal *self, const char *keys)
{
    forget(self);
    assert_int_equal(strlen(keys), write(self->master, keys, strlen(keys)));
}

/* The terminal is as it was. Returns how the process ended, as waitpid tells it. */
static int ended(struct terminal *self)
{
    struct termios after;
    int status;
    till(self, GIVES_BACK);
    assert_non_null(strstr(self->said, "\x1b[?25h"));
    assert_int_equal(self->top, waitpid(self->top, &status, 0));
    self->top = 0;
    assert_int_equal(0, tcgetattr(self->master, &after));
    assert_int_equal(self->before.c_lflag, after.c_lflag);
    assert_int_equal(self->before.c_iflag, after.c_iflag);
    assert_memory_equal(self->before.c_cc, after.c_cc, sizeof after.c_cc);
    return status;
}

static void test_terminal_is_given_back_after_q(void **state)
{
    struct terminal *self = terminal_of(state);
    struct termios during;
    till(self, SHOWS_TABLE);
    till(self, "? help");
    assert_int_equal(0, tcgetattr(self->master, &during));
    assert_int_equal(0, during.c_lflag & (ICANON | ECHO));
    assert_non_null(strstr(self->said, "bad \\x1b]0;title\\x07 luck"));
    assert_null(strstr(self->said, "\x1b]0"));
    press(self, "q");
    assert_int_equal(0, ended(self));
}

static void test_terminal_shows_why_and_returns(void **state)
{
    struct terminal *self = terminal_of(state);
    till(self, "? help");
    press(self, "\r");
    till(self, "At d/a");
    till(self, "it is \\x1b[5m odd");
    press(self, "\x1b");
    till(self, SHOWS_TABLE);
    press(self, "\x1b[Bq");
    assert_int_equal(0, ended(self));
}

static void test_terminal_has_another_size(void **state)
{
    struct terminal *self = terminal_of(state);
    const struct winsize small = {.ws_row = 5, .ws_col = 20}, none = {0};
    till(self, "? help  q quit  Enter why");
    press(self, "p"); /* no answer draws the screen again */
    till(self, "paused");
    forget(self);
    assert_int_equal(0, ioctl(self->master, TIOCSWINSZ, &small));
    till(self, "? help  q quit  Ente\x1b[K");
    forget(self);
    assert_int_equal(0, ioctl(self->master, TIOCSWINSZ, &none));
    till(self, "? help  q quit  Enter why");
    press(self, "q");
    assert_int_equal(0, ended(self));
}

static void test_terminal_is_given_back_after_signals(void **state)
{
    static const int signals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
    for (size_t i = 0; i < ML_COUNT(signals); i++) {
        struct terminal *self = terminal_of(state);
        till(self, "? help");
        if (signals[i] == SIGINT)
            press(self, "\x03");
        else
            kill(self->top, signals[i]);
        int status = ended(self);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(signals[i], WTERMSIG(status));
        close_terminal(state);
        open_terminal(state);
    }
}

/* The host has stopped, and does not answer: the question is not waited for. */
static void test_terminal_is_given_back_while_the_host_is_silent(void **state)
{
    struct terminal *self = terminal_of(state);
    till(self, "? help");
    kill(self->host, SIGSTOP);
    press(self, "r");
    kill(self->top, SIGTERM);
    assert_int_equal(SIGTERM, WTERMSIG(ended(self)));
}

static void test_terminal_has_the_error_when_the_host_has_gone(void **state)
{
    struct terminal *self = terminal_of(state);
    till(self, "? help");
    end(&self->host);
    till(self, GIVES_BACK);
    const char *given = strstr(self->said, GIVES_BACK);
    till(self, "is no moonloop host on this machine");
    assert_true(strstr(self->said, "is no moonloop host on this machine") > given);
    assert_int_equal(3, WEXITSTATUS(ended(self)));
}

static void test_terminal_is_not_taken_where_no_host_is(void **state)
{
    struct terminal *self = terminal_of(state);
    int status;
    close_terminal(state);
    assert_true(start_top(self, false));
    till(self, "process 4194304 is no moonloop host on this machine\r\n");
    assert_null(strchr(self->said, '\x1b'));
    assert_int_equal(self->top, waitpid(self->top, &status, 0));
    self->top = 0;
    assert_int_equal(3, WEXITSTATUS(status));
}

static void test_terminal_is_hung_up(void **state)
{
    struct terminal *self = terminal_of(state);
    int status;
    till(self, "? help");
    close(self->master);
    self->master = open("/dev/null", O_RDONLY);
    assert_int_equal(self->top, waitpid(self->top, &status, 0));
    self->top = 0;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

#define TERMINAL_TEST(name) cmocka_unit_test_setup_teardown(name, open_terminal, close_terminal)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TERMINAL_TEST(test_terminal_is_given_back_after_q),
        TERMINAL_TEST(test_terminal_shows_why_and_returns),
        TERMINAL_TEST(test_terminal_has_another_size),
        TERMINAL_TEST(test_terminal_is_given_back_after_signals),
        TERMINAL_TEST(test_terminal_is_given_back_while_the_host_is_silent),
        TERMINAL_TEST(test_terminal_has_the_error_when_the_host_has_gone),
        TERMINAL_TEST(test_terminal_is_not_taken_where_no_host_is),
        TERMINAL_TEST(test_terminal_is_hung_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
