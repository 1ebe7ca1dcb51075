/* moonloop with all commands. */
#include "base/escape.h"
#include "cluster/cli/commands.h"
#include "cluster/host/tester.h"

#include <stdio.h>

/* Without a process for them, tests are not run; the host says so. */
static int run_with_tests(void *values, char **argv, struct ml_err *err)
{
    (void)argv;
    struct ml_tester *tester = ml_tester_new(err);
    if (!tester)
        ml_print_line(stderr, "moonloop run: %s", err->message);
    int code = ml_run_run(values, tester);
    ml_tester_free(tester);
    return code;
}

int main(int argc, char **argv)
{
    struct ml_command check = ml_command_check, run = ml_command_run;
    check.run = ml_check_run_with_builtin_kinds;
    run.run = run_with_tests;
    const struct ml_command *const commands[] = {
        &run,
        &ml_command_dev,
        &ml_command_test,
        &ml_command_rbac,
        &ml_command_types,
        &ml_command_manifests,
        &check,
        &ml_command_plan,
        &ml_command_snapshot,
        &ml_command_rollback,
        &ml_command_pause,
        &ml_command_retry,
        &ml_command_status,
        &ml_command_top,
        &ml_command_why,
        &ml_command_trace,
    };
    return ml_main(commands, ML_COUNT(commands), argc, argv);
}
