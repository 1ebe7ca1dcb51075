/* L3 kube. The transport over real sockets: http_client plus server address and credentials.
 * A request waits for the credentials if they have to be fetched first. A request that is
 * answered with 401, or whose handshake fails, is sent once more when there are other credentials:
 * that answer or failure is not passed on, and the server executed nothing. */
#pragma once

#include "kube/credentials.h"
#include "kube/transport.h"

/* Borrows both, which must outlive it. Ended by its own free(). */
struct ml_transport *ml_transport_http_new(struct ml_http_client *client,
                                           struct ml_credentials *credentials);
