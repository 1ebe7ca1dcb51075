/* The longest stay in Lua, measured around what limits.c measures. */
#pragma once

#include "base/base.h"

/* Of all stays the one that was worst for what it was allowed. */
struct stay {
    int64_t used_ns, budget_ns;
};

extern struct stay stay;

int64_t stay_cpu_ns(void); /* of this thread */
