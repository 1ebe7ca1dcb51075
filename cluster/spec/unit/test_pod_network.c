/* The network of pods' own, on the kernel's; skipped where the machine does not let its user have
 * one. */
#include "unit.h"

#include "cluster/host/pod_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct in_addr address_of(const char *text)
{
    struct in_addr address;
    assert_int_equal(inet_pton(AF_INET, text, &address), 1);
    return address;
}

static int setup(void **state)
{
    struct ml_pod_network *network = NULL;
    struct ml_err err = ML_ERR_INIT;
    assert_int_equal(ml_pod_network_new(&network, &err), 0);
    if (ml_pod_network_wait(network, &err) < 0) {
        print_message("no network here: %s\n", err.message);
        ml_pod_network_free(ml_take(&network));
    }
    *state = network;
    return 0;
}

static int teardown(void **state)
{
    ml_pod_network_free(*state);
    return 0;
}

static int add_pod(struct ml_pod_network *network, const char *address)
{
    struct ml_err err = ML_ERR_INIT;
    int fd = -1;
    if (ml_pod_network_add(network, address_of(address), "", &fd, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(fd >= 0);
    return fd;
}

static int open_socket(struct ml_pod_network *network, const char *address, uint16_t port)
{
    const struct ml_pod_socket wanted = {
        .type = SOCK_STREAM, .address = address_of(address), .port = port};
    struct ml_err err = ML_ERR_INIT;
    int fd = -1;
    if (ml_pod_network_socket(network, &wanted, &fd, &err) < 0)
        fail_msg("%s", err.message);
    assert_true(fd >= 0);
    return fd;
}

static void test_pod_network_sockets_in_a_pod_reach_its_loopback(void **state)
{
    struct ml_pod_network *network = *state;
    struct ml_err err = ML_ERR_INIT;
    if (!network)
        skip();
    int pod = add_pod(network, "10.244.7.7"), other = add_pod(network, "10.244.7.8");
    int in_pod = -1, in_other = -1, listener = -1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = address_of("127.0.0.1")};
    socklen_t len = sizeof at;
    assert_int_equal(ml_pod_network_socket_in(network, pod, &listener, &err), 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(ml_pod_network_socket_in(network, pod, &in_pod, &err), 0);
    assert_int_equal(ml_pod_network_socket_in(network, other, &in_other, &err), 0);
    assert_true(connect(in_pod, (struct sockaddr *)&at, sizeof at) == 0 || errno == EINPROGRESS);
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 5000), 1);
    assert_int_equal(connect(in_other, (struct sockaddr *)&at, sizeof at), -1);
    int problem = errno;
    socklen_t size = sizeof problem;
    ready = (struct pollfd){.fd = in_other, .events = POLLOUT};
    assert_int_equal(poll(&ready, 1, 5000), 1);
    if (problem == EINPROGRESS)
        getsockopt(in_other, SOL_SOCKET, SO_ERROR, &problem, &size);
    assert_int_equal(problem, ECONNREFUSED);
    int fds[] = {pod, other, in_pod, in_other, listener};
    for (size_t i = 0; i < ML_COUNT(fds); i++)
        close(fds[i]);
    /* A request with a descriptor that is no pod's is refused, and the node goes on. */
    int bad = dup(0);
    assert_int_equal(ml_pod_network_socket_in(network, bad, &in_pod, &err), ML_EIO);
    close(bad);
    close(add_pod(network, "10.244.7.9"));
}

/* The sysctl as a process in the pod's network has it. */
static void assert_sysctl(int pod, const char *name, const char *value)
{
    pid_t pid = fork();
    if (pid == 0) {
        char text[64] = "", path[128];
        snprintf(path, sizeof path, "/proc/sys/%s", name);
        int users = ioctl(pod, NS_GET_USERNS);
        if (setns(users, CLONE_NEWUSER) < 0 || setns(pod, CLONE_NEWNET) < 0)
            _exit(2);
        int fd = open(path, O_RDONLY);
        if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
            _exit(3);
        _exit(strcmp(text, value) == 0 ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void test_pod_network_gives_a_pod_its_sysctls(void **state)
{
    struct ml_pod_network *network = *state;
    struct ml_err err = ML_ERR_INIT;
    struct in_addr address = address_of("10.244.7.10");
    char many[ML_POD_NETWORK_SYSCTLS_MAX + 1] = "";
    int pod = -1, other;
    if (!network)
        skip();
    assert_int_equal(ml_pod_network_add(network, address,
                                        "net/ipv4/tcp_fin_timeout=7\n"
                                        "net/ipv4/ip_unprivileged_port_start=99\n",
                                        &pod, &err),
                     0);
    other = add_pod(network, "10.244.7.11");
    assert_sysctl(pod, "net/ipv4/tcp_fin_timeout", "7\n");
    assert_sysctl(pod, "net/ipv4/ip_unprivileged_port_start", "99\n");
    assert_sysctl(other, "net/ipv4/ip_unprivileged_port_start", "0\n");
    close(pod);
    close(other);
    assert_int_equal(
        ml_pod_network_add(network, address, "net/ipv4/tcp_fin_timeout=x\n", &pod, &err), ML_EIO);
    assert_string_equal(err.message, "set the sysctl net/ipv4/tcp_fin_timeout: Invalid argument");
    memset(many, 'x', sizeof many - 1);
    assert_int_equal(ml_pod_network_add(network, address, many, &pod, &err), ML_EIO);
    close(add_pod(network, "10.244.7.10")); /* the node goes on */
}

static void test_pod_network_sockets_are_in_there(void **state)
{
    static const uint16_t port = 443;
    struct ml_pod_network *network = *state;
    if (!network)
        skip();
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address_of("10.0.0.1")};
    int listener = open_socket(network, "10.0.0.1", port);
    int client = open_socket(network, "0.0.0.0", 0);
    assert_int_equal(connect(client, (const struct sockaddr *)&to, sizeof to), -1);
    assert_int_equal(errno, EINPROGRESS);
    struct pollfd arrived = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&arrived, 1, 5000), 1);
    /* An address without a listener refuses. */
    const struct sockaddr_in nobody = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = address_of("10.0.0.2")};
    int other = open_socket(network, "0.0.0.0", 0), problem = 0;
    socklen_t len = sizeof problem;
    connect(other, (const struct sockaddr *)&nobody, sizeof nobody);
    struct pollfd answered = {.fd = other, .events = POLLOUT};
    assert_int_equal(poll(&answered, 1, 5000), 1);
    getsockopt(other, SOL_SOCKET, SO_ERROR, &problem, &len);
    assert_int_equal(problem, ECONNREFUSED);
    ml_close_fd(&listener);
    ml_close_fd(&client);
    ml_close_fd(&other);
}

