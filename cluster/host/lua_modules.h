/* cluster. The modules that `moonloop dev` adds to the server's Lua. Each is made of parts that are
 * borrowed until the state is freed; the state must have a loop. */
#pragma once

#include "cluster/host/pod_network.h"
#include "cluster/host/process.h"
#include "cluster/host/relay.h"
#include "cluster/host/server_lua.h"
#include "net/http_client.h"

struct lua_State;

/* `require "cluster.http"`: requests to webhooks, whose answers the caller waits for while the loop
 * goes on, and to pods, whose answers come piece by piece; see cluster/meta/http.lua. */
struct ml_http_library {
    struct ml_http_client *http;
    struct ml_pod_network *network; /* NULL: pods are in the machine's */
};
void ml_server_lua_add_http(struct ml_server_lua *lua, const struct ml_http_library *library);

/* `require "cluster.network"`: pods' network namespaces, and who listens in the network of pods;
 * see cluster/meta/network.lua. */
struct ml_network_library {
    struct ml_pod_network *network;
    struct ml_relay *relay;
};
void ml_server_lua_add_network(struct ml_server_lua *lua, const struct ml_network_library *library);

/* `require "cluster.process"`: local processes, their folders, and checks whether they answer; see
 * cluster/meta/process.lua. Freeing the state kills processes that still run. */
struct ml_process_library {
    struct ml_processes *processes;
    struct ml_http_client *http;    /* for process.get */
    struct ml_pod_network *network; /* in which some of them are; NULL: there is none */
};
void ml_server_lua_add_processes(struct ml_server_lua *lua,
                                 const struct ml_process_library *library);

/* `require "cluster.tcp"`: TCP connections to what listens in a pod; see cluster/meta/tcp.lua.
 */
struct ml_tcp_library {
    struct ml_pod_network *network; /* NULL: pods are in the machine's */
};
void ml_server_lua_add_tcp(struct ml_server_lua *lua, const struct ml_tcp_library *library);

/* ---- lua_network.c, for the other modules ---- */

/* The descriptor of the pod's network namespace at `index`, or -1 when it is none, or closed. */
int lua_network_pod(struct lua_State *L, int index);
/* An unbound socket of `type` that can connect to `address`: of the pods' network, if it is one of
 * that, else of the machine's. `network` may be NULL. -1 and a reason. */
ML_NODISCARD int lua_network_socket(struct ml_pod_network *network, int type,
                                    struct in_addr address, struct ml_err *err);
/* The same for TCP and an address of any family; -1: there is none. */
int lua_network_socket_to(struct ml_pod_network *network, const struct sockaddr *address);
