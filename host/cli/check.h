/* L8 cli. The way by which a binary that knows the built-in kinds tells `moonloop check` of them.
 */
#pragma once

#include "cli/command.h"
#include "operator/load.h"
#include "script/analysis.h"

/* Gives the analysis, which wants kinds, the schemas of the built-in ones among them, and all
 * built-in kinds that there are. */
typedef int ml_give_builtin_kinds(struct ml_analysis *analysis, struct ml_err *err);

/* Runs the command. `values` are its own; `give` NULL: this binary knows no built-in kinds, and
 * says nothing of their fields. */
int ml_check_run(void *values, ml_give_builtin_kinds *give, struct ml_err *err);
