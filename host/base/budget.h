/* L0 base. Bytes that somebody may use. Who holds memory on another's account takes it from that
 * budget, and gives it back when the memory is gone. */
#pragma once

#include "base/base.h"

struct ml_budget {
    size_t used;
    size_t max;
    void (*reclaim)(struct ml_budget *budget); /* gives back what is not needed; NULL: nothing */
};

/* False, with nothing taken, when that many bytes do not fit, even after reclaim. A budget of
 * NULL has no end. */
ML_NODISCARD bool ml_budget_take(struct ml_budget *budget, size_t bytes);
/* For what is there already: may pass the maximum, so that nothing else fits until it is gone. */
void ml_budget_force(struct ml_budget *budget, size_t bytes);
void ml_budget_give(struct ml_budget *budget, size_t bytes);

static inline bool ml_budget_fits(const struct ml_budget *budget, size_t bytes)
{
    return bytes <= budget->max - ML_MIN(budget->used, budget->max);
}
