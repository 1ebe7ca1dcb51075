/* L8 cli. One function a subcommand, each in a file of its own. They get argv from their own
 * name on and return an exit code (enum moonloop_exit). */
#pragma once

#include "base/err.h"

int ml_command_run(int argc, char **argv);   /* moonloop run */
int ml_command_check(int argc, char **argv); /* moonloop check */
int ml_command_dev(int argc, char **argv);   /* moonloop dev */
int ml_command_test(int argc, char **argv);  /* moonloop test */

/* Prints "moonloop COMMAND: message" to stderr and returns MOONLOOP_EXIT_USAGE. */
int ml_command_usage_error(const char *command, const struct ml_err *err);
