/* cluster. Passes TCP connections on: from listening sockets, wherever they are, to wherever their
 * target is; bytes in both directions, ends of streams, and resets. Of the bytes that one side
 * sends faster than the other reads, some hundred KiB are kept and no more. */
#pragma once

#include <netinet/in.h>

#include "base/err.h"
#include "net/loop.h"

/* Of all listeners; fewer where the process may not have many descriptors. One more is reset. */
#define ML_RELAY_CONNECTIONS_MAX 2048

struct ml_relay;
struct ml_relay_listener;

struct ml_relay *ml_relay_new(struct ml_loop *loop);
/* Cuts all connections, and closes the listeners. NULL is fine. */
void ml_relay_free(struct ml_relay *relay);

struct ml_relay_target {
    int socket; /* unbound and non-blocking; the relay closes it */
    struct sockaddr_in address;
};

/* Where a new connection goes. False: nowhere, it is reset. May free the listener. */
typedef bool ml_relay_find(void *context, struct in_addr client, struct ml_relay_target *out);

/* Accepts from `fd`, a listening non-blocking socket, which is closed with the listener. */
struct ml_relay_listener *ml_relay_listen(struct ml_relay *relay, int fd, ml_relay_find *find,
                                          void *context);
/* Its connections go on. NULL is fine. */
void ml_relay_listener_free(struct ml_relay_listener *listener);

/* One more connection would be passed on. */
bool ml_relay_has_room(const struct ml_relay *relay);
/* Passes on between two non-blocking sockets that are connected; the relay closes them. Does not
 * ask whether there is room. */
void ml_relay_join(struct ml_relay *relay, int client, int target);
