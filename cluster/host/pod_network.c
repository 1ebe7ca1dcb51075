/* The pods' network: the netns helper, a process that lives in its namespaces and makes there what
 * it is asked for, and the host's side, which asks it and waits for each answer. */
#include "cluster/host/pod_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/host/netlink.h"
#include "cluster/host/process_child.h"
#include "net/address.h"

#define PROBLEM_MAX 128

/* The protocol: a request, then an answer, with a descriptor if it succeeded. The first answer
 * comes without a request, and has none: it says whether there is a network. */
struct request {
    enum { ADD_POD, OPEN_SOCKET, OPEN_SOCKET_IN } what;
    struct in_addr address; /* of the pod that is added */
    char sysctls[ML_POD_NETWORK_SYSCTLS_MAX];
    struct ml_pod_socket socket;
    /* OPEN_SOCKET_IN comes with the descriptor of a pod's network namespace. */
};

struct answer {
    bool succeeded;
    char problem[PROBLEM_MAX]; /* if not */
};

/* Sends `len` bytes, with a descriptor unless that is -1; false: the other side has gone. */
static bool send_with_fd(int socket, const void *bytes, size_t len, int fd)
{
    return process_child_send(socket, bytes, len, &fd, fd >= 0 ? 1 : 0);
}

/* Receives up to `len` bytes, and the descriptor that came with them, or -1. Returns as recv. */
static ssize_t receive_with_fd(int socket, void *bytes, size_t len, int *out_fd)
{
    int fds[PROCESS_CHILD_FDS_MAX];
    size_t count;
    ssize_t received = process_child_receive(socket, bytes, len, fds, &count, 0);
    *out_fd = count > 0 ? fds[0] : -1;
    for (size_t i = 1; i < count; i++)
        close(fds[i]);
    return received;
}

/* ---- the netns helper ---- */

#define BRIDGE        "pods"
#define BACKLOG       512
#define OUTSIDE_TABLE 77

struct netns_helper {
    int socket;
    int network; /* its own namespace */
    int netlink; /* in there */
    unsigned bridge;
    unsigned pair_count; /* for their names */
};

ML_PRINTF(2, 3)
static bool fails(struct answer *answer, const char *format, ...)
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

/* ---- the helper's own namespaces ---- */

/* Sets rules of the caller's network namespace. May fail where /proc/sys is read-only: then pods
 * have no ports below 1024 and no pings. */
