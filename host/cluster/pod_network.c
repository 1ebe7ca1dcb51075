#include "cluster/pod_network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/pod_network_internal.h"

#define ANSWER_WITHIN_S 5 /* the node only talks to the kernel; then it is given up */

struct ml_pod_network {
    int socket; /* -1: given up */
    pid_t node;
};

/* The node's next answer; a descriptor that comes with it is for `out_fd`. */
static int receive_answer(struct ml_pod_network *network, int *out_fd, struct ml_err *err)
{
    struct node_answer answer;
    union {
        struct cmsghdr head; /* for its alignment */
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {&answer, sizeof answer};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t len;
    do
        len = recvmsg(network->socket, &message, MSG_CMSG_CLOEXEC);
    while (len < 0 && errno == EINTR);
    if (len != sizeof answer) {
        ml_close_fd(&network->socket); /* a late answer must not be taken for another one */
        return ml_err_set(err, ML_EIO, "the process in the pods' network does not answer");
    }
    answer.problem[sizeof answer.problem - 1] = '\0';
    if (!answer.done)
        return ml_err_set(err, ML_EIO, "%s", answer.problem);
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (out_fd && !head) /* the kernel had none for us */
        return ml_err_set(err, ML_EIO, "no descriptor is left");
    if (out_fd)
        memcpy(out_fd, CMSG_DATA(head), sizeof *out_fd);
    return 0;
}

static int ask_node(struct ml_pod_network *network, const struct node_request *request, int *out_fd,
                    struct ml_err *err)
{
    if (network->socket < 0 ||
        send(network->socket, request, sizeof *request, MSG_NOSIGNAL) != sizeof *request)
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
    int r = pid < 0 ? ml_err_set(err, ML_EIO, "fork: %s", strerror(errno))
                    : receive_answer(network, NULL, err);
    if (r < 0) {
        ml_pod_network_free(network);
        return r;
    }
    *out = network;
    return 0;
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

bool ml_pod_network_has(struct in_addr address)
{
    return (ntohl(address.s_addr) ^ ML_POD_NETWORK_PODS) >> (32 - ML_POD_NETWORK_PREFIX) == 0;
}

int ml_pod_network_add(struct ml_pod_network *network, struct in_addr address, int *out_fd,
                       struct ml_err *err)
{
    const struct node_request request = {.what = NODE_ADD_POD, .address = address};
    return ask_node(network, &request, out_fd, err);
}

int ml_pod_network_socket(struct ml_pod_network *network, const struct ml_pod_socket *wanted,
                          int *out_fd, struct ml_err *err)
{
    const struct node_request request = {.what = NODE_OPEN_SOCKET, .socket = *wanted};
    return ask_node(network, &request, out_fd, err);
}
