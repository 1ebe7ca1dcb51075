/* L4 state. The three times of a Lease, for leader election and for members of a shard group. */
#pragma once

#include "base/err.h"

struct ml_lease_times {
    int64_t lease_ns; /* how long others wait for a holder that is silent; whole seconds */
    int64_t renew_ns; /* how long the holder may go without a renewal */
    int64_t retry_ns; /* between two attempts */
};

#define ML_LEASE_TIMES_DEFAULT                                                                     \
    ((struct ml_lease_times){15 * ML_NS_PER_S, 10 * ML_NS_PER_S, 2 * ML_NS_PER_S})

/* client-go's NewLeaderElector: lease > renew > 1.2 * retry. ML_EINVALID says which is wrong, by
 * the names of the flags. */
ML_NODISCARD int ml_lease_times_check(const struct ml_lease_times *times, struct ml_err *err);
