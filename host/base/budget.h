/* L0 base. Limits on what one owner may use: memory (struct ml_budget) and CPU time (struct
 * ml_meter).
 *
 * Code that holds memory for an owner takes it from the owner's budget, and gives it back when the
 * memory is freed. Several budgets may share a pool. */
#pragma once

#include "base/clock.h"

/* The bytes that several budgets may use together. */
struct ml_budget_pool {
    size_t used;
    size_t max; /* 0: no limit */
};

struct ml_budget {
    size_t used;
    size_t max;
    struct ml_budget_pool *pool; /* NULL: none */
    size_t pool_grants;          /* bytes that the pool always gives, whatever others use */
    bool pool_refused;           /* the last refusal was the pool's, not that of `max` */
    void (*reclaim)(struct ml_budget *budget); /* frees unneeded memory; NULL: there is none */
};

/* The allocator of scripts calls all of these, so the short ones are inline. */

bool ml_budget_fits_pool(struct ml_budget *budget,
                         size_t bytes); /* the slow way of ml_budget_fits */

/* Would so many more bytes fit? One budget may use seven eighths of what the others leave in the
 * pool, so something is left for each, however many budgets use their maximum. */
static inline bool ml_budget_fits(struct ml_budget *budget, size_t bytes)
{
    size_t granted = ML_MIN(budget->pool_grants, budget->max);
    if (budget->used > granted || bytes > granted - budget->used)
        return ml_budget_fits_pool(budget, bytes);
    budget->pool_refused = false;
    return true;
}

/* False when so many bytes do not fit, even after reclaim: it then takes nothing. A NULL budget has
 * no limit. */
ML_NODISCARD bool ml_budget_take(struct ml_budget *budget, size_t bytes);
/* For memory that is already allocated: may exceed the maximum; then nothing else fits until enough
 * has been given back. */
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

/* Limits CPU time to a quarter of the wall time. Unused time adds up to at most half a second,
 * which may be used at once; CPU time beyond that is owed until enough time has passed. Reads no
 * clock: the caller passes instants. All zero: nothing used. */
struct ml_meter {
    int64_t used_ns; /* as of at_ns, without what elapsed time has paid back */
    int64_t at_ns;   /* monotonic */
};

void ml_meter_charge(struct ml_meter *meter, int64_t now_ns, int64_t cpu_ns);

/* How long nothing may be used, in ns of wall time; 0: nothing is owed. */
int64_t ml_meter_debt(const struct ml_meter *meter, int64_t now_ns);