static void set_pod_rules(void)
{
    (void)process_child_write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    (void)process_child_write("/proc/sys/net/ipv4/ping_group_range", "0 0");
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

/* Packets of pods to addresses outside are for this namespace, and so are the host's own that it
 * sends there in their name. The table is not the local one, so for the kernel itself the namespace
 * has no such addresses: it answers there only for sockets that may be at any address. */
static bool own_outside(int netlink, unsigned loopback)
{
    const struct netlink_table outside = {netlink, loopback, OUTSIDE_TABLE};
    return netlink_add_exception(&outside, address_of(ML_POD_NETWORK_PODS),
                                 ML_POD_NETWORK_PREFIX) &&
           netlink_add_own_range(&outside, address_of(0), 0) &&
           netlink_add_rule(&outside, BRIDGE, 0) &&
           netlink_add_rule(&outside, NULL, ML_POD_NETWORK_MARK);
}

static bool make_network(struct netns_helper *helper, struct answer *answer)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    const uint8_t hardware[] = {0x02, 0x00, 0x0a, 0xf4, 0x00, 0x01}; /* no maker's */
    unsigned loopback;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return fails(answer, "make namespaces");
    /* The host's user is root in there, and nobody else is anybody. */
    if (!process_child_map_ids(0, 0, user, group))
        return fails(answer, "map the user");
    helper->network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    helper->netlink = netlink_open();
    if (helper->network < 0 || helper->netlink < 0)
        return fails(answer, "open the network");
    if (!set_loopback_up(helper->netlink, &loopback) || !own_services(helper->netlink, loopback))
        return fails(answer, "set up the addresses of services");
    if (!netlink_add_bridge(helper->netlink, BRIDGE, hardware))
        return fails(answer, "make a bridge");
    helper->bridge = if_nametoindex(BRIDGE);
    if (!netlink_add_address(helper->netlink, helper->bridge, address_of(ML_POD_NETWORK_NODE),
                             ML_POD_NETWORK_PREFIX))
        return fails(answer, "give the bridge an address");
    if (!own_outside(helper->netlink, loopback))
        return fails(answer, "set up the way out");
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

/* Lines "net/ipv4/NAME=VALUE". */
static bool set_sysctls(const char *lines, struct answer *answer)
{
    struct ml_str rest = ml_str_of(lines);
    while (rest.len > 0) {
        struct ml_str value = ml_str_cut(&rest, '\n'), name = ml_str_cut(&value, '=');
        ML_AUTO_FREE char *path = ml_asprintf("/proc/sys/" ML_STR_FMT, ML_STR_ARG(name));
        ML_AUTO_FREE char *text = ml_str_dup(value);
        if (!process_child_write(path, text))
            return fails(answer, "set the sysctl " ML_STR_FMT, ML_STR_ARG(name));
    }
    return true;
}

/* In the pod's namespace, when its interface is there. */
static bool set_up_pod(int netlink, const struct request *request, struct answer *answer)
{
    struct in_addr address = request->address;
    const struct netlink_table main = {.netlink = netlink, .number = RT_TABLE_MAIN};
    unsigned loopback, link = if_nametoindex("eth0");
    if (!set_loopback_up(netlink, &loopback) ||
        !netlink_add_address(netlink, link, address, ML_POD_NETWORK_PREFIX) ||
        !netlink_set_up(netlink, link) || !close_metadata(&main) ||
        !netlink_add_route(netlink, address_of(0), 0, address_of(ML_POD_NETWORK_NODE)))
        return fails(answer, "set up the pod's interface");
    set_pod_rules();
    return set_sysctls(request->sysctls, answer);
}

/* Leaves the helper in the new namespace. @return that namespace, or -1 */
static int make_pod(struct netns_helper *helper, const struct request *request,
                    struct answer *answer)
{
    char name[IFNAMSIZ];
    snprintf(name, sizeof name, "pod%u", helper->pair_count++);
    ML_AUTO(ml_close_fd)
    int pod = unshare(CLONE_NEWNET) < 0 ? -1 : open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    ML_AUTO(ml_close_fd) int netlink = pod < 0 ? -1 : netlink_open();
    if (netlink < 0)
        fails(answer, "make a network namespace");
    else if (!netlink_add_pair(helper->netlink, name, helper->bridge, "eth0", pod))
        fails(answer, "make the pod's interface");
    else if (set_up_pod(netlink, request, answer)) {
        int made = pod;
        pod = -1;
        return made;
    }
    return -1;
}

static int add_pod(struct netns_helper *helper, const struct request *request,
                   struct answer *answer)
{
    int pod = make_pod(helper, request, answer);
    if (setns(helper->network, CLONE_NEWNET) < 0)
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

static bool set_up_socket(int fd, const struct ml_pod_socket *spec)
{
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(spec->port), .sin_addr = spec->address};
    const int on = 1, mark = ML_POD_NETWORK_MARK;
    bool is_stream = spec->type == SOCK_STREAM;
    if (spec->type == SOCK_RAW)
        return may_be_anybody(fd) && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0;
    if (spec->port == 0)
        return true;
    if (is_stream)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return (!spec->is_outside || may_be_anybody(fd)) &&
           bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
           (!is_stream || listen(fd, BACKLOG) == 0);
}

static int open_socket(const struct ml_pod_socket *spec, struct answer *answer)
{
    int fd = socket(AF_INET, spec->type | SOCK_NONBLOCK | SOCK_CLOEXEC, spec->protocol);
    if (fd >= 0 && set_up_socket(fd, spec))
        return fd;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &spec->address, text, sizeof text);
    fails(answer, "listen on %s:%u", text, spec->port);
    ml_close_fd(&fd);
    return -1;
}

