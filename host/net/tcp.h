/* L2 net. Listening sockets, from an address as people write it. */
#pragma once

#include "base/err.h"

/* Listens on "host:port", "[v6]:port", ":port" (all addresses, both families) or port 0 for a
 * free one. The socket is non-blocking and close-on-exec; the caller closes it. ML_EINVALID: wrong
 * form or unknown host; ML_EIO: cannot bind, with the reason. */
ML_NODISCARD int ml_tcp_listen(const char *address, int *out_fd, struct ml_err *err);

int ml_tcp_listen_port(int fd); /* the port that the socket got */
