/* cluster. `require "cluster.process"` for the host's own Lua: local processes, their folders, and
 * checks whether they answer; see lua/cluster/meta/process.lua. */
#pragma once

#include "cluster/pod_network.h"
#include "cluster/process.h"
#include "cluster/trusted.h"
#include "net/http_client.h"

struct ml_process_library {
    struct ml_processes *processes;
    struct ml_http_client *http;    /* for process.get */
    struct ml_pod_network *network; /* in which some of them are; NULL: there is none */
};

/* The parts are borrowed until the state is freed, which kills processes that still run. The state
 * must have a loop. */
void ml_trusted_add_processes(struct ml_trusted *trusted, const struct ml_process_library *library);
