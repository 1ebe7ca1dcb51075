/* The states of a controller's circuit, as pure functions. controller.c reports hits and successes,
 * and asks before a key begins. */
#include "operator/circuit.h"

#define PAUSE_FIRST_NS (1 * ML_NS_PER_S)
#define PAUSE_MAX_NS   (600 * ML_NS_PER_S)

static void open_circuit(struct ml_circuit *circuit, int64_t now_ns)
{
    circuit->pause_ns = circuit->pause_ns ? ML_MIN(2 * circuit->pause_ns, PAUSE_MAX_NS)
                                          : PAUSE_FIRST_NS;
    circuit->opened_at = now_ns;
    circuit->open_until = now_ns + circuit->pause_ns;
    circuit->state = ML_CIRCUIT_OPEN;
}

bool ml_circuit_hit(struct ml_circuit *circuit, int64_t now_ns)
{
    bool was_closed = circuit->state == ML_CIRCUIT_CLOSED;
    if (circuit->hits < ML_CIRCUIT_HITS_MAX)
        circuit->hits++;
    if (circuit->state == ML_CIRCUIT_OPEN || circuit->hits < ML_CIRCUIT_HITS_MAX)
        return false; /* open: what was under way when it opened changes nothing */
    open_circuit(circuit, now_ns);
    return was_closed;
}

bool ml_circuit_success(struct ml_circuit *circuit)
{
    bool was_closed = circuit->state == ML_CIRCUIT_CLOSED;
    *circuit = (struct ml_circuit){.state = ML_CIRCUIT_CLOSED};
    return !was_closed;
}

void ml_circuit_abandon(struct ml_circuit *circuit)
{
    if (circuit->state == ML_CIRCUIT_HALF_OPEN)
        circuit->state = ML_CIRCUIT_OPEN; /* whose pause is over */
}

void ml_circuit_hurry(struct ml_circuit *circuit)
{
    circuit->open_until = ML_MIN(circuit->open_until, circuit->opened_at + PAUSE_FIRST_NS);
}

int64_t ml_circuit_wait(const struct ml_circuit *circuit, int64_t now_ns)
{
    switch (circuit->state) {
    case ML_CIRCUIT_CLOSED:
        return 0;
    case ML_CIRCUIT_OPEN:
        return ML_MAX(circuit->open_until - now_ns, 0);
    case ML_CIRCUIT_HALF_OPEN:
        return INT64_MAX;
    }
    ML_UNREACHABLE();
}

bool ml_circuit_begin(struct ml_circuit *circuit)
{
    if (circuit->state == ML_CIRCUIT_CLOSED)
        return false;
    circuit->state = ML_CIRCUIT_HALF_OPEN;
    return true;
}
