/* L6 operator. The transport seam on an API server in the same process: no sockets, no bytes of
 * HTTP, no time but the loop's. A request is handled in the turn of the loop after its submit, its
 * answer is told there too; deadlines count as on a socket.
 *
 * What waits for a caller is its answer's bytes of one turn of the loop; more than 256 MiB of
 * them end the call with ML_ENETWORK. */
#pragma once

#include "cluster/apiserver.h"
#include "kube/transport.h"

/* All borrowed until the seam's free; `server` until set_server says otherwise. `token` goes with
 * each request as a bearer token; NULL: none. */
struct ml_transport *ml_transport_embedded_new(struct ml_loop *loop, struct ml_apiserver *server,
                                               const char *token);

/* Another server, or with NULL none: calls under way are cut, later ones fail to connect, all with
 * ML_ENETWORK. To be called before a server is freed whose transport lives on. */
void ml_transport_embedded_set_server(struct ml_transport *transport, struct ml_apiserver *server);
