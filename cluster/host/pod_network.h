/* cluster. A network of their own for pods, in network namespaces that are separate from the
 * machine's own network (docs/decisions/0013): a bridge in the namespace of the node, and for each
 * pod a namespace with an interface at that bridge. No rights are needed: all of them belong to a
 * user namespace of their own.
 *
 * A process, the netns helper, is forked once and lives in there. It makes what it is asked for and
 * hands over the descriptors, so that the host can listen and connect in a network that is not its
 * own. Each call waits for the helper's answer: some 50 us for a socket, some milliseconds for a
 * pod. */
#pragma once

#include <netinet/in.h>

#include "base/err.h"

#define ML_POD_NETWORK_NODE     0x0af40001 /* 10.244.0.1, where pods reach the node */
#define ML_POD_NETWORK_PODS     0x0af40000 /* 10.244.0.0/16 */
#define ML_POD_NETWORK_SERVICES 0x0a000000 /* 10.0.0.0/16: in there, all are the node's own */
#define ML_POD_NETWORK_PREFIX   16
#define ML_POD_NETWORK_MARK     1 /* of packets that the host itself sends there */

struct ml_pod_network;

/* Forks the helper; start it early, as it keeps a copy of the host's memory of that moment. ML_EIO.
 */
ML_NODISCARD int ml_pod_network_new(struct ml_pod_network **out, struct ml_err *err);
/* Waits until the network is there; once, before all other calls. ML_EIO: the machine does not
 * allow it, with the reason. */
ML_NODISCARD int ml_pod_network_wait(struct ml_pod_network *network, struct ml_err *err);
/* Pods and sockets that are left stay. NULL is fine. */
void ml_pod_network_free(struct ml_pod_network *network);

/* Pods reach the address by egress.h: it is neither of the cluster nor of a loopback, nor
 * link-local or of a metadata service, nor for many (net/address.h). */
bool ml_pod_network_is_outside(struct in_addr address);
/* The address is a pod's, or the node's. Addresses of services do not count: machines at
 * home often have addresses of that range. */
bool ml_pod_network_has(struct in_addr address);

#define ML_POD_NETWORK_SYSCTLS_MAX 2048

/* A pod with this address. `sysctls` has lines "net/ipv4/NAME=VALUE", all in all less than
 * ML_POD_NETWORK_SYSCTLS_MAX bytes, which its network gets; "": none. `out_fd` stands for its
 * network namespace, which lives as long as the descriptor, or a process in it; the caller closes
 * it. ML_EIO. */
ML_NODISCARD int ml_pod_network_add(struct ml_pod_network *network, struct in_addr address,
                                    const char *sysctls, int *out_fd, struct ml_err *err);

struct ml_pod_socket {
    int type;               /* SOCK_STREAM, SOCK_DGRAM, or SOCK_RAW: below */
    int protocol;           /* of SOCK_RAW: IPPROTO_TCP, _UDP or _ICMP */
    struct in_addr address; /* of the node or of a service, or any that is outside */
    uint16_t port;          /* 0: it is not bound */
    bool is_outside;        /* SOCK_STREAM at an address outside, in its place: egress.h */
};

/* A non-blocking socket in the node's network; it listens if it is bound and of type SOCK_STREAM.
 * All packets from a pod to an address outside come to the node: a raw socket gets a copy, and may
 * send in the name of any address. Its packets have ML_POD_NETWORK_MARK; one for an address outside
 * comes to the node, too. The caller closes it. ML_EIO: with the reason, such as a port that is
 * taken. */
ML_NODISCARD int ml_pod_network_socket(struct ml_pod_network *network,
                                       const struct ml_pod_socket *spec, int *out_fd,
                                       struct ml_err *err);

/* An unbound non-blocking TCP socket in the network of the pod whose namespace `pod` stands for: it
 * reaches what listens on the pod's loopback, too. The caller closes it. ML_EIO. */
ML_NODISCARD int ml_pod_network_socket_in(struct ml_pod_network *network, int pod, int *out_fd,
                                          struct ml_err *err);
