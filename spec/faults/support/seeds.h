/* Seeds for the C programs of spec/faults, as bench.lua has them for Lua. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Calls `fn` with each seed: $FAULT_SEED alone when it is set, else 1 to $FAULT_SEEDS, else 1 to
 * `count`. Prints each before it is tried: the last one printed is how to have a failure again.
 * Returns how many there were. */
size_t faults_each_seed(const char *row, size_t count, void (*fn)(uint64_t seed));
