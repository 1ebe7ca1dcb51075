/* cluster. Faults of networks and servers, for tests of scripts (moonloop test) and of the host
 * itself: what there is, and which of them applies to a request. transport_embedded.c injects
 * them. */
#pragma once

#include "base/buf.h"
#include "base/list.h"

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

/* Those of one transport. */
struct ml_faults {
    struct ml_list rules; /* oldest first */
    int last_number;
};

void ml_faults_init(struct ml_faults *faults);
void ml_faults_fini(struct ml_faults *faults);

/* Copies the fault and its strings. Returns its number, above 0. */
int ml_faults_add(struct ml_faults *faults, const struct ml_fault *fault);
/* Does nothing for an unknown number. */
void ml_faults_remove(struct ml_faults *faults, int number);

/* Finds the oldest fault, other than HOLD, that fits a new request, and counts down its `times`.
 * `out` gets it without its strings; for REFUSE the Status is appended to `refusal`. False: none.
 */
bool ml_faults_strike(struct ml_faults *faults, const char *method, const char *path,
                      struct ml_fault *out, struct ml_buf *refusal);

/* Whether a HOLD fits the request. */
bool ml_faults_hold(const struct ml_faults *faults, const char *method, const char *path);
