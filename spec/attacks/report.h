/* The report of a program's process about itself; in memory that its parent shares, so it outlives
 * a crash. */
#pragma once

#include "base/base.h"

struct report {
    bool over;       /* it has come to its end and been judged */
    bool loaded;     /* the bystander works, the program has been told */
    char why[2048];  /* what was not as it should be, a line each; empty: nothing */
    int64_t ticks;   /* of the bystander, since then */
    int64_t late_ns; /* it at most */
    int64_t entry_ns, entry_budget_ns; /* the longest stay in Lua, by what it was allowed */
    int64_t turn_ns;                   /* the longest turn of the loop */
    int64_t grown;                     /* bytes at most, without the server's */
    int64_t cpu_ns, passed_ns;         /* used of what passed */
    size_t requests;
};

/* Adds a line to why. */
void report_fail(struct report *report, const char *format, ...) ML_PRINTF(2, 3);
