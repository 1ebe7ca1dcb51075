/* L5 script. `require "cluster.process"` for the host's own Lua: local processes, folders for
 * them, and looking whether they answer. What it gives is told in lua/cluster/meta/process.lua. */
#pragma once

#include "cluster/process.h"
#include "cluster/trusted.h"
#include "net/http_client.h"

struct ml_process_library {
    struct ml_processes *processes;
    struct ml_http_client *http; /* for process.get */
};

/* Both parts are borrowed as long as the state lives, which must have a loop. Processes that still
 * run when the state is freed are killed. */
void ml_trusted_add_processes(struct ml_trusted *trusted, const struct ml_process_library *library);
