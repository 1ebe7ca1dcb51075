/* A relay between a client and a server, both of the test: what one says, the other hears. */
#include "net_unit.h"

#include "cluster/host/relay.h"
#include "net/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY_BYTES ((size_t)8 * 1024 * 1024) /* more than sockets and relay hold */

struct fixture {
    struct net net;
    struct ml_relay *relay;
    struct ml_relay_listener *listener;
    int port;      /* of the relay */
    int server;    /* listens */
    int found;     /* calls of find() */
    bool is_going; /* find() frees the listener */
    bool refuses;
};

static bool find(void *context, struct in_addr client, struct ml_relay_target *out)
{
    const int little = 16384; /* then more waits in the relay */
    struct fixture *f = context;
    f->found++;
    assert_int_equal(ntohl(client.s_addr), INADDR_LOOPBACK);
    if (f->is_going)
        ml_relay_listener_free(ml_take(&f->listener));
    if (f->refuses)
        return false;
    out->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(out->socket, SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    out->address = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)ml_tcp_local_port(f->server)),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return out->socket >= 0;
}

static int open_listener(void)
{
    struct ml_err err = ML_ERR_INIT;
    int fd = -1;
    if (ml_tcp_listen("127.0.0.1:0", &fd, &err) < 0)
        fail_msg("%s", err.message);
    return fd;
}

static int setup(void **state)
{
    struct fixture *f = ml_new(struct fixture);
    net_init(&f->net);
    f->relay = ml_relay_new(f->net.loop);
    f->server = open_listener();
    int fd = open_listener();
    f->port = ml_tcp_local_port(fd);
    f->listener = ml_relay_listen(f->relay, fd, find, f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_relay_free(f->relay);
    ml_close_fd(&f->server);
    net_fini(&f->net);
    free(f);
    return 0;
}

static int connect_client(struct fixture *f)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)f->port),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Serves the loop until the socket is ready for `events`. */
static void till(struct fixture *f, int fd, short events)
{
    struct pollfd wanted = {.fd = fd, .events = events};
    for (int i = 0; poll(&wanted, 1, 0) == 0; i++) {
        assert_true(i < 20000);
        net_settle(&f->net, 1);
    }
}

