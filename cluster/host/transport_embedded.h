/* cluster. The transport to an API server in the same process, without sockets or HTTP bytes.
 * A request is handled in the turn of the loop after its submit, and its answer is delivered from
 * the loop; deadlines count as on a socket. Tests inject faults.
 *
 * The bytes that an answer gets within one turn of the loop are buffered; more than 256 MiB of them
 * end the call with ML_ENETWORK. */
#pragma once

#include "cluster/host/apiserver.h"
#include "kube/transport.h"

/* Faults of networks and servers, for tests of scripts (moonloop test) and of the host itself. */
enum ml_fault_kind {
    ML_FAULT_REFUSE,     /* answered with a Status instead of reaching the server */
    ML_FAULT_LOSE,       /* does not reach the server; ends with ML_ENETWORK */
    ML_FAULT_LOSE_REPLY, /* the server handles it; its answer is lost; ends with ML_ENETWORK */
    ML_FAULT_TIME_OUT,   /* the server handles it; ends with ML_ETIMEOUT */
    ML_FAULT_CUT,        /* the answer is cut after `bytes` of the body; ends with ML_ENETWORK */
    ML_FAULT_HOLD,       /* streams: bytes wait until the fault is removed (a stale cache) */
};

struct ml_fault {
    enum ml_fault_kind kind;
    const char *method; /* NULL: any */
    const char *path;   /* part of path and query; NULL: any */
    size_t times;       /* requests it applies to; 0: all, until removed. HOLD: ignored */
    int status;         /* REFUSE: 409, … */
    const char *reason; /* REFUSE: "Conflict", … */
    size_t bytes;       /* CUT */
};

/* All borrowed until the transport is freed, `server` until set_server replaces it. Each request
 * carries `token` as its bearer token; NULL: none. */
struct ml_transport *ml_transport_embedded_new(struct ml_loop *loop, struct ml_apiserver *server,
                                               const char *token);

/* Replaces the server; NULL: there is none. Open calls are cut; without a server later ones fail to
 * connect; both with ML_ENETWORK. To be called before a server is freed while its transport lives
 * on. */
void ml_transport_embedded_set_server(struct ml_transport *transport, struct ml_apiserver *server);

/* Injects a fault from the next request on; HOLD also into open streams. The oldest fault that fits
 * a request applies. Returns its number, above 0. */
int ml_transport_embedded_add_fault(struct ml_transport *transport, const struct ml_fault *fault);
/* Removes it; held streams continue, from the loop. Does nothing for an unknown number. */
void ml_transport_embedded_remove_fault(struct ml_transport *transport, int number);

/* Calls `observe` for each request from now on; NULL: for none any more. */
void ml_transport_embedded_observe(struct ml_transport *transport,
                                   void (*observe)(void *context,
                                                   const struct ml_transport_request *request),
                                   void *context);
