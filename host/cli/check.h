/* L8 cli. The way by which a binary that knows the fields of kinds checks them in `moonloop check`.
 */
#pragma once

#include "cli/command.h"
#include "operator/load.h"

/* A read of a field that its kind does not have, with the line that is printed for it. */
typedef void ml_wrong_read(void *context, const char *file, const char *text);

/* Calls `wrong` for each such read in the files for which `used` is true. `crd_paths`: manifests
 * with the kinds that are not built in. */
typedef int ml_find_wrong_reads(const struct ml_files *files, const bool *used,
                                const struct ml_option_list *crd_paths, ml_wrong_read *wrong,
                                void *context, struct ml_err *err);

/* Runs the command. `values` are its own; `find` NULL: no fields are checked. */
int ml_check_run(void *values, ml_find_wrong_reads *find, struct ml_err *err);
