/* moonloop with all commands. */
#include "cluster/cli/commands.h"

int main(int argc, char **argv)
{
    struct ml_command check = ml_command_check;
    check.run = ml_check_run_with_builtin_kinds;
    const struct ml_command *const commands[] = {
        &ml_command_run,
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
        &ml_command_why,
    };
    return ml_main(commands, ML_COUNT(commands), argc, argv);
}
