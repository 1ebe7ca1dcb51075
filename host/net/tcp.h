/* L2 net. TCP sockets: listening ones, from an address as people write it, and what all have. */
#pragma once

#include "base/err.h"

/* Listens on "host:port", "[v6]:port", ":port" (all addresses, both families) or port 0 for a
 * free one. The socket is non-blocking and close-on-exec; the caller closes it. ML_EINVALID: wrong
 * form or unknown host; ML_EIO: cannot bind, with the reason. */
ML_NODISCARD int ml_tcp_listen(const char *address, int *out_fd, struct ml_err *err);

int ml_tcp_local_port(int fd); /* 0: it has none */

#define ML_TCP_DEAD_PEER_S 15

/* A connection without anything to send ends with ETIMEDOUT when its peer has been silent for so
 * long and has acknowledged no probe: the peer is gone. A peer that does not read stays. */
void ml_tcp_notice_dead_peer(int fd);
