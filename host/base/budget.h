/* L0 base. Bytes that somebody may use. Who holds memory on another's account takes it from that
 * budget, and gives it back when the memory is gone. Several budgets may share a pool. */
#pragma once

#include "base/base.h"

/* What several budgets may use together. */
struct ml_budget_pool {
    size_t used;
    size_t max; /* 0: no end */
};

struct ml_budget {
    size_t used;
    size_t max;
    struct ml_budget_pool *pool; /* NULL: none */
    size_t pool_grants;          /* bytes that the pool gives whatever the others use */
    bool pool_refused;           /* that, and not `max`, is what did not fit last */
    void (*reclaim)(struct ml_budget *budget); /* gives back what is not needed; NULL: nothing */
};

/* The allocator of scripts asks all of these, so what is short is inline. */

bool ml_budget_fits_pool(struct ml_budget *budget,
                         size_t bytes); /* the slow way of ml_budget_fits */

/* Would so many more bytes fit? Of what the others leave in the pool, one gets seven eighths: so
 * there is something left for each, however many want it all. */
static inline bool ml_budget_fits(struct ml_budget *budget, size_t bytes)
{
    size_t granted = ML_MIN(budget->pool_grants, budget->max);
    if (budget->used > granted || bytes > granted - budget->used)
        return ml_budget_fits_pool(budget, bytes);
    budget->pool_refused = false;
    return true;
}

/* False, with nothing taken, when that many bytes do not fit, even after reclaim. A budget of
 * NULL has no end. */
ML_NODISCARD bool ml_budget_take(struct ml_budget *budget, size_t bytes);
/* For what is there already: may pass the maximum, so that nothing else fits until it is gone. */
static inline void ml_budget_force(struct ml_budget *budget, size_t bytes)
{
    if (!budget)
        return;
    budget->used += bytes;
    if (budget->pool)
        budget->pool->used += bytes;
}

static inline void ml_budget_give(struct ml_budget *budget, size_t bytes)
{
    if (!budget)
        return;
    ml_assert(bytes <= budget->used);
    budget->used -= bytes;
    if (budget->pool)
        budget->pool->used -= bytes;
}
