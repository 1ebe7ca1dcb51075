/* L3 kube. A connection to a port in a pod, through the API server (pods/portforward), by a
 * WebSocket with the subprotocol v4.channel.k8s.io: each message begins with the number of its
 * channel, 0 for bytes and 1 for an error, and each channel begins with the port's number.
 * Source: k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go. */
#pragma once

#include "kube/credentials.h"

struct ml_port_forward;

struct ml_port_forward_opts {
    struct ml_loop *loop;
    struct ml_http_client *http;
    struct ml_credentials *credentials; /* as for all requests; waited for, if need be */
    struct ml_str ns, pod;
    int port;
    int64_t patience_ms; /* until it is open */
};

struct ml_port_forward_handler {
    void (*open)(void *context);
    void (*received)(void *context, struct ml_str bytes);
    /* Always the last, unless freed. `err` NULL: the other side ended it. An answer of the API
     * server that refuses it is the error of its Status. It is freed when this returns. */
    void (*closed)(void *context, const struct ml_err *err);
};

/* Borrows all, which must outlive it. Callbacks come later from the loop, never inside this call;
 * it may be freed in them, but for closed(). */
struct ml_port_forward *ml_port_forward_open(const struct ml_port_forward_opts *opts,
                                             const struct ml_port_forward_handler *handler,
                                             void *context);
/* Once it is open. Copies are wiped. */
void ml_port_forward_send(struct ml_port_forward *forward, struct ml_str bytes);
void ml_port_forward_free(struct ml_port_forward *forward); /* NULL is fine */
