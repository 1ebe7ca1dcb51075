/* moonloop as the image has it. cluster/cli/main.c is the program with all commands. */
#include "cli/command.h"

static const struct ml_command *const commands[] = {
    &ml_command_run,      &ml_command_check, &ml_command_plan,  &ml_command_snapshot,
    &ml_command_rollback, &ml_command_pause, &ml_command_retry, &ml_command_status,
    &ml_command_top,      &ml_command_why,   &ml_command_trace,
};

int main(int argc, char **argv)
{
    return ml_main(commands, ML_COUNT(commands), argc, argv);
}
