/* The way out of the pods' network, on the kernel's. Outside is a network namespace of the test's
 * own, with one address; skipped where the machine does not let its user have one. */
#include "net_unit.h"

#include "cluster/host/egress.h"
#include "cluster/host/netlink.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUTSIDE "198.51.100.1"
#define PORT    5432
#define MANY    40

struct fixture {
    struct net net;
    struct ml_pod_network *network;
    struct ml_relay *relay;
    struct ml_egress *egress;
    int pod;
};

static bool has_network;

static struct in_addr address_of(const char *text)
{
    struct in_addr address;
    assert_int_equal(inet_pton(AF_INET, text, &address), 1);
    return address;
}

static struct sockaddr_in place(const char *address, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = address_of(address), .sin_port = htons(port)};
}

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    ml_close_fd(&fd);
    return done;
}

/* From here on nothing that is sent can leave the machine. */
static int enter_outside(void **state)
{
    char users[32], groups[32];
    (void)state;
    snprintf(users, sizeof users, "0 %u 1", geteuid());
    snprintf(groups, sizeof groups, "0 %u 1", getegid());
    has_network = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
                  write_file("/proc/self/setgroups", "deny") &&
                  write_file("/proc/self/gid_map", groups) &&
                  write_file("/proc/self/uid_map", users);
    if (!has_network)
        return 0;
    int netlink = netlink_open();
    unsigned loopback = if_nametoindex("lo");
    assert_true(netlink_set_up(netlink, loopback));
    assert_true(netlink_add_address(netlink, loopback, address_of(OUTSIDE), 24));
    ml_close_fd(&netlink);
    return 0;
}

static int setup(void **state)
{
    struct ml_err err = ML_ERR_INIT;
    struct fixture *f = ml_new(struct fixture);
    *state = f;
    f->pod = -1;
    net_init(&f->net);
    f->relay = ml_relay_new(f->net.loop);
    if (!has_network)
        return 0;
    if (ml_pod_network_new(&f->network, &err) < 0 || ml_pod_network_wait(f->network, &err) < 0 ||
        ml_pod_network_add(f->network, address_of("10.244.0.2"), "", &f->pod, &err) < 0 ||
        ml_egress_new(f->net.loop, f->network, f->relay, &f->egress, &err) < 0)
        fail_msg("%s", err.message);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ml_egress_free(f->egress);
    ml_relay_free(f->relay);
    ml_pod_network_free(f->network);
    ml_close_fd(&f->pod);
    net_fini(&f->net);
    free(f);
    return 0;
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

static int listen_at(const char *address, uint16_t port)
{
    const struct sockaddr_in at = place(address, port);
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, MANY), 0);
    return fd;
}

/* A pod's socket on its way to a place. */
static int begin_connect(struct fixture *f, const char *address, uint16_t port)
{
    const struct sockaddr_in to = place(address, port);
    struct ml_err err = ML_ERR_INIT;
    int fd = -1;
    assert_int_equal(ml_pod_network_socket_in(f->network, f->pod, &fd, &err), 0);
    errno = 0;
    connect(fd, (const struct sockaddr *)&to, sizeof to);
    return fd;
}

static int connect_problem(struct fixture *f, const char *address, uint16_t port)
{
    int fd = begin_connect(f, address, port), problem = errno;
    socklen_t len = sizeof problem;
    till(f, fd, POLLOUT);
    if (problem == EINPROGRESS)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &len);
    ml_close_fd(&fd);
    return problem;
}

static void assert_hears(struct fixture *f, int fd, const char *text)
{
    char bytes[64] = "";
    till(f, fd, POLLIN);
    assert_int_equal(recv(fd, bytes, sizeof bytes, 0), (int)strlen(text));
    assert_string_equal(bytes, text);
}

static void test_egress_connects_to_what_listens_outside(void **state)
{
    struct fixture *f = *state;
    if (!has_network)
        skip();
    int server = listen_at(OUTSIDE, PORT), clients[MANY], accepted;
    for (size_t i = 0; i < MANY; i++)
        clients[i] = begin_connect(f, OUTSIDE, PORT);
    for (size_t i = 0; i < MANY; i++) {
        till(f, clients[i], POLLOUT);
        till(f, server, POLLIN);
        accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        assert_true(accepted >= 0);
        assert_int_equal(send(accepted, "hello", 5, 0), 5);
        ml_close_fd(&accepted);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_hears(f, clients[i], "hello");
        assert_hears(f, clients[i], "");
        ml_close_fd(&clients[i]);
    }
    ml_close_fd(&server);
}

/* Each is told as the machine was, and none is connected first. */
static void test_egress_refuses_as_the_outside_does(void **state)
{
    struct fixture *f = *state;
    if (!has_network)
        skip();
    assert_int_equal(connect_problem(f, OUTSIDE, PORT), ECONNREFUSED);
    assert_int_equal(connect_problem(f, "203.0.113.1", PORT), ENETUNREACH);
    int server = listen_at(OUTSIDE, PORT);
    assert_int_equal(connect_problem(f, OUTSIDE, PORT), 0);
    ml_close_fd(&server);
    assert_int_equal(connect_problem(f, OUTSIDE, PORT), ECONNREFUSED);
}

