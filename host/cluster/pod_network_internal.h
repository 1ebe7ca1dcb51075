/* cluster. The protocol between the host (pod_network.c) and the process that lives in the pods'
 * network (pod_network_node.c): a request, then an answer, with a descriptor if it succeeded. The
 * first answer comes without a request, and has none: whether there is a network. */
#pragma once

#include "cluster/pod_network.h"

#define NODE_SAYS_MAX 128

struct node_request {
    enum { NODE_ADD_POD, NODE_OPEN_SOCKET } what;
    struct in_addr address; /* of the pod */
    struct ml_pod_socket socket;
};

struct node_answer {
    bool done;
    char problem[NODE_SAYS_MAX]; /* if not */
};

/* Never returns. `socket` is the host's other end. */
ML_NORETURN void pod_network_node(int socket);
