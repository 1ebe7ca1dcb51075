/* L6 operator. The circuit breaker of a controller whose script exceeds its limits again and again.
 * Reads no clock: the caller passes instants.
 *
 *   closed ── 5 hits in a row ──> open ── the pause is over ──> half open: one object probes
 *      ^                           ^                                │
 *      └──────── a success ────────┼──────────────── a hit ─────────┘  the pause doubles
 *
 * The pause is 1 s at first, 10 min at most. After an edit of an object the next probe comes
 * earlier, because the edit may have removed the cause. */
#pragma once

#include "base/clock.h"

#define ML_CIRCUIT_HITS_MAX 5

struct ml_circuit {
    enum { ML_CIRCUIT_CLOSED, ML_CIRCUIT_OPEN, ML_CIRCUIT_HALF_OPEN } state;
    unsigned hits;     /* in a row */
    int64_t pause_ns;  /* of the last opening, or this one */
    int64_t opened_at; /* monotonic ns, as the next */
    int64_t open_until;
};

/* A limit ended a run. True when that opened the circuit, which was closed before. */
bool ml_circuit_hit(struct ml_circuit *circuit, int64_t now_ns);
/* A run ended without a limit: true when that closed the circuit. */
bool ml_circuit_success(struct ml_circuit *circuit);
/* The probe ended without a result: another one may begin. */
void ml_circuit_abandon(struct ml_circuit *circuit);
/* An object was edited: the next probe may begin 1 s after the last opening. */
void ml_circuit_hurry(struct ml_circuit *circuit);

/* May a run begin, and if not, after how long: 0 when it may, INT64_MAX while a probe is under way.
 */
int64_t ml_circuit_wait(const struct ml_circuit *circuit, int64_t now_ns);
/* A run begins: true when it is the probe. */
bool ml_circuit_begin(struct ml_circuit *circuit);
