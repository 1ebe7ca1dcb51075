/* A loop that stands still, on the real clock: the thread that watches it has no other. */
#include "net_unit.h"

#include "operator/endpoints.h"
#include "operator/watchdog.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS   (20 * ML_NS_PER_MS)
#define TICKS_MAX 25 /* longer than a busy machine keeps a thread from its turn */

struct fixture {
    struct net net;
    struct ml_metrics *metrics;
    struct ml_endpoints *endpoints;
    struct ml_log log;
    int log_pipe[2];
    char said[2048];
    struct ml_loop_watch *says;
    const char *awaited; /* stops the loop when it was said */
    struct ml_watchdog *watchdog;
    struct ml_timer hang;
};

static bool is_ready(void *context, struct ml_buf *why)
{
    (void)context, (void)why;
    return true;
}

static void read_log(struct fixture *f)
{
    size_t len = strlen(f->said);
    ssize_t got = read(f->log_pipe[0], f->said + len, sizeof f->said - 1 - len);
    f->said[len + (got > 0 ? (size_t)got : 0)] = '\0';
}

static void on_log(void *context)
{
    struct fixture *f = context;
    read_log(f);
    if (f->awaited && strstr(f->said, f->awaited))
        ml_loop_stop(f->net.loop);
}

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    struct ml_err err = ML_ERR_INIT;
    net_init(&f->net);
    f->metrics = ml_metrics_new();
    const struct ml_endpoints_opts endpoints = {
        .loop = f->net.loop,
        .metrics = f->metrics,
        .log = &f->log,
        .health_address = "127.0.0.1:0",
        .ready = is_ready,
    };
    assert_int_equal(ml_endpoints_new(&endpoints, &f->endpoints, &err), 0);
    assert_int_equal(pipe2(f->log_pipe, O_CLOEXEC | O_NONBLOCK), 0);
    ml_log_init(&f->log, ml_clock_real(), f->log_pipe[1], ML_LOG_JSON, ML_LOG_INFO);
    f->says = ml_loop_watch_fd(f->net.loop, f->log_pipe[0], on_log, f);
    const struct ml_watchdog_opts watchdog = {
        .loop = f->net.loop,
        .log = &f->log,
        .listener = ml_endpoints_health_listener(f->endpoints),
        .tick_ns = TICK_NS,
        .ticks_max = TICKS_MAX,
    };
    assert_int_equal(ml_watchdog_new(&watchdog, &f->watchdog, &err), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_timer_stop(&f->hang);
    ml_watchdog_free(f->watchdog);
    ml_loop_watch_free(f->says);
    ml_endpoints_free(f->endpoints);
    ml_metrics_free(f->metrics);
    close(f->log_pipe[0]);
    close(f->log_pipe[1]);
    net_fini(&f->net);
    free(f);
    return 0;
}

/* Runs the loop, in which `work` hangs soon, until the log has `awaited`. */
static void run_till_said(struct fixture *f, void (*work)(void *context), const char *awaited)
{
    f->awaited = awaited;
    ml_timer_init(&f->hang, f->net.loop, work, f);
    ml_timer_start(&f->hang, 2 * TICK_NS);
    net_run(&f->net);
    f->awaited = NULL;
}

static int connect_probe(const struct fixture *f)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)ml_endpoints_health_port(f->endpoints)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    const struct timeval patience = {.tv_sec = 15};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* A probe of the kubelet, waited for: who calls this in the loop makes it hang. */
static void ask(int fd, char *out, size_t size)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    size_t len = 0;
    ssize_t got;
    assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    while ((got = recv(fd, out + len, size - 1 - len, 0)) > 0)
        len += (size_t)got;
    assert_true(got == 0); /* closed, and neither reset nor timed out */
    out[len] = '\0';
    close(fd);
}

static void hang_and_be_probed(void *context)
{
    const struct fixture *f = context;
    char answer[1024];
    for (int i = 0; i < 2; i++) {
        ask(connect_probe(f), answer, sizeof answer);
        assert_non_null(strstr(answer, "HTTP/1.1 503 "));
        assert_non_null(strstr(answer, "\r\n\r\nthe event loop is blocked"));
    }
}

static void assert_healthy(struct fixture *f)
{
    ML_AUTO_FREE char *url = ml_asprintf("http://127.0.0.1:%d/healthz",
                                         ml_endpoints_health_port(f->endpoints));
    struct answer answer;
    answer_get(&answer, &f->net, &(struct ml_http_request){.method = "GET", .url = url});
    assert_int_equal(answer.status, 200);
    ml_buf_fini(&answer.body);
}

static void test_probes_fail_while_the_loop_hangs(void **state)
{
    struct fixture *f = *state;
    assert_healthy(f);
    run_till_said(f, hang_and_be_probed, "runs again");
    assert_non_null(strstr(f->said, "{\"level\":\"error\",\"ts\":\"2"));
    assert_non_null(strstr(f->said, "\"msg\":\"the event loop is blocked\",\"seconds\":0}\n"));
    assert_non_null(strstr(f->said, "\"msg\":\"the event loop runs again\",\"seconds\":0}\n"));
    assert_healthy(f);
}

static void hang_before_a_silent_client(void *context)
{
    const struct fixture *f = context;
    int silent = connect_probe(f);
    hang_and_be_probed(context);
    close(silent);
}

static void test_a_client_that_says_nothing_does_not_keep_the_others(void **state)
{
    run_till_said(*state, hang_before_a_silent_client, "runs again");
    assert_healthy(*state);
}

/* ---- the thread gets no signals ---- */

static volatile sig_atomic_t caught;

static void on_signal(int signo)
{
    caught = signo;
}

static void hang_with_a_signal_pending(void *context)
{
    sigset_t set, pending;
    signal(SIGTERM, on_signal);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGTERM);
    hang_and_be_probed(context); /* the thread has run since */
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGTERM));
    assert_int_equal(caught, 0);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    assert_int_equal(caught, SIGTERM);
    signal(SIGTERM, SIG_DFL);
}

static void test_signals_are_for_the_loop(void **state)
{
    run_till_said(*state, hang_with_a_signal_pending, "runs again");
}

/* ---- what is no hang ---- */

/* Until the first turn the host is being built. */
static void test_nothing_is_said_before_the_first_turn_and_while_it_turns(void **state)
{
    struct fixture *f = *state;
    const struct timespec longer = {.tv_nsec = (TICKS_MAX + 5) * TICK_NS};
    nanosleep(&longer, NULL); /* an absent line is no event to wait for */
    net_settle(&f->net, (TICKS_MAX + 5) * TICK_NS / ML_NS_PER_MS);
    read_log(f);
    assert_string_equal(f->said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_probes_fail_while_the_loop_hangs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_client_that_says_nothing_does_not_keep_the_others,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_signals_are_for_the_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_nothing_is_said_before_the_first_turn_and_while_it_turns, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
