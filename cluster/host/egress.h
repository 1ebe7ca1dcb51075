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
