/* How the codec benchmarks measure: the best of several rounds, each long enough to be timed,
 * in MB/s and as a part of what plain memcpy does on the same text at the same time. */
#pragma once

#include "base/clock.h"
#include "base/str.h"

#include <stdio.h>

#define BENCH_ROUNDS   7
#define BENCH_ROUND_NS (50 * ML_NS_PER_MS)

/* A function to measure: it goes over all of `text` once; returns something that depends on it. */
typedef size_t bench_run(void *context, struct ml_str text);

static inline double bench_mb_per_s(bench_run *run, void *context, struct ml_str text)
{
    struct ml_clock *clock = ml_clock_real();
    double best = 0;
    volatile size_t sink = 0;
    for (int round = 0; round < BENCH_ROUNDS; round++) {
        int64_t start = ml_clock_monotonic(clock), took;
        size_t times = 0;
        do {
            sink += run(context, text);
            times++;
            took = ml_clock_monotonic(clock) - start;
        } while (took < BENCH_ROUND_NS);
        double rate = (double)(text.len * times) / (double)took * 1e9 / 1e6;
        best = rate > best ? rate : best;
    }
    return best;
}

static inline void bench_print(const char *name, double rate, double memcpy_rate)
{
    printf("  %-28s %9.0f MB/s  %6.3f of memcpy\n", name, rate, rate / memcpy_rate);
}
