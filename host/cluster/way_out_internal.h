/* cluster. The two parts of the way out: connections (way_out.c) and datagrams
 * (way_out_datagrams.c). */
#pragma once

#include "cluster/way_out.h"
#include "cluster/way_out_packet.h"

#define WAY_OUT_READ_AT_ONCE 64 /* packets before others have their turn */

struct way_out_datagrams;

/* `icmp` is a raw socket, borrowed. */
ML_NODISCARD int way_out_datagrams_new(struct ml_loop *loop, struct ml_pod_network *network,
                                       int icmp, struct way_out_datagrams **out,
                                       struct ml_err *err);
void way_out_datagrams_free(struct way_out_datagrams *datagrams); /* NULL is fine */

/* A raw socket in the pods' network that gets what pods send outside: with TCP, what begins a
 * connection. The caller closes it. */
ML_NODISCARD int way_out_open(struct ml_pod_network *network, int protocol, int *out_fd,
                              struct ml_err *err);
/* How ICMP says what errno says of a place; -1: not at all. */
int way_out_code_of(int problem);
