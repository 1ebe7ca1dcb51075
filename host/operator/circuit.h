/* L6 operator. A controller whose script runs into its limits again and again: pure, over instants
 * that the caller reads from a clock.
 *
 *   closed ── 5 hits in a row ──> open ── the pause is over ──> half open: one object probes
 *      ^                           ^                                │
 *      └──────── a success ────────┼──────────────── a hit ─────────┘  the pause doubles
 *
 * The pause is 1 s at first, 10 min at most. Somebody who edits an object need not wait for all of
 * it: that may be the cure. */
#pragma once

#include "base/clock.h"

#define ML_CIRCUIT_HITS_MAX 5

struct ml_circuit {
    enum { ML_CIRCUIT_CLOSED, ML_CIRCUIT_OPEN, ML_CIRCUIT_HALF_OPEN } state;
    unsigned hits;     /* in a row */
    int64_t pause_ns;  /* of the opening before, or this one */
    int64_t opened_at; /* monotonic ns, as the next */
    int64_t open_until;
};

/* A run was ended by a limit. True when that opened the circuit, which was closed before. */
bool ml_circuit_hit(struct ml_circuit *circuit, int64_t now_ns);
/* A run was not: true when that closed the circuit. */
bool ml_circuit_success(struct ml_circuit *circuit);
/* The probe came to no end that says anything: another one may begin. */
void ml_circuit_abandon(struct ml_circuit *circuit);
/* An object was edited: the next probe may begin 1 s after the last opening. */
void ml_circuit_hurry(struct ml_circuit *circuit);

/* May a run begin, and if not, after how long: 0 when it may, INT64_MAX while a probe is under way.
 */
int64_t ml_circuit_wait(const struct ml_circuit *circuit, int64_t now_ns);
/* A run begins: true when it is the probe. */
bool ml_circuit_begin(struct ml_circuit *circuit);