static void test_pod_network_says_why_a_port_is_not_had(void **state)
{
    struct ml_pod_network *network = *state;
    if (!network)
        skip();
    const struct ml_pod_socket again = {
        .type = SOCK_STREAM, .address = address_of("10.0.0.1"), .port = 80};
    const struct ml_pod_socket outside = {
        .type = SOCK_STREAM, .address = address_of("192.0.2.1"), .port = 80};
    struct ml_err err = ML_ERR_INIT;
    int first = open_socket(network, "10.0.0.1", 80), fd = -1;
    assert_int_equal(ml_pod_network_socket(network, &again, &fd, &err), ML_EIO);
    assert_string_equal(err.message, "listen on 10.0.0.1:80: Address already in use");
    assert_int_equal(ml_pod_network_socket(network, &outside, &fd, &err), ML_EIO);
    assert_string_equal(err.message, "listen on 192.0.2.1:80: Cannot assign requested address");
    assert_int_equal(fd, -1);
    ml_close_fd(&first);
}

static void read_hardware(int socket, struct ifreq *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->ifr_name, "pods", sizeof "pods");
    assert_int_equal(ioctl(socket, SIOCGIFHWADDR, out), 0);
}

/* Pods keep the hardware address of the node, so it stays the same when pods come and go. */
static void test_pod_network_node_keeps_its_hardware_address(void **state)
{
    struct ml_pod_network *network = *state;
    if (!network)
        skip();
    struct ifreq before, after;
    int socket = open_socket(network, "0.0.0.0", 0);
    read_hardware(socket, &before);
    for (int i = 2; i < 8; i++) {
        char text[INET_ADDRSTRLEN];
        snprintf(text, sizeof text, "10.244.0.%d", i);
        int pod = add_pod(network, text);
        read_hardware(socket, &after);
        assert_memory_equal(&before.ifr_hwaddr.sa_data, &after.ifr_hwaddr.sa_data, 6);
        ml_close_fd(&pod);
    }
    ml_close_fd(&socket);
}

static void test_pod_network_pods_have_networks_of_their_own(void **state)
{
    struct ml_pod_network *network = *state;
    if (!network)
        skip();
    struct stat own, one, two;
    int first = add_pod(network, "10.244.1.2"), second = add_pod(network, "10.244.1.3");
    assert_int_equal(stat("/proc/self/ns/net", &own), 0);
    assert_int_equal(fstat(first, &one), 0);
    assert_int_equal(fstat(second, &two), 0);
    assert_true(one.st_ino != two.st_ino && one.st_ino != own.st_ino && two.st_ino != own.st_ino);
    ml_close_fd(&first);
    ml_close_fd(&second);
}

static void test_pod_network_knows_its_addresses(void **state)
{
    (void)state;
    assert_true(ml_pod_network_has(address_of("10.244.0.1")));
    assert_true(ml_pod_network_has(address_of("10.244.255.255")));
    assert_false(ml_pod_network_has(address_of("10.245.0.0")));
    assert_false(ml_pod_network_has(address_of("10.243.255.255")));
    assert_false(ml_pod_network_has(address_of("10.0.0.1"))); /* may be one of the machine's, too */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pod_network_sockets_are_in_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod_network_sockets_in_a_pod_reach_its_loopback, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pod_network_gives_a_pod_its_sysctls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod_network_says_why_a_port_is_not_had, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pod_network_node_keeps_its_hardware_address, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_pod_network_pods_have_networks_of_their_own, setup,
                                        teardown),
        cmocka_unit_test(test_pod_network_knows_its_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
