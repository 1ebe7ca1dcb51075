/* The node of pod_network.h: makes a user namespace and a network namespace with a bridge, and then
 * what the host asks for. It ends when the host's end of its socket is closed. */
#include "cluster/pod_network_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/netlink.h"
#include "cluster/process_child.h"
#include "net/address.h"

#define BRIDGE        "pods"
#define BACKLOG       512
#define OUTSIDE_TABLE 77

struct node {
    int socket;
    int network; /* its own namespace */
    int netlink; /* in there */
    unsigned bridge;
    unsigned pair_count; /* for their names */
};

ML_PRINTF(2, 3)
static bool node_fails(struct node_answer *answer, const char *format, ...)
{
    int problem = errno;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(answer->problem, sizeof answer->problem, format, args);
    va_end(args);
    char *why = answer->problem + ML_MIN((size_t)len, sizeof answer->problem - 1);
    snprintf(why, (size_t)(answer->problem + sizeof answer->problem - why), ": %s",
             strerror(problem));
    return false;
}

static struct in_addr address_of(uint32_t number)
{
    return (struct in_addr){htonl(number)};
}

static bool write_file(const char *path, const char *text)
{
    ML_AUTO(ml_close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* ---- the node's own namespaces ---- */

/* The host's user is root in there, and nobody else is anybody. */
static bool become_root(uid_t user, gid_t group)
{
    char users[32], groups[32];
    snprintf(users, sizeof users, "0 %u 1", user);
    snprintf(groups, sizeof groups, "0 %u 1", group);
    return write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", groups) &&
           write_file("/proc/self/uid_map", users);
}

/* Of the network namespace in which the caller is. May fail where /proc/sys is read-only: then
 * ports below 1024 are not for pods, nor are pings. */
static void set_pod_rules(void)
{
    (void)write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    (void)write_file("/proc/sys/net/ipv4/ping_group_range", "0 0");
}

static bool set_loopback_up(int netlink, unsigned *out)
{
    *out = if_nametoindex("lo");
    return *out && netlink_set_up(netlink, *out);
}

static bool own_services(int netlink, unsigned loopback)
{
    const struct netlink_table local = {netlink, loopback, RT_TABLE_LOCAL};
    return netlink_add_own_range(&local, address_of(ML_POD_NETWORK_SERVICES),
                                 ML_POD_NETWORK_PREFIX);
}

/* What pods send to addresses outside is for the node, and so is what the host sends there in their
 * name. The table is not the local one, so for the kernel itself the node has no such addresses: it
 * answers nothing there but what a socket has asked for that may be at any address. */
static bool own_outside(int netlink, unsigned loopback)
{
    const struct netlink_table outside = {netlink, loopback, OUTSIDE_TABLE};
    return netlink_add_exception(&outside, address_of(ML_POD_NETWORK_PODS),
                                 ML_POD_NETWORK_PREFIX) &&
           netlink_add_own_range(&outside, address_of(0), 0) &&
           netlink_add_rule(&outside, BRIDGE, 0) &&
           netlink_add_rule(&outside, NULL, ML_POD_NETWORK_MARK);
}

static bool node_begin(struct node *node, struct node_answer *answer)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    const uint8_t hardware[] = {0x02, 0x00, 0x0a, 0xf4, 0x00, 0x01}; /* no maker's */
    unsigned loopback;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return node_fails(answer, "make namespaces");
    if (!become_root(user, group))
        return node_fails(answer, "map the user");
    node->network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    node->netlink = netlink_open();
    if (node->network < 0 || node->netlink < 0)
        return node_fails(answer, "open the network");
    if (!set_loopback_up(node->netlink, &loopback) || !own_services(node->netlink, loopback))
        return node_fails(answer, "set up the addresses of services");
    if (!netlink_add_bridge(node->netlink, BRIDGE, hardware))
        return node_fails(answer, "make a bridge");
    node->bridge = if_nametoindex(BRIDGE);
    if (!netlink_add_address(node->netlink, node->bridge, address_of(ML_POD_NETWORK_NODE),
                             ML_POD_NETWORK_PREFIX))
        return node_fails(answer, "give the bridge an address");
    if (!own_outside(node->netlink, loopback))
        return node_fails(answer, "set up the way out");
    set_pod_rules(); /* the host listens here below 1024, too */
    return true;
}

/* ---- pods ---- */

/* A pod is told at once that it cannot connect to a metadata service of the machine's cloud. */
static bool close_metadata(const struct netlink_table *table)
{
    for (size_t i = 0; i < ML_COUNT(ml_address_metadata); i++)
        if (!netlink_add_unreachable(table, address_of(ml_address_metadata[i].address),
                                     ml_address_metadata[i].bits))
            return false;
    return true;
}

/* In the pod's namespace, when its interface is there. */
static bool set_up_pod(int netlink, struct in_addr address, struct node_answer *answer)
{
    const struct netlink_table main = {.netlink = netlink, .number = RT_TABLE_MAIN};
    unsigned loopback, link = if_nametoindex("eth0");
    if (!set_loopback_up(netlink, &loopback) ||
        !netlink_add_address(netlink, link, address, ML_POD_NETWORK_PREFIX) ||
        !netlink_set_up(netlink, link) || !close_metadata(&main) ||
        !netlink_add_route(netlink, address_of(0), 0, address_of(ML_POD_NETWORK_NODE)))
        return node_fails(answer, "set up the pod's interface");
    set_pod_rules();
    return true;
}

/* Leaves the node in the new namespace. @return that namespace, or -1 */
static int make_pod(struct node *node, struct in_addr address, struct node_answer *answer)
{
    char name[IFNAMSIZ];
    snprintf(name, sizeof name, "pod%u", node->pair_count++);
    ML_AUTO(ml_close_fd)
    int pod = unshare(CLONE_NEWNET) < 0 ? -1 : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    ML_AUTO(ml_close_fd) int netlink = pod < 0 ? -1 : netlink_open();
    if (netlink < 0)
        node_fails(answer, "make a network namespace");
    else if (!netlink_add_pair(node->netlink, name, node->bridge, "eth0", pod))
        node_fails(answer, "make the pod's interface");
    else if (set_up_pod(netlink, address, answer)) {
        int made = pod;
        pod = -1;
        return made;
    }
    return -1;
}

static int node_add_pod(struct node *node, struct in_addr address, struct node_answer *answer)
{
    int pod = make_pod(node, address, answer);
    if (setns(node->network, CLONE_NEWNET) < 0)
        _exit(1); /* else all that follows would be made in the pod */
    return pod;
}

/* ---- sockets ---- */

/* Of a socket that is, or speaks, in the place of addresses outside. */
static bool may_be_anybody(int fd)
{
    const int on = 1;
    return setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on) == 0;
}

