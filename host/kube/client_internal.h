/* L3 kube, private to client.c and client_wire.c. A request in the form of the transport. */
#pragma once

#include "kube/client.h"

struct ml_client_wire {
    const char *method;       /* static */
    const char *content_type; /* static, or NULL */
    char *path;               /* with query */
    char *accept;             /* or NULL */
    struct ml_buf body;
};

void ml_client_wire_make(const struct ml_client_request *request, struct ml_client_wire *out);
void ml_client_wire_fini(struct ml_client_wire *wire);
