#include "cluster/pod_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/pod_network_internal.h"
#include "net/address.h"

#define ANSWER_WITHIN_S 5 /* the node only talks to the kernel; then it is given up */

struct ml_pod_network {
    int socket; /* -1: given up */
    pid_t node;
};

union descriptor {
    struct cmsghdr head; /* for its alignment */
    char space[CMSG_SPACE(sizeof(int))];
};

bool pod_network_send(int socket, const void *bytes, size_t len, int fd)
{
    union descriptor control = {.space = {0}};
    struct iovec data = {(void *)bytes, len};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.space;
        message.msg_controllen = sizeof control.space;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)len;
}

ssize_t pod_network_receive(int socket, void *bytes, size_t len, int *out_fd)
{
    union descriptor control;
    struct iovec data = {bytes, len};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t received;
    do
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    const struct cmsghdr *head = received < 0 ? NULL : CMSG_FIRSTHDR(&message);
    *out_fd = -1;
    if (head)
        memcpy(out_fd, CMSG_DATA(head), sizeof *out_fd);
    return received;
}

/* The node's next answer; a descriptor that comes with it is for `out_fd`. */
static int receive_answer(struct ml_pod_network *network, int *out_fd, struct ml_err *err)
{
    struct node_answer answer;
    ML_AUTO(ml_close_fd) int fd = -1;
    if (pod_network_receive(network->socket, &answer, sizeof answer, &fd) != sizeof answer) {
        ml_close_fd(&network->socket); /* a late answer must not be taken for another one */
        return ml_err_set(err, ML_EIO, "the process in the pods' network does not answer");
    }
    answer.problem[sizeof answer.problem - 1] = '\0';
    if (!answer.done)
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
static int ask_node(struct ml_pod_network *network, const struct node_request *request, int pod,
                    int *out_fd, struct ml_err *err)
{
    if (network->socket < 0 || !pod_network_send(network->socket, request, sizeof *request, pod))
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
        pod_network_node(sockets[1]);
    }
    close(sockets[1]);
    struct ml_pod_network *network = ml_new(struct ml_pod_network);
    *network = (struct ml_pod_network){.socket = sockets[0], .node = pid};
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
    ml_close_fd(&network->socket); /* upon which the node ends */
    while (network->node > 0 && waitpid(network->node, NULL, 0) < 0 && errno == EINTR)
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

int ml_pod_network_add(struct ml_pod_network *network, struct in_addr address, int *out_fd,
                       struct ml_err *err)
{
    const struct node_request request = {.what = NODE_ADD_POD, .address = address};
    return ask_node(network, &request, -1, out_fd, err);
}

int ml_pod_network_socket(struct ml_pod_network *network, const struct ml_pod_socket *wanted,
                          int *out_fd, struct ml_err *err)
{
    const struct node_request request = {.what = NODE_OPEN_SOCKET, .socket = *wanted};
    return ask_node(network, &request, -1, out_fd, err);
}

int ml_pod_network_socket_in(struct ml_pod_network *network, int pod, int *out_fd,
                             struct ml_err *err)
{
    const struct node_request request = {.what = NODE_OPEN_SOCKET_IN};
    return ask_node(network, &request, pod, out_fd, err);
}
