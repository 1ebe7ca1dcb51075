/* cluster. Packets of IPv4 for egress.h: reads what a raw socket got from pods, which may be
 * anything, and writes answers in the name of addresses outside. */
#pragma once

#include <netinet/in.h>

#include "base/base.h"

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

/* Attaches a filter to a raw socket: it then gets only packets to the outside that the host itself
 * has not sent, and with `syn_only` of TCP only those that begin a connection. */
ML_NODISCARD bool egress_filter(int raw, bool syn_only);
/* A listening socket then accepts only connections whose beginning the host has sent. */
ML_NODISCARD bool egress_filter_listener(int listener);

/* These send by a raw socket of that protocol. A packet that cannot be sent is lost, as packets may
 * be. */
/* Once more what the pod has sent; now it may be accepted. */
void egress_send_syn(int tcp, const struct egress_flow *flow, const uint8_t *segment, size_t len);
void egress_refuse_syn(int tcp, const struct egress_flow *flow, const uint8_t *segment);
void egress_send_datagram(int udp, const struct egress_flow *flow, const uint8_t *bytes,
                          size_t len);
/* Destination unreachable, with a code of ICMP; `excerpt` is that of the packet that it is about.
 */
void egress_send_unreachable(int icmp, const struct egress_flow *flow,
                             const uint8_t excerpt[EGRESS_EXCERPT_LEN], uint8_t code);
