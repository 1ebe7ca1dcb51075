/* Memory budgets of scripts and of the host, CPU meters of controllers (state/slices.c). */
#include "base/budget.h"

static bool fits_in_pool(const struct ml_budget *budget, size_t bytes)
{
    const struct ml_budget_pool *pool = budget->pool;
    if (!pool || pool->max == 0 || budget->used + bytes <= budget->pool_grants)
        return true;
    size_t others = ML_MIN(pool->used - budget->used, pool->max);
    return budget->used + bytes <= (pool->max - others) / 8 * 7;
}

bool ml_budget_fits_pool(struct ml_budget *budget, size_t bytes)
{
    bool fits_own = bytes <= budget->max - ML_MIN(budget->used, budget->max);
    budget->pool_refused = fits_own && !fits_in_pool(budget, bytes);
    return fits_own && !budget->pool_refused;
}

bool ml_budget_take(struct ml_budget *budget, size_t bytes)
{
    if (!budget)
        return true;
    if (!ml_budget_fits(budget, bytes) && budget->reclaim)
        budget->reclaim(budget);
    if (!ml_budget_fits(budget, bytes))
        return false;
    ml_budget_force(budget, bytes);
    return true;
}

#define METER_SHARE_DIVISOR 4 /* 25 % of the wall time */
#define METER_WINDOW_NS     (2 * ML_NS_PER_S)
#define METER_ALLOWANCE_NS  (METER_WINDOW_NS / METER_SHARE_DIVISOR)
#define METER_USED_MAX_NS   (600 * ML_NS_PER_S) /* nobody waits for longer than 40 minutes */

static int64_t meter_used(const struct ml_meter *meter, int64_t now_ns)
{
    int64_t good_ns = ml_ns_between(meter->at_ns, now_ns) / METER_SHARE_DIVISOR;
    return good_ns < 0 ? meter->used_ns : ML_MAX(meter->used_ns - good_ns, 0);
}

void ml_meter_charge(struct ml_meter *meter, int64_t now_ns, int64_t cpu_ns)
{
    int64_t more_ns = ML_MIN(ML_MAX(cpu_ns, 0), METER_USED_MAX_NS);
    meter->used_ns = ML_MIN(meter_used(meter, now_ns) + more_ns, METER_USED_MAX_NS);
    meter->at_ns = now_ns;
}

int64_t ml_meter_debt(const struct ml_meter *meter, int64_t now_ns)
{
    int64_t over_ns = meter_used(meter, now_ns) - METER_ALLOWANCE_NS;
    return over_ns > 0 ? over_ns * METER_SHARE_DIVISOR : 0;
}
