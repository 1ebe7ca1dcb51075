/* L3 kube. The transport over real sockets: http_client plus server address and credentials
 * of a kubeconfig. A 401 refreshes the credentials for the next request. */
#pragma once

#include "kube/kubeconfig.h"
#include "kube/transport.h"

/* Borrows both, which must outlive it. Ended by its own free(). */
struct ml_transport *ml_transport_http_new(struct ml_http_client *client,
                                           struct ml_kubeconfig *config);
