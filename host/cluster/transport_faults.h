/* L3 kube. A transport with faults: stands before another one and, for requests that a fault is
 * meant for, does to them what networks and servers do. For tests: of scripts (moonloop test) and
 * of the host itself. */
#pragma once

#include "kube/transport.h"
#include "net/loop.h"

struct ml_transport_faults;

enum ml_fault_kind {
    ML_FAULT_REFUSE,     /* answered with a Status instead of reaching the server */
    ML_FAULT_LOSE,       /* never reaches the server; ends with ML_ENETWORK */
    ML_FAULT_LOSE_REPLY, /* the server does it; its answer is lost, ends with ML_ENETWORK */
    ML_FAULT_TIME_OUT,   /* the server does it; ends with ML_ETIMEOUT */
    ML_FAULT_CUT,        /* the answer is cut after `bytes` of the body; ends with ML_ENETWORK */
    ML_FAULT_HOLD,       /* streams: bytes wait until the fault is taken away (a stale cache) */
};

/* Strings are copied. */
struct ml_fault {
    enum ml_fault_kind kind;
    const char *method; /* NULL: any */
    const char *path;   /* part of path and query; NULL: any */
    size_t times;       /* requests it is good for; 0: all, until taken away. HOLD: ignored */
    int status;         /* REFUSE: 409, … */
    const char *reason; /* REFUSE: "Conflict", … */
    size_t bytes;       /* CUT */
};

/* Takes `inner` over. The seam's free ends both. */
struct ml_transport *ml_transport_faults_new(struct ml_loop *loop, struct ml_transport *inner,
                                             struct ml_transport_faults **out);

/* From the next request on; HOLD also for streams under way. The oldest fault that fits a request
 * counts. Returns its number, above 0. */
int ml_transport_faults_add(struct ml_transport_faults *faults, const struct ml_fault *fault);

/* Takes it away; what it held goes on, from the loop. Nothing for a number that is not there. */
void ml_transport_faults_remove(struct ml_transport_faults *faults, int number);
