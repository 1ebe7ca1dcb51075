/* cluster. `require "cluster.network"` for the host's own Lua: pods' network namespaces, and who
 * listens in the network of pods; see lua/cluster/meta/network.lua. */
#pragma once

#include "cluster/pod_network.h"
#include "cluster/relay.h"
#include "cluster/trusted.h"

struct lua_State;

struct ml_network_library {
    struct ml_pod_network *network;
    struct ml_relay *relay;
};

/* Both parts are borrowed until the state is freed. The state must have a loop. */
void ml_trusted_add_network(struct ml_trusted *trusted, const struct ml_network_library *library);

/* The descriptor of the pod's network namespace at `index`, or -1 when it is none, or closed. */
int network_lua_pod(struct lua_State *L, int index);
/* An unbound socket of `type` that can connect to `address`: of the pods' network, if it is one of
 * that, else of the machine's. `network` may be NULL. -1 and a reason. */
ML_NODISCARD int network_lua_socket(struct ml_pod_network *network, int type,
                                    struct in_addr address, struct ml_err *err);
