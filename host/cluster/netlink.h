/* cluster. Links, addresses and routes by rtnetlink, in the network namespace in which the socket
 * was opened. Each call waits for the kernel's answer; false: it failed, errno says why. Only for
 * the node of pod_network.h: it may block. */
#pragma once

#include <netinet/in.h>

#include "base/base.h"

#define NETLINK_HARDWARE_LEN 6

/* A socket for the calls below, or -1. The caller closes it. */
int netlink_open(void);

/* With a hardware address of its own: else it has that of one of its ports, and when that port
 * goes, what others have learnt is wrong. */
ML_NODISCARD bool netlink_add_bridge(int netlink, const char *name,
                                     const uint8_t hardware[NETLINK_HARDWARE_LEN]);
/* A pair: `name` here, as a port of the bridge with number `bridge`, and up; `peer` in the network
 * namespace `peer_namespace`, not up. */
ML_NODISCARD bool netlink_add_pair(int netlink, const char *name, unsigned bridge, const char *peer,
                                   int peer_namespace);
ML_NODISCARD bool netlink_set_up(int netlink, unsigned link);
ML_NODISCARD bool netlink_add_address(int netlink, unsigned link, struct in_addr address,
                                      unsigned prefix);
/* The addresses of `range` are reached over `gateway`. */
ML_NODISCARD bool netlink_add_route(int netlink, struct in_addr range, unsigned prefix,
                                    struct in_addr gateway);
/* All addresses of the range are this namespace's own. */
ML_NODISCARD bool netlink_add_own_range(int netlink, unsigned loopback, struct in_addr range,
                                        unsigned prefix);
