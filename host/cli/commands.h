/* L8 cli. One function for each subcommand, each in its own file. Its argv[0] is the name of the
 * subcommand; it returns an exit code (enum moonloop_exit). */
#pragma once

#include "base/err.h"

int ml_command_run(int argc, char **argv);       /* moonloop run */
int ml_command_check(int argc, char **argv);     /* moonloop check */
int ml_command_dev(int argc, char **argv);       /* moonloop dev */
int ml_command_test(int argc, char **argv);      /* moonloop test */
int ml_command_rbac(int argc, char **argv);      /* moonloop rbac */
int ml_command_types(int argc, char **argv);     /* moonloop types */
int ml_command_manifests(int argc, char **argv); /* moonloop manifests */

/* Prints "moonloop COMMAND: message" to stderr and returns MOONLOOP_EXIT_USAGE. */
int ml_command_usage_error(const char *command, const struct ml_err *err);
