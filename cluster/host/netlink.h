/* cluster. Links, addresses and routes by rtnetlink, in the network namespace in which the socket
 * was opened. Each call waits for the kernel's answer; false: it failed, errno says why. Only for
 * the netns helper of pod_network.h: it may block. */
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

/* A routing table: RT_TABLE_LOCAL, which the kernel looks at first, or one that rules lead to. */
struct netlink_table {
    int netlink;
    unsigned loopback;
    uint8_t number;
};

/* All addresses of the range are this namespace's own. */
ML_NODISCARD bool netlink_add_own_range(const struct netlink_table *table, struct in_addr range,
                                        unsigned prefix);
/* Addresses of this range are refused at once: there is no way to them. */
ML_NODISCARD bool netlink_add_unreachable(const struct netlink_table *table, struct in_addr range,
                                          unsigned prefix);
/* For addresses of this range the table says nothing. */
ML_NODISCARD bool netlink_add_exception(const struct netlink_table *table, struct in_addr range,
                                        unsigned prefix);
/* Packets that come in at the interface `name`, or, if that is NULL, those that have the mark, are
 * looked up in the table. */
ML_NODISCARD bool netlink_add_rule(const struct netlink_table *table, const char *name,
                                   uint32_t mark);
