/* cluster. Folders in memory that the containers of a pod share, each with a size of its own. They
 * are mounted in a mount namespace of the pod's, and its containers are made in there: they have
 * them at the paths of folders of the machine. Nobody else sees them, and no rights are needed. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

struct ml_memory_folder {
    const char *path; /* an existing folder of the machine, absolute: a container has it there */
    uint64_t bytes;   /* that its files may have together; 0: half of the machine's memory */
    mode_t mode;      /* up to 07777 */
};

/* Makes the folders, empty; waits for it, some milliseconds. `*out_fd` stands for them: they live
 * as long as the descriptor, or a process that was started with it; the caller closes it.
 * `network`: the namespace that the pod's containers are in (pod_network.h); -1: the machine's.
 * ML_EIO, with the reason: the machine does not allow it. */
ML_NODISCARD int ml_memory_folders_new(const struct ml_memory_folder *folders, size_t count,
                                       int network, int *out_fd, struct ml_err *err);