/* Addresses of the cluster are never the machine's, and neither is its loopback. */
static void test_egress_does_not_lead_to_loopback_or_the_cluster(void **state)
{
    struct fixture *f = *state;
    if (!has_network)
        skip();
    int netlink = netlink_open();
    unsigned loopback = if_nametoindex("lo");
    assert_true(netlink_add_address(netlink, loopback, address_of("10.0.77.77"), 32));
    assert_true(netlink_add_address(netlink, loopback, address_of("169.254.169.254"), 32));
    int servers[] = {listen_at("127.0.0.1", PORT), listen_at("10.0.77.77", PORT),
                     listen_at("169.254.169.254", PORT)};
    assert_int_equal(connect_problem(f, "127.0.0.1", PORT), ECONNREFUSED);
    assert_int_equal(connect_problem(f, "10.0.77.77", PORT), ECONNREFUSED);
    assert_int_equal(connect_problem(f, "169.254.169.254", PORT), EHOSTUNREACH);
    assert_int_equal(connect_problem(f, "100.100.100.200", PORT), EHOSTUNREACH);
    assert_int_equal(connect_problem(f, "192.0.0.192", PORT), EHOSTUNREACH);
    net_settle(&f->net, 20);
    for (size_t i = 0; i < ML_COUNT(servers); i++) {
        assert_int_equal(accept(servers[i], NULL, NULL), -1);
        ml_close_fd(&servers[i]);
    }
    ml_close_fd(&netlink);
}

