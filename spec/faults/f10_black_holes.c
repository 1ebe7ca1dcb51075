/* F10: a server that does not answer: SYNs that go nowhere, a handshake that never comes, answers a
 * byte at a time, a name that nobody knows. Each wait has its deadline, and no descriptor stays. */
#include <dirent.h>

#include "net_peer.h"
#include "tried.h"

#define TRIES    5
#define PATIENCE 4 /* on a busy machine; the message says which deadline ended the call */

static int open_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static const struct ml_http_deadlines impatient = {
    .connect_ms = 200, .first_byte_ms = 300, .idle_ms = 400, .total_ms = 1000};

/* Fails TRIES times, each within the time, with this error; leaves no descriptor behind. */
static void assert_fails(struct net *net, const char *url, bool streaming, int64_t within_ms,
                         int kind, const char *message)
{
    static const struct ml_http_tls tls = {.insecure = true};
    struct ml_clock *clock = ml_loop_clock(net->loop);
    int before = open_descriptors(), most = before;
    for (int i = 0; i < TRIES; i++) {
        struct answer got;
        struct ml_http_request request = {.method = "GET",
                                          .url = url,
                                          .tls = &tls,
                                          .deadlines = impatient,
                                          .streaming = streaming};
        int64_t begun_ns = ml_clock_monotonic(clock);
        answer_get(&got, net, &request);
        int64_t took_ms = (ml_clock_monotonic(clock) - begun_ns) / ML_NS_PER_MS;
        if (got.err.kind != kind || !strstr(got.err.message, message) ||
            took_ms > PATIENCE * within_ms)
            fail_msg("%s: %d ms, kind %d: %s", url, (int)took_ms, got.err.kind, got.err.message);
        ml_buf_fini(&got.body);
        most = ML_MAX(most, open_descriptors());
    }
    net_settle(net, 50);
    assert_in_range(most, before, before + 8); /* libcurl's own wake-up pipes, and one socket */
    faults_tried("F10", TRIES);
}

/* As many connections as the queue of the socket takes; the next SYN is dropped. */
static void test_connect_into_a_black_hole_ends_in_time(void **state)
{
    struct net *net = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int hole = socket(AF_INET, SOCK_STREAM, 0), fillers[8];
    assert_int_equal(bind(hole, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(hole, 0), 0);
    assert_int_equal(getsockname(hole, (struct sockaddr *)&address, &len), 0);
    for (size_t i = 0; i < ML_COUNT(fillers); i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fillers[i], (struct sockaddr *)&address, len);
    }
    for (int streaming = 0; streaming < 2; streaming++)
        assert_fails(net, local_url(ntohs(address.sin_port)), streaming, 600, ML_ETIMEOUT,
                     "no connection within 0.2 s");
    for (size_t i = 0; i < ML_COUNT(fillers); i++)
        close(fillers[i]);
    close(hole);
}

/* Accepts, and says nothing: neither to TLS nor to HTTP. */
static void test_silent_server_ends_in_time(void **state)
{
    static const struct peer_step silent[] = {{60000, ""}, {0, NULL}};
    static char https[64];
    for (int streaming = 0; streaming < 2; streaming++) {
        struct net *net = *state;
        struct peer peer;
        peer_init(&peer, net, silent, PEER_HOLD);
        assert_fails(net, local_url(peer.port), streaming, 800, ML_ETIMEOUT, "no answer from");
        peer_fini(&peer);
        peer_init(&peer, net, silent, PEER_HOLD);
        snprintf(https, sizeof https, "https://127.0.0.1:%d/", peer.port);
        assert_fails(net, https, streaming, 600, ML_ETIMEOUT, "no connection within 0.2 s");
        peer_fini(&peer);
    }
}

/* A byte now and then, of the head and of the body: never long silent, and never done. */
static void test_trickling_server_ends_in_time(void **state)
{
    static const struct peer_step head[] = {
        {100, "H"}, {100, "T"}, {100, "T"}, {100, "P"}, {100, "/"}, {100, "1"}, {100, "."},
        {100, "1"}, {100, " "}, {100, "2"}, {100, "0"}, {100, "0"}, {100, " "}, {0, NULL}};
    static const struct peer_step body[] = {{0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {150, "x"},
                                            {0, NULL}};
    static const struct peer_step stalled[] = {
        {0, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"}, {0, NULL}};
    static const struct {
        const struct peer_step *steps;
        const char *message;
        int64_t within_ms;
    } rows[] = {
        {head, "no answer from", 800},
        {body, "not done within 1 s", 1500},
        {stalled, "stalled: no byte for 0.4 s", 1000},
    };
    for (size_t i = 0; i < 2 * ML_COUNT(rows); i++) {
        struct net *net = *state;
        struct peer peer;
        peer_init(&peer, net, rows[i / 2].steps, PEER_HOLD);
        assert_fails(net, local_url(peer.port), i % 2, rows[i / 2].within_ms, ML_ETIMEOUT,
                     rows[i / 2].message);
        peer_fini(&peer);
    }
}

static void test_unknown_name_is_a_network_error(void **state)
{
    assert_fails(*state, "https://no-such-host.invalid:6443/", false, 5000, ML_ENETWORK,
                 "no such host");
}

static void test_closed_port_is_a_network_error_at_once(void **state)
{
    int port;
    close(peer_listen(&port));
    assert_fails(*state, local_url(port), true, 200, ML_ENETWORK, "connection refused");
}

#define NET(test) cmocka_unit_test_setup_teardown(test, net_setup, net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(test_connect_into_a_black_hole_ends_in_time), NET(test_silent_server_ends_in_time),
        NET(test_trickling_server_ends_in_time),          NET(test_unknown_name_is_a_network_error),
        NET(test_closed_port_is_a_network_error_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
