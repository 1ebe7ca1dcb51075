/* L3 kube. The transport interface: how a request reaches an API server. All code above uses this
 * struct and does not see whether a socket or a server in the same process is behind it. */
#pragma once

#include "base/err.h"
#include "net/http_client.h"

struct ml_transport_call;

/* Texts and body live until done() or cancel. */
struct ml_transport_request {
    const char *method;
    const char *path;         /* with query; the transport knows host and credentials */
    const char *accept;       /* NULL: application/json */
    const char *content_type; /* with a body */
    struct ml_str body;
    struct ml_http_deadlines deadlines;
    bool streaming;
    int (*may_send)(void *context, struct ml_err *err); /* as in ml_http_request; a transport
                                                           that sends at once need not call it */
};

struct ml_transport {
    /* Same rules as ml_http_send and ml_http_cancel: callbacks never inside submit, none after
     * cancel, done() always last. */
    struct ml_transport_call *(*submit)(struct ml_transport *transport,
                                        const struct ml_transport_request *request,
                                        const struct ml_http_handler *handler, void *context);
    void (*cancel)(struct ml_transport *transport, struct ml_transport_call *call);
    void (*free)(struct ml_transport *transport);
    const char *host; /* for metrics and messages */
    bool local;       /* the server is in this process: no connection can break or be dead */
    bool bookmarks;   /* it is known to send one to each watch once a minute */
};

struct ml_credentials;

/* The transport over real sockets: http_client plus server address and credentials. A request waits
 * for the credentials if they have to be fetched first. A request that is answered with 401, or
 * whose handshake fails, is sent once more when there are other credentials: that answer or failure
 * is not passed on, and the server executed nothing. Borrows both, which must outlive it. Ended by
 * its own free(). */
struct ml_transport *ml_transport_http_new(struct ml_http_client *client,
                                           struct ml_credentials *credentials);
