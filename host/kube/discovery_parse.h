/* L3 kube. Reads an APIResourceList, the server's answer to /apis/GROUP/VERSION. Private to
 * discovery.c. */
#pragma once

#include "base/err.h"

struct ml_discovery_resource {
    struct ml_str kind;
    struct ml_str plural;
    bool namespaced;
    bool has_status;
};

/* Calls `resource` for each resource that is no subresource; its slices live during the call.
 * Entries without a sensible kind and name are passed over. ML_EINVALID: no such list. */
ML_NODISCARD int ml_discovery_parse(struct ml_str json,
                                    void (*resource)(void *context,
                                                     const struct ml_discovery_resource *resource),
                                    void *context, struct ml_err *err);
