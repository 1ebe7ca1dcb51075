#include "unit.h"

#include "base/clock.h"

#include <fcntl.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_counts_the_time_that_the_machine_slept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
