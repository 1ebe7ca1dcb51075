/* cluster. The manifests of --apply: the embedded server's Lua applies them when `moonloop dev`
 * starts, and whenever they change. */
#pragma once

#include "base/log.h"
#include "cluster/host/server_lua.h"

struct ml_dev_manifests;

struct ml_dev_manifests_opts {
    struct ml_loop *loop;
    struct ml_log *log;
    struct ml_server_lua *lua; /* the server's */
    const char *const *paths;  /* files and folders; NULL ends them */
    /* Each path was tried once, if there is one. Never inside ml_dev_manifests_new. */
    void (*all_tried)(void *context);
    void *context;
};

/* `paths` must outlive it. */
struct ml_dev_manifests *ml_dev_manifests_new(const struct ml_dev_manifests_opts *opts);
void ml_dev_manifests_free(struct ml_dev_manifests *manifests); /* NULL is fine */

/* The last read of each path succeeded. Lua knows if applying them did. */
bool ml_dev_manifests_are_read(const struct ml_dev_manifests *manifests);
