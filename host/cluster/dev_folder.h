/* cluster. A folder of its own for the files of one `moonloop dev`, in $TMPDIR or /tmp, mode 0700.
 */
#pragma once

#include "base/err.h"

struct ml_dev_folder {
    char *path; /* NULL: there is none */
    int lock;   /* another process that can lock it knows that this one has ended */
};

/* Makes it, and removes the folders of processes that were killed before they could. `folder` must
 * be zero, and be removed after an error, too. ML_EIO. */
ML_NODISCARD int ml_dev_folder_make(struct ml_dev_folder *folder, struct ml_err *err);
/* Removes it with all that is in it. */
void ml_dev_folder_remove(struct ml_dev_folder *folder);
