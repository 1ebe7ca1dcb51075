/* L4 state, private to the election and to members of a shard group. A watch of Leases that only
 * gives hints: who has none (no right to watch, a stream that broke) is slower, not wrong. */
#pragma once

#include "codec/json_stream.h"
#include "kube/client.h"

struct lease_watch {
    struct ml_client *client;
    struct ml_client_call *call; /* NULL: not watching */
    struct ml_json_lines lines;
    char *path;
    bool forbidden; /* told so; not asked for again */
    void (*seen)(void *context, struct ml_str lease);
    void *context;
};

/* Of the Leases in `ns` that `selector` selects, a "fieldSelector" or "labelSelector" as
 * `parameter` says. `seen` is called, from the loop, with a Lease each time that it changes, and
 * with nothing when one was deleted. */
void lease_watch_init(struct lease_watch *watch, struct ml_client *client, const char *ns,
                      const char *parameter, const char *selector,
                      void (*seen)(void *context, struct ml_str lease), void *context);
void lease_watch_start(struct lease_watch *watch); /* nothing when it watches already */
void lease_watch_stop(struct lease_watch *watch);
void lease_watch_fini(struct lease_watch *watch);
