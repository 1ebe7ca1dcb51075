#include "base/meter.h"

#define ALLOWANCE_NS (ML_METER_WINDOW_NS / ML_METER_SHARE_DIVISOR)
#define USED_MAX_NS  (600 * ML_NS_PER_S) /* nobody waits for longer than 40 minutes */

static int64_t still_used(const struct ml_meter *meter, int64_t now_ns)
{
    int64_t good_ns = ml_ns_between(meter->at_ns, now_ns) / ML_METER_SHARE_DIVISOR;
    return good_ns < 0 ? meter->used_ns : ML_MAX(meter->used_ns - good_ns, 0);
}

void ml_meter_charge(struct ml_meter *meter, int64_t now_ns, int64_t cpu_ns)
{
    int64_t more_ns = ML_MIN(ML_MAX(cpu_ns, 0), USED_MAX_NS);
    meter->used_ns = ML_MIN(still_used(meter, now_ns) + more_ns, USED_MAX_NS);
    meter->at_ns = now_ns;
}

int64_t ml_meter_debt(const struct ml_meter *meter, int64_t now_ns)
{
    int64_t over_ns = still_used(meter, now_ns) - ALLOWANCE_NS;
    return over_ns > 0 ? over_ns * ML_METER_SHARE_DIVISOR : 0;
}
