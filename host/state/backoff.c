/* Delays between failures, for the reflector and other callers that retry. */
#include "state/backoff.h"

#define FIRST_NS (800 * ML_NS_PER_MS)
#define MAX_NS   (30 * ML_NS_PER_S)
#define RESET_NS (120 * ML_NS_PER_S)

int64_t ml_backoff_next(struct ml_backoff *backoff, struct ml_random *random, int64_t now_ns)
{
    if (backoff->delay_ns == 0 || now_ns - backoff->last_ns > RESET_NS)
        backoff->delay_ns = FIRST_NS;
    int64_t delay_ns = backoff->delay_ns + ml_random_between(random, 0, backoff->delay_ns);
    backoff->delay_ns = ML_MIN(backoff->delay_ns * 2, MAX_NS);
    backoff->last_ns = now_ns + delay_ns;
    return delay_ns;
}
