/* cluster. A transport that wraps another one and injects faults of networks and servers into the
 * requests that a fault matches. For tests of scripts (moonloop test) and of the host itself. */
#pragma once

#include "kube/transport.h"
#include "net/loop.h"

struct ml_transport_faults;

enum ml_fault_kind {
    ML_FAULT_REFUSE,     /* answered with a Status instead of reaching the server */
    ML_FAULT_LOSE,       /* does not reach the server; ends with ML_ENETWORK */
    ML_FAULT_LOSE_REPLY, /* the server handles it; its answer is lost; ends with ML_ENETWORK */
    ML_FAULT_TIME_OUT,   /* the server handles it; ends with ML_ETIMEOUT */
    ML_FAULT_CUT,        /* the answer is cut after `bytes` of the body; ends with ML_ENETWORK */
    ML_FAULT_HOLD,       /* streams: bytes wait until the fault is removed (a stale cache) */
};

/* Strings are copied. */
struct ml_fault {
    enum ml_fault_kind kind;
    const char *method; /* NULL: any */
    const char *path;   /* part of path and query; NULL: any */
    size_t times;       /* requests it applies to; 0: all, until removed. HOLD: ignored */
    int status;         /* REFUSE: 409, … */
    const char *reason; /* REFUSE: "Conflict", … */
    size_t bytes;       /* CUT */
};

/* Owns `inner`: freeing the seam frees both. */
struct ml_transport *ml_transport_faults_new(struct ml_loop *loop, struct ml_transport *inner,
                                             struct ml_transport_faults **out);

/* Applies from the next request on; HOLD also to open streams. The oldest fault that fits a request
 * applies. Returns its number, above 0. */
int ml_transport_faults_add(struct ml_transport_faults *faults, const struct ml_fault *fault);

/* Removes it; held streams continue, from the loop. Does nothing for an unknown number. */
void ml_transport_faults_remove(struct ml_transport_faults *faults, int number);
