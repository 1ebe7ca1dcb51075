/* L0 base. What somebody has used of the CPU, against a share of the wall time: pure, over instants
 * that the caller reads from a clock. A quarter of the time may be used, and of what was not used
 * up to two seconds' worth at once; what goes beyond that is owed until enough time has passed. */
#pragma once

#include "base/clock.h"

#define ML_METER_SHARE_DIVISOR 4 /* 25 % of the wall time */
#define ML_METER_WINDOW_NS     (2 * ML_NS_PER_S)

/* All zero: nothing used. */
struct ml_meter {
    int64_t used_ns; /* and not made good for yet, at that instant: */
    int64_t at_ns;   /* monotonic */
};

void ml_meter_charge(struct ml_meter *meter, int64_t now_ns, int64_t cpu_ns);

/* How long nothing may be used, in ns of wall time; 0: nothing is owed. */
int64_t ml_meter_debt(const struct ml_meter *meter, int64_t now_ns);