static int datagram_socket_at(const char *address, uint16_t port)
{
    const struct sockaddr_in at = place(address, port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* In the pod: the node makes TCP sockets there only. */
static int pod_datagram_socket(const struct fixture *f)
{
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int fd = -1;
    if (setns(f->pod, CLONE_NEWNET) == 0) {
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_int_equal(setns(own, CLONE_NEWNET), 0);
    }
    ml_close_fd(&own);
    return fd;
}

static void test_egress_passes_datagrams_and_their_answers(void **state)
{
    static char bytes[60000];
    struct fixture *f = *state;
    struct sockaddr_in from;
    socklen_t from_len = sizeof from;
    if (!has_network)
        skip();
    int client = pod_datagram_socket(f);
    if (client < 0) /* the pod's namespace is the node's to enter */
        skip();
    int server = datagram_socket_at(OUTSIDE, PORT), other = datagram_socket_at(OUTSIDE, PORT + 1);
    const struct sockaddr_in to = place(OUTSIDE, PORT);
    assert_int_equal(connect(client, (const struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(client, "question", 8, 0), 8);
    till(f, server, POLLIN);
    assert_int_equal(recvfrom(server, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &from_len),
                     8);
    /* Nobody else answers. */
    sendto(other, "wrong", 5, 0, (struct sockaddr *)&from, from_len);
    assert_int_equal(sendto(server, bytes, sizeof bytes, 0, (struct sockaddr *)&from, from_len),
                     sizeof bytes);
    till(f, client, POLLIN);
    assert_int_equal(recv(client, bytes, sizeof bytes, 0), sizeof bytes);
    ml_close_fd(&server);
    assert_int_equal(send(client, "question", 8, 0), 8);
    till(f, client, POLLIN | POLLERR);
    assert_int_equal(recv(client, bytes, sizeof bytes, 0), -1);
    assert_int_equal(errno, ECONNREFUSED);
    ml_close_fd(&client);
    ml_close_fd(&other);
}

/* ---- limits ---- */

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Serves the loop until so many descriptors are open, however late the kernel hands the packets on,
 * and then until one more would have been opened. */
static void settle_until_taken(struct fixture *f, size_t count)
{
    for (int i = 0; count_descriptors() < count; i++) {
        assert_true(i < 5000);
        net_settle(&f->net, 1);
    }
    net_settle(&f->net, 20);
}

/* One pod takes so many descriptors of the host and no more, however much it asks for. */
static void test_egress_gives_one_pod_only_so_much(void **state)
{
    enum { ASKED = ML_EGRESS_POD_FLOWS_MAX + 60 };
    const struct sockaddr_in to = place(OUTSIDE, PORT);
    struct fixture *f = *state;
    int sockets[ASKED];
    if (!has_network)
        skip();
    sockets[0] = pod_datagram_socket(f);
    if (sockets[0] < 0)
        skip();
    int server = datagram_socket_at(OUTSIDE, PORT);
    for (size_t i = 1; i < ASKED; i++)
        sockets[i] = pod_datagram_socket(f);
    size_t before = count_descriptors();
    for (size_t i = 0; i < ASKED; i++) {
        sendto(sockets[i], "x", 1, 0, (const struct sockaddr *)&to, sizeof to);
        net_settle(&f->net, 1);
    }
    settle_until_taken(f, before + ML_EGRESS_POD_FLOWS_MAX);
    assert_int_equal(count_descriptors(), before + ML_EGRESS_POD_FLOWS_MAX);
    for (size_t i = 0; i < ASKED; i++)
        ml_close_fd(&sockets[i]);
    ml_close_fd(&server);
}

/* A server that accepts nobody answers only the first ones; others wait. */
static void test_egress_has_only_so_many_attempts_of_a_pod(void **state)
{
    enum { ASKED = ML_EGRESS_POD_ATTEMPTS_MAX + 60 };
    struct fixture *f = *state;
    int sockets[ASKED];
    if (!has_network)
        skip();
    int server = listen_at(OUTSIDE, PORT);
    assert_int_equal(listen(server, 0), 0);
    size_t before = count_descriptors();
    for (size_t i = 0; i < ASKED; i++) {
        sockets[i] = begin_connect(f, OUTSIDE, PORT);
        net_settle(&f->net, 1);
    }
    settle_until_taken(f, before + ASKED + ML_EGRESS_POD_ATTEMPTS_MAX);
    /* The descriptors of the relay, two each, and of a listener. */
    size_t taken = count_descriptors() - before - ASKED;
    assert_in_range(taken, ML_EGRESS_POD_ATTEMPTS_MAX, ML_EGRESS_POD_ATTEMPTS_MAX + 9);
    for (size_t i = 0; i < ASKED; i++)
        ml_close_fd(&sockets[i]);
    ml_close_fd(&server);
}

/* ---- packets ---- */

static size_t make_syn(uint8_t bytes[64], const char *from, const char *to)
{
    struct iphdr ip = {.version = 4,
                       .ihl = 5,
                       .protocol = IPPROTO_TCP,
                       .tot_len = htons(sizeof ip + sizeof(struct tcphdr)),
                       .saddr = address_of(from).s_addr,
                       .daddr = address_of(to).s_addr};
    struct tcphdr tcp = {.source = htons(1000), .dest = htons(80), .doff = 5, .syn = 1};
    memcpy(bytes, &ip, sizeof ip);
    memcpy(bytes + sizeof ip, &tcp, sizeof tcp);
    return sizeof ip + sizeof tcp;
}

static void test_egress_reads_no_packet_that_is_cut_or_of_others(void **state)
{
    static const char *const others[][2] = {
        {"10.245.0.2", OUTSIDE},       {"10.244.0.2", "10.244.0.3"},
        {"10.244.0.2", "10.0.0.10"},   {"10.244.0.2", "127.0.0.1"},
        {"10.244.0.2", "0.0.0.1"},     {"10.244.0.2", "169.254.169.254"},
        {"10.244.0.2", "224.0.0.1"},   {"10.244.0.2", "255.255.255.255"},
        {"10.244.0.2", "240.0.0.1"},   {"10.244.0.2", "100.100.100.200"},
        {"10.244.0.2", "192.0.0.192"}, {"10.244.0.2", "168.63.129.16"},
    };
    struct egress_packet packet;
    uint8_t bytes[64], exact[64];
    (void)state;
    size_t len = make_syn(bytes, "10.244.0.2", OUTSIDE);
    assert_true(egress_read_syn(bytes, len, &packet));
    assert_int_equal(packet.len, sizeof(struct tcphdr));
    assert_int_equal(ntohs(packet.flow.pod_port), 1000);
    assert_int_equal(ntohs(packet.flow.outside_port), 80);
    for (size_t i = 0; i < len; i++)
        assert_false(egress_read_syn(bytes, i, &packet));
    assert_false(egress_read_datagram(bytes, len, &packet));
    for (size_t i = 0; i < ML_COUNT(others); i++) {
        make_syn(exact, others[i][0], others[i][1]);
        assert_false(egress_read_syn(exact, len, &packet));
    }
    /* Any packet is refused, or read within its bounds. */
    srand(7);
    for (int i = 0; i < 20000; i++) {
        uint8_t *heap = malloc(len);
        memcpy(heap, bytes, len);
        for (int j = rand() % 4; j >= 0; j--)
            heap[(size_t)rand() % len] = (uint8_t)rand();
        heap[9] = i % 2 ? IPPROTO_TCP : IPPROTO_UDP;
        if (egress_read_syn(heap, len, &packet) || egress_read_datagram(heap, len, &packet))
            assert_true(packet.segment >= heap && packet.segment + packet.len <= heap + len);
        free(heap);
    }
}

#define EGRESS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_egress_reads_no_packet_that_is_cut_or_of_others),
        EGRESS_TEST(test_egress_connects_to_what_listens_outside),
        EGRESS_TEST(test_egress_refuses_as_the_outside_does),
        EGRESS_TEST(test_egress_does_not_lead_to_loopback_or_the_cluster),
        EGRESS_TEST(test_egress_passes_datagrams_and_their_answers),
        EGRESS_TEST(test_egress_gives_one_pod_only_so_much),
        EGRESS_TEST(test_egress_has_only_so_many_attempts_of_a_pod),
    };
    return cmocka_run_group_tests(tests, enter_outside, NULL);
}