static int accept_server(struct fixture *f)
{
    till(f, f->server, POLLIN);
    int fd = accept4(f->server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void assert_hears(struct fixture *f, int fd, const char *text)
{
    char bytes[64] = "";
    till(f, fd, POLLIN);
    assert_int_equal(recv(fd, bytes, sizeof bytes, 0), (int)strlen(text));
    assert_string_equal(bytes, text);
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

static void assert_hears_error(struct fixture *f, int fd, int problem)
{
    char byte;
    till(f, fd, POLLIN);
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, problem);
}

/* Each direction ends for itself. */
static void test_relay_passes_bytes_and_ends_on(void **state)
{
    struct fixture *f = *state;
    int client = connect_client(f), server = accept_server(f);
    say(client, "question");
    shutdown(client, SHUT_WR);
    assert_hears(f, server, "question");
    assert_hears(f, server, "");
    say(server, "answer");
    assert_hears(f, client, "answer");
    ml_close_fd(&server);
    assert_hears(f, client, "");
    ml_close_fd(&client);
    net_settle(&f->net, 5);
}

static void test_relay_passes_resets_on(void **state)
{
    const struct linger at_once = {.l_onoff = 1};
    struct fixture *f = *state;
    int client = connect_client(f), server = accept_server(f);
    say(client, "question");
    assert_hears(f, server, "question");
    setsockopt(server, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ml_close_fd(&server);
    assert_hears_error(f, client, ECONNRESET);
    ml_close_fd(&client);
}

/* @return how much the relay and the kernel took */
static size_t send_till_full(struct fixture *f, int fd)
{
    static const char bytes[65536];
    size_t sent = 0;
    for (int idle = 0; idle < 20 && sent < MANY_BYTES;) {
        ssize_t len = send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        idle = len > 0 ? 0 : idle + 1;
        sent += len > 0 ? (size_t)len : 0;
        net_settle(&f->net, 1);
    }
    return sent;
}

/* @return how much came until the end */
static size_t hear_all(struct fixture *f, int fd)
{
    static char bytes[65536];
    size_t heard = 0;
    for (ssize_t len = 1; len > 0; heard += (size_t)ML_MAX(len, (ssize_t)0)) {
        till(f, fd, POLLIN);
        len = recv(fd, bytes, sizeof bytes, 0);
        assert_true(len >= 0);
    }
    return heard;
}

/* A sender waits for a reader; all of it arrives, and only then the end. */
static void test_relay_holds_little_for_who_does_not_read(void **state)
{
    const int small = 65536;
    struct fixture *f = *state;
    setsockopt(f->server, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    int client = connect_client(f);
    setsockopt(client, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    int server = accept_server(f);
    size_t sent = send_till_full(f, client);
    assert_true(sent < MANY_BYTES);
    shutdown(client, SHUT_WR);
    assert_int_equal(hear_all(f, server), sent);
    ml_close_fd(&server);
    ml_close_fd(&client);
}

/* Also when all came at once, and most of it still waits in the relay. */
static void test_relay_passes_the_end_on_last(void **state)
{
    static char bytes[200000];
    const int small = 16384, large = 400000;
    struct fixture *f = *state;
    setsockopt(f->server, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    int client = connect_client(f), server = accept_server(f);
    setsockopt(client, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    assert_int_equal(send(client, bytes, sizeof bytes, MSG_NOSIGNAL), (int)sizeof bytes);
    shutdown(client, SHUT_WR);
    net_settle(&f->net, 50); /* the relay has all of it */
    assert_int_equal(hear_all(f, server), sizeof bytes);
    ml_close_fd(&server);
    ml_close_fd(&client);
}

static void test_relay_resets_what_leads_nowhere(void **state)
{
    struct fixture *f = *state;
    f->refuses = true;
    int client = connect_client(f);
    assert_hears_error(f, client, ECONNRESET);
    ml_close_fd(&client);
    f->refuses = false;
    /* The target's port is one that nobody listens at. */
    ml_close_fd(&f->server);
    f->server = open_listener();
    int taken = f->server;
    shutdown(taken, SHUT_RD); /* the port is kept, and refuses */
    client = connect_client(f);
    assert_hears_error(f, client, ECONNRESET);
    assert_int_equal(f->found, 2);
    ml_close_fd(&client);
}

static void test_relay_goes_on_without_its_listener(void **state)
{
    struct fixture *f = *state;
    f->is_going = true;
    int client = connect_client(f), server = accept_server(f);
    assert_null(f->listener);
    say(client, "still");
    assert_hears(f, server, "still");
    ml_close_fd(&client);
    ml_close_fd(&server);
}

static void test_relay_cuts_all_when_it_is_freed(void **state)
{
    struct fixture *f = *state;
    int client = connect_client(f), server = accept_server(f);
    say(client, "before");
    assert_hears(f, server, "before");
    ml_relay_free(ml_take(&f->relay));
    assert_hears_error(f, client, ECONNRESET);
    assert_hears_error(f, server, ECONNRESET);
    ml_close_fd(&client);
    ml_close_fd(&server);
}

/* Where a process may have few descriptors, others need some, too. */
static void test_relay_has_a_limit(void **state)
{
    struct rlimit before, few;
    struct fixture *f = *state;
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    struct ml_relay *relay = ml_relay_new(f->net.loop);
    int fd = open_listener(), clients[9], servers[8];
    f->port = ml_tcp_local_port(fd);
    ml_relay_listen(relay, fd, find, f);
    for (size_t i = 0; i < 8; i++) {
        clients[i] = connect_client(f);
        servers[i] = accept_server(f);
    }
    clients[8] = connect_client(f);
    assert_hears_error(f, clients[8], ECONNRESET);
    assert_int_equal(f->found, 8);
    ml_close_fd(&clients[0]); /* then there is room */
    assert_hears(f, servers[0], "");
    ml_close_fd(&servers[0]);
    net_until(&f->net, ml_relay_has_room(relay));
    clients[0] = connect_client(f);
    servers[0] = accept_server(f);
    for (size_t i = 0; i < 9; i++)
        ml_close_fd(&clients[i]);
    for (size_t i = 0; i < 8; i++)
        ml_close_fd(&servers[i]);
    ml_relay_free(relay);
    setrlimit(RLIMIT_NOFILE, &before);
}

#define RELAY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RELAY_TEST(test_relay_passes_bytes_and_ends_on),
        RELAY_TEST(test_relay_passes_resets_on),
        RELAY_TEST(test_relay_holds_little_for_who_does_not_read),
        RELAY_TEST(test_relay_passes_the_end_on_last),
        RELAY_TEST(test_relay_resets_what_leads_nowhere),
        RELAY_TEST(test_relay_goes_on_without_its_listener),
        RELAY_TEST(test_relay_cuts_all_when_it_is_freed),
        RELAY_TEST(test_relay_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
