/* cluster. `require "cluster.tcp"` for the host's own Lua: TCP connections to what listens in a
 * pod; see lua/cluster/meta/tcp.lua. */
#pragma once

#include "cluster/pod_network.h"
#include "cluster/trusted.h"

struct ml_tcp_library {
    struct ml_pod_network *network; /* borrowed until the state is freed; NULL: pods are in the
                                       machine's */
};

/* The state must have a loop. */
void ml_trusted_add_tcp(struct ml_trusted *trusted, const struct ml_tcp_library *library);
