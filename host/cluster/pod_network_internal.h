/* cluster. The protocol between the host (pod_network.c) and the process that lives in the pods'
 * network (pod_network_node.c): a request, then an answer, with a descriptor if it succeeded. The
 * first answer comes without a request, and has none: whether there is a network. */
#pragma once

#include "cluster/pod_network.h"

#define NODE_SAYS_MAX 128

struct node_request {
    enum { NODE_ADD_POD, NODE_OPEN_SOCKET, NODE_OPEN_SOCKET_IN } what;
    struct in_addr address; /* of the pod that is added */
    struct ml_pod_socket socket;
    /* NODE_OPEN_SOCKET_IN comes with the descriptor of a pod's network namespace. */
};

struct node_answer {
    bool done;
    char problem[NODE_SAYS_MAX]; /* if not */
};

/* Sends `len` bytes, with a descriptor unless that is -1; false: the other side has gone. */
bool pod_network_send(int socket, const void *bytes, size_t len, int fd);
/* Receives up to `len` bytes, and the descriptor that came with them, or -1. Returns as recv. */
ssize_t pod_network_receive(int socket, void *bytes, size_t len, int *out_fd);

/* Never returns. `socket` is the host's other end. */
ML_NORETURN void pod_network_node(int socket);
