/* L4 state, private to the election. A watch of one Lease that only gives hints: a candidate
 * without it (no right to watch, a stream that broke) is slower, not wrong. */
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

/* `seen` is called, from the loop, with the Lease each time that it changes, and with nothing when
 * it was deleted. */
void lease_watch_init(struct lease_watch *watch, struct ml_client *client, const char *ns,
                      const char *name, void (*seen)(void *context, struct ml_str lease),
                      void *context);
void lease_watch_start(struct lease_watch *watch); /* nothing when it watches already */
void lease_watch_stop(struct lease_watch *watch);
void lease_watch_fini(struct lease_watch *watch);
