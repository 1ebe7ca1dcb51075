#include "base/budget.h"

static bool fits_pool(const struct ml_budget *budget, size_t bytes)
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
    budget->pool_refused = fits_own && !fits_pool(budget, bytes);
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
