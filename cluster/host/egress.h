/* cluster. Egress of the pods' network (docs/decisions/0015): packets of pods to addresses outside
 * of the cluster go on from the machine, by its own sockets, as if a process of the machine's user
 * had sent them. TCP, and UDP with answers; IPv4.
 *
 * A connection is only accepted in the pods' network once the machine has one to where it goes:
 * a pod sees ECONNREFUSED, "no route to host" and the like as the machine does. Blocks only while
 * it waits for the netns helper (pod_network.h). Pods send all that comes here; each limit is named
 * below. */
#pragma once

#include "cluster/host/pod_network.h"
#include "cluster/host/relay.h"
#include "net/loop.h"

/* Connections under way to an answer; of one more the pod's kernel asks again after a second.
 * Connected ones count for the relay. */
#define ML_EGRESS_ATTEMPTS_MAX     512
#define ML_EGRESS_POD_ATTEMPTS_MAX 128 /* of one pod */
/* Pairs of a pod's port and a place outside that datagrams go between; one more takes the place of
 * the one that was quiet for longest. */
#define ML_EGRESS_FLOWS_MAX     256
#define ML_EGRESS_POD_FLOWS_MAX 128                /* of one pod: it then loses its own */
#define ML_EGRESS_QUIET_NS      (60 * ML_NS_PER_S) /* then a flow ends */

struct ml_egress;

/* All three are borrowed. ML_EIO. */
ML_NODISCARD int ml_egress_new(struct ml_loop *loop, struct ml_pod_network *network,
                               struct ml_relay *relay, struct ml_egress **out, struct ml_err *err);
/* Connections of the relay go on. NULL is fine. */
void ml_egress_free(struct ml_egress *egress);

/* ---- packets of IPv4, for tests: what a raw socket got from pods, which may be anything ---- */

/* The head of an IPv4 packet without options, and as much of what follows as ICMP says of it. */
#define EGRESS_EXCERPT_LEN 28
#define EGRESS_SYN_MAX     60 /* bytes of a TCP header */

/* Addresses and ports are in network order. */
struct egress_flow {
    struct in_addr pod, outside;
    in_port_t pod_port, outside_port;
};

struct egress_packet {
    struct egress_flow flow;
    const uint8_t *segment; /* of TCP or UDP: header, and what follows it */
    size_t len;
    uint8_t excerpt[EGRESS_EXCERPT_LEN];
};

bool egress_flow_equal(const struct egress_flow *a, const struct egress_flow *b);

/* A packet of UDP, or the TCP header of a SYN. False: it is none, or damaged, or neither from a pod
 * nor to the outside. */
bool egress_read_datagram(const uint8_t *bytes, size_t len, struct egress_packet *out);
bool egress_read_syn(const uint8_t *bytes, size_t len, struct egress_packet *out);
