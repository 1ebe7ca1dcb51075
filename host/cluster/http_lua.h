/* cluster. `require "cluster.http"` for the host's own Lua: requests to webhooks, whose answers the
 * caller waits for while the loop goes on, and to pods, whose answers come piece by piece; see
 * lua/cluster/meta/http.lua. */
#pragma once

#include "cluster/pod_network.h"
#include "cluster/trusted.h"
#include "net/http_client.h"

struct ml_http_library {
    struct ml_http_client *http;
    struct ml_pod_network *network; /* NULL: pods are in the machine's */
};

/* All parts are borrowed until the state is freed. */
void ml_trusted_add_http(struct ml_trusted *trusted, const struct ml_http_library *library);