static int open_socket_in(struct netns_helper *helper, int pod, struct answer *answer)
{
    int fd = -1;
    if (setns(pod, CLONE_NEWNET) < 0) {
        fails(answer, "enter the pod's network");
        return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fails(answer, "make a socket");
    if (setns(helper->network, CLONE_NEWNET) < 0)
        _exit(1); /* else all that follows would be made in the pod */
    return fd;
}

/* ---- requests ---- */

/* With the descriptor, unless it is -1, and closes it. */
static void send_answer(int socket, const struct answer *answer, int fd)
{
    if (!send_with_fd(socket, answer, sizeof *answer, fd))
        _exit(0);
    ml_close_fd(&fd);
}

static int do_request(struct netns_helper *helper, const struct request *request, int pod,
                      struct answer *answer)
{
    switch (request->what) {
    case ADD_POD:
        return add_pod(helper, request, answer);
    case OPEN_SOCKET:
        return open_socket(&request->socket, answer);
    case OPEN_SOCKET_IN:
        return open_socket_in(helper, pod, answer);
    }
    return -1;
}

static void serve_request(struct netns_helper *helper, const struct request *request, int pod)
{
    struct answer answer = {0};
    int fd = do_request(helper, request, pod, &answer);
    answer.succeeded = fd >= 0;
    send_answer(helper->socket, &answer, fd);
}

/* Ends when the host's end of `socket` is closed. */
ML_NORETURN static void run_netns_helper(int socket)
{
    struct netns_helper helper = {.socket = socket, .network = -1, .netlink = -1};
    struct answer answer = {0};
    struct request request = {0};
    process_child_begin(socket, "moonloop-netns");
    answer.succeeded = make_network(&helper, &answer);
    send_answer(socket, &answer, -1);
    while (answer.succeeded) {
        ML_AUTO(ml_close_fd) int pod = -1;
        if (receive_with_fd(socket, &request, sizeof request, &pod) != sizeof request)
            break;
        serve_request(&helper, &request, pod);
    }
    _exit(0);
}

/* ---- the host ---- */

#define ANSWER_WITHIN_S 5 /* the helper only talks to the kernel; then it is given up */

struct ml_pod_network {
    int socket; /* -1: given up */
    pid_t helper;
};

/* The helper's next answer; a descriptor that comes with it is for `out_fd`. */
static int receive_answer(struct ml_pod_network *network, int *out_fd, struct ml_err *err)
{
    struct answer answer = {0};
    ML_AUTO(ml_close_fd) int fd = -1;
    if (receive_with_fd(network->socket, &answer, sizeof answer, &fd) != sizeof answer) {
        ml_close_fd(&network->socket); /* a late answer must not be taken for another one */
        return ml_err_set(err, ML_EIO, "the process in the pods' network does not answer");
    }
    answer.problem[sizeof answer.problem - 1] = '\0';
    if (!answer.succeeded)
        return ml_err_set(err, ML_EIO, "%s", answer.problem);
    if (out_fd && fd < 0) /* the kernel had none for us */
        return ml_err_set(err, ML_EIO, "no descriptor is left");
    if (out_fd) {
        *out_fd = fd;
        fd = -1;
    }
    return 0;
}

/* `pod` goes along with the request, unless it is -1. */
static int ask_helper(struct ml_pod_network *network, const struct request *request, int pod,
                      int *out_fd, struct ml_err *err)
{
    if (network->socket < 0 || !send_with_fd(network->socket, request, sizeof *request, pod))
        return ml_err_set(err, ML_EIO, "the process in the pods' network has gone");
    return receive_answer(network, out_fd, err);
}

int ml_pod_network_new(struct ml_pod_network **out, struct ml_err *err)
{
    const struct timeval patience = {.tv_sec = ANSWER_WITHIN_S};
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        return ml_err_set(err, ML_EIO, "socketpair: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(sockets[0]);
        run_netns_helper(sockets[1]);
    }
    close(sockets[1]);
    struct ml_pod_network *network = ml_new(struct ml_pod_network);
    *network = (struct ml_pod_network){.socket = sockets[0], .helper = pid};
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (pid < 0) {
        int r = ml_err_set(err, ML_EIO, "fork: %s", strerror(errno));
        ml_pod_network_free(network);
        return r;
    }
    *out = network;
    return 0;
}

int ml_pod_network_wait(struct ml_pod_network *network, struct ml_err *err)
{
    return receive_answer(network, NULL, err);
}

void ml_pod_network_free(struct ml_pod_network *network)
{
    if (!network)
        return;
    ml_close_fd(&network->socket); /* upon which the helper ends */
    while (network->helper > 0 && waitpid(network->helper, NULL, 0) < 0 && errno == EINTR)
        ;
    free(network);
}

static bool is_in(struct in_addr address, uint32_t range, unsigned prefix)
{
    return (ntohl(address.s_addr) ^ range) >> (32 - prefix) == 0;
}

bool ml_pod_network_is_outside(struct in_addr address)
{
    const struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr = address};
    struct ml_err err;
    return !is_in(address, ML_POD_NETWORK_PODS, ML_POD_NETWORK_PREFIX) &&
           !is_in(address, ML_POD_NETWORK_SERVICES, ML_POD_NETWORK_PREFIX) &&
           ml_address_check((const struct sockaddr *)&place, false, &err) == 0;
}

bool ml_pod_network_has(struct in_addr address)
{
    return is_in(address, ML_POD_NETWORK_PODS, ML_POD_NETWORK_PREFIX);
}

int ml_pod_network_add(struct ml_pod_network *network, struct in_addr address, const char *sysctls,
                       int *out_fd, struct ml_err *err)
{
    struct request request = {.what = ADD_POD, .address = address};
    if (strlen(sysctls) >= sizeof request.sysctls)
        return ml_err_set(err, ML_EIO, "the pod's sysctls have more than %zu bytes",
                          sizeof request.sysctls - 1);
    memcpy(request.sysctls, sysctls, strlen(sysctls) + 1);
    return ask_helper(network, &request, -1, out_fd, err);
}

int ml_pod_network_socket(struct ml_pod_network *network, const struct ml_pod_socket *spec,
                          int *out_fd, struct ml_err *err)
{
    const struct request request = {.what = OPEN_SOCKET, .socket = *spec};
    return ask_helper(network, &request, -1, out_fd, err);
}

int ml_pod_network_socket_in(struct ml_pod_network *network, int pod, int *out_fd,
                             struct ml_err *err)
{
    const struct request request = {.what = OPEN_SOCKET_IN};
    return ask_helper(network, &request, pod, out_fd, err);
}
