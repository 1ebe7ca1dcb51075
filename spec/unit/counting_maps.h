/* Replicas that share config maps, map-1 to map-n, which a script counts up: what the tests of
 * sharding watch over. */
#pragma once

#include "replicas.h"

#include <stdio.h>

/* Counts each map up, once a second by the replica's own clock; two writes each time. */
static const char *const counter =
    "local moonloop = require 'moonloop'\n"
    "local ConfigMap = moonloop.kind('v1', 'ConfigMap')\n"
    "local last = {}\n"
    "return moonloop.controller { name = 'counter', reconciles = ConfigMap,\n"
    "  reconcile = function(map, ctx)\n"
    "    local name, now = map.metadata.name, ctx.now()\n"
    "    local n = tonumber(map.data.n)\n"
    "    if not n then return end\n"
    "    if last[name] and now < last[name] + 1 then return { requeue_at = last[name] + 1 } end\n"
    "    local written = assert(ctx.patch(map, { data = { n = tostring(n + 1) } }))\n"
    "    assert(ctx.patch(written, { data = { n = tostring(n + 2) } }))\n"
    "    last[name] = now\n"
    "    return { requeue_after = 1 }\n"
    "  end }\n";

/* A world with that many maps, without a replica. */
static inline struct replicas *counting_world(int maps, uint64_t seed)
{
    struct replicas *all = replicas_new(counter, seed);
    ML_AUTO_FREE char *make = ml_asprintf(
        "for i = 1, %d do assert(call('POST', '/api/v1/namespaces/default/configmaps',"
        "{ kind = 'ConfigMap', apiVersion = 'v1', metadata = { name = 'map-' .. i },"
        " data = { n = '0' } }) == 201) end",
        maps);
    all->shares = true;
    replicas_lua(all, make);
    return all;
}

/* The number of the map that it is about; 0: of none. */
static inline int counting_map(const struct replicas_request *request)
{
    ML_AUTO_FREE char *name = request_name(request, "configmaps");
    return name && strncmp(name, "map-", 4) == 0 ? atoi(name + strlen("map-")) : 0;
}

static inline bool counting_work(const struct replicas_request *request)
{
    return strcmp(request->method, "GET") != 0 && counting_map(request) > 0;
}
