/* cluster. The two parts of egress: connections (egress.c) and datagrams
 * (egress_datagrams.c). */
#pragma once

#include "cluster/egress.h"
#include "cluster/egress_packet.h"

#define EGRESS_READ_AT_ONCE 64 /* packets before others have their turn */

struct egress_datagrams;

/* `icmp` is a raw socket, borrowed. */
ML_NODISCARD int egress_datagrams_new(struct ml_loop *loop, struct ml_pod_network *network,
                                      int icmp, struct egress_datagrams **out, struct ml_err *err);
void egress_datagrams_free(struct egress_datagrams *datagrams); /* NULL is fine */

/* A raw socket in the pods' network that gets what pods send outside: with TCP, what begins a
 * connection. The caller closes it. */
ML_NODISCARD int egress_open(struct ml_pod_network *network, int protocol, int *out_fd,
                             struct ml_err *err);
/* How ICMP says what errno says of a place; -1: not at all. */
int egress_code_of(int problem);
