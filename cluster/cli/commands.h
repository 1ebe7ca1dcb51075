/* The commands that the image does not have. */
#pragma once

#include "cli/command.h"

extern const struct ml_command ml_command_dev;
extern const struct ml_command ml_command_test;
extern const struct ml_command ml_command_rbac;
extern const struct ml_command ml_command_types;
extern const struct ml_command ml_command_manifests;

/* `moonloop check`, with the built-in kinds. */
int ml_check_run_with_builtin_kinds(void *values, char **argv, struct ml_err *err);
