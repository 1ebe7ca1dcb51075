#include "unit.h"

#include "base/clock.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define ASLEEP_S 100000

/* Children will find that the machine has slept that long. */
static bool pretend_to_have_slept(void)
{
    if (unshare(CLONE_NEWTIME) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) < 0)
        return false;
    int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    bool done = file >= 0 && dprintf(file, "boottime %d 0\n", ASLEEP_S) > 0;
    if (file >= 0)
        close(file);
    return done;
}

/* A lease runs out while its holder's machine sleeps: the clock that it is counted on goes on. */
static void test_clock_counts_the_time_that_the_machine_slept(void **state)
{
    int status;
    (void)state;
    if (!pretend_to_have_slept())
        skip();
    int64_t before_ns = ml_clock_monotonic(ml_clock_real());
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int64_t passed_ns = ml_clock_monotonic(ml_clock_real()) - before_ns;
        _exit(passed_ns >= ASLEEP_S * ML_NS_PER_S ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_clock_seconds_become_ns_or_are_refused(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        int64_t ns;
    } good[] = {
        {0, 0},
        {-0.0, 0},
        {1.5, 1500000000},
        {1e-12, 1},
        {1700000060, INT64_C(1700000060000000000)},
        {9e9, INT64_C(9000000000000000000)},
    };
    static const double bad[] = {-1,        -1e-9,
                                 -1e300,    1e300,
                                 9e9 + 1,   NAN,
                                 -NAN,      INFINITY,
                                 -INFINITY, 9223372036854775807.0,
                                 1e18,      -9223372036854775808.0};
    for (size_t i = 0; i < ML_COUNT(good); i++) {
        int64_t ns = -7;
        assert_true(ml_seconds_to_ns(good[i].seconds, &ns));
        assert_int_equal(ns, good[i].ns);
    }
    for (size_t i = 0; i < ML_COUNT(bad); i++) {
        int64_t ns = -7;
        assert_false(ml_seconds_to_ns(bad[i], &ns));
        assert_int_equal(ns, -7);
    }
}

static void test_clock_time_between_two_instants_never_overflows(void **state)
{
    (void)state;
    assert_int_equal(ml_ns_between(3, 10), 7);
    assert_int_equal(ml_ns_between(10, 3), -7);
    assert_int_equal(ml_ns_between(-1, INT64_MAX), INT64_MAX);
    assert_int_equal(ml_ns_between(1, INT64_MIN), INT64_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_seconds_become_ns_or_are_refused),
        cmocka_unit_test(test_clock_time_between_two_instants_never_overflows),
        cmocka_unit_test(test_clock_counts_the_time_that_the_machine_slept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
