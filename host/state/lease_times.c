#include "state/lease_times.h"

#define RETRY_JITTER 1.2 /* client-go, leaderelection.JitterFactor */

int ml_lease_times_check(const struct ml_lease_times *times, struct ml_err *err)
{
    if (times->lease_ns < ML_NS_PER_S || times->lease_ns % ML_NS_PER_S != 0)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-lease-duration: expected whole seconds, at least 1");
    if (times->renew_ns <= 0 || times->retry_ns <= 0)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-renew-deadline and --leader-election-retry-period: "
                          "expected more than 0");
    if (times->lease_ns <= times->renew_ns)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-lease-duration must be longer than "
                          "--leader-election-renew-deadline");
    if ((double)times->renew_ns <= RETRY_JITTER * (double)times->retry_ns)
        return ml_err_set(err, ML_EINVALID,
                          "--leader-election-renew-deadline must be longer than 1.2 times "
                          "--leader-election-retry-period");
    return 0;
}
