/* What every C unit test starts with: cmocka and the headers it asks for. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/str.h"

/* CPU time of this thread: what a test measures, as a busy machine does not change it. */
static inline int64_t unit_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * ML_NS_PER_S + now.tv_nsec;
}

/* Prints both sides when they differ. */
static inline void assert_str_eq(struct ml_str got, const char *want)
{
    char *text = ml_str_dup(got);
    assert_string_equal(text, want);
    free(text);
}
