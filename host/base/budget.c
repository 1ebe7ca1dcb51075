#include "base/budget.h"

bool ml_budget_take(struct ml_budget *budget, size_t bytes)
{
    if (!budget)
        return true;
    if (!ml_budget_fits(budget, bytes) && budget->reclaim)
        budget->reclaim(budget);
    if (!ml_budget_fits(budget, bytes))
        return false;
    budget->used += bytes;
    return true;
}

void ml_budget_force(struct ml_budget *budget, size_t bytes)
{
    if (budget)
        budget->used += bytes;
}

void ml_budget_give(struct ml_budget *budget, size_t bytes)
{
    if (!budget)
        return;
    ml_assert(bytes <= budget->used);
    budget->used -= bytes;
}