static bool set_up_socket(int fd, const struct ml_pod_socket *wanted)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(wanted->port), .sin_addr = wanted->address};
    const int on = 1, mark = ML_POD_NETWORK_MARK;
    bool is_stream = wanted->type == SOCK_STREAM;
    if (wanted->type == SOCK_RAW)
        return may_be_anybody(fd) && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0;
    if (wanted->port == 0)
        return true;
    if (is_stream)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return (!wanted->is_outside || may_be_anybody(fd)) &&
           bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
           (!is_stream || listen(fd, BACKLOG) == 0);
}

static int node_open_socket(const struct ml_pod_socket *wanted, struct node_answer *answer)
{
    int fd = socket(AF_INET, wanted->type | SOCK_NONBLOCK | SOCK_CLOEXEC, wanted->protocol);
    if (fd >= 0 && set_up_socket(fd, wanted))
        return fd;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &wanted->address, text, sizeof text);
    node_fails(answer, "listen on %s:%u", text, wanted->port);
    ml_close_fd(&fd);
    return -1;
}

static int node_open_socket_in(struct node *node, int pod, struct node_answer *answer)
{
    int fd = -1;
    if (setns(pod, CLONE_NEWNET) < 0) {
        node_fails(answer, "enter the pod's network");
        return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        node_fails(answer, "make a socket");
    if (setns(node->network, CLONE_NEWNET) < 0)
        _exit(1); /* else all that follows would be made in the pod */
    return fd;
}

/* ---- requests ---- */

/* With the descriptor, unless it is -1, and closes it. */
static void send_answer(int socket, const struct node_answer *answer, int fd)
{
    if (!pod_network_send(socket, answer, sizeof *answer, fd))
        _exit(0);
    ml_close_fd(&fd);
}

static int do_request(struct node *node, const struct node_request *request, int pod,
                      struct node_answer *answer)
{
    switch (request->what) {
    case NODE_ADD_POD:
        return node_add_pod(node, request->address, answer);
    case NODE_OPEN_SOCKET:
        return node_open_socket(&request->socket, answer);
    case NODE_OPEN_SOCKET_IN:
        return node_open_socket_in(node, pod, answer);
    }
    return -1;
}

static void serve_request(struct node *node, const struct node_request *request, int pod)
{
    struct node_answer answer = {0};
    int fd = do_request(node, request, pod, &answer);
    answer.done = fd >= 0;
    send_answer(node->socket, &answer, fd);
}

void pod_network_node(int socket)
{
    struct node node = {.socket = socket, .network = -1, .netlink = -1};
    struct node_answer answer = {0};
    struct node_request request;
    process_child_begin(socket, "moonloop-node");
    answer.done = node_begin(&node, &answer);
    send_answer(socket, &answer, -1);
    while (answer.done) {
        ML_AUTO(ml_close_fd) int pod = -1;
        if (pod_network_receive(socket, &request, sizeof request, &pod) != sizeof request)
            break;
        serve_request(&node, &request, pod);
    }
    _exit(0);
}
