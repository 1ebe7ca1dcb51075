/* L6 operator. What `moonloop dev --apply` was given: read, and applied by the Lua beside the server,
 * now and whenever a file is saved. */
#pragma once

#include "cluster/trusted.h"

struct ml_dev_manifests;

struct ml_dev_manifests_opts {
    struct ml_loop *loop;
    struct ml_trusted *trusted;   /* where moonloop.dev is */
    struct ml_log *log;           /* told of paths that cannot be read */
    const char *const *paths;     /* NULL-terminated */
    void (*first)(void *context); /* all have been applied once; from the loop */
    void *context;
};

/* All borrowed. */
struct ml_dev_manifests *ml_dev_manifests_new(const struct ml_dev_manifests_opts *opts);
void ml_dev_manifests_free(struct ml_dev_manifests *manifests); /* NULL is fine */

/* Whether everything could be read when it was tried last. What became of it Lua knows. */
bool ml_dev_manifests_read(const struct ml_dev_manifests *manifests);
