#include "seeds.h"

#include "base/base.h"
#include "base/str.h"

#include <stdio.h>

static uint64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t value = 0;
    if (text && *text && !ml_str_to_u64(ml_str_of(text), &value)) {
        fprintf(stderr, "%s=%s: expected a whole number\n", variable, text);
        exit(2);
    }
    return value;
}

size_t faults_each_seed(const char *row, size_t count, void (*fn)(uint64_t seed))
{
    uint64_t only = number_of("FAULT_SEED"), many = number_of("FAULT_SEEDS");
    uint64_t first = only ? only : 1, last = only ? only : many ? many : count;
    for (uint64_t seed = first; seed <= last; seed++) {
        printf("%s: seed %llu; again: make faults ARGS=%s FAULT_SEED=%llu\n", row,
               (unsigned long long)seed, row, (unsigned long long)seed);
        fn(seed);
    }
    return (size_t)(last - first + 1);
}
