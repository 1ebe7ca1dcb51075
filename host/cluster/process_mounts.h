/* cluster. The volumes of a container, and what else is mounted at a path of its root. In order:
 * open, prepare, attach. What cannot be done is in `report`. */
#pragma once

#include "cluster/process_internal.h"

/* The folders of the machine that hold programs, as far as it has them; ends with NULL. */
extern const char *const process_machine_folders[];

struct process_mounts {
    const struct ml_process_container *container;
    int *trees;    /* of each mount: a copy of its source that is mounted nowhere yet; -1: none */
    bool *folders; /* of each mount: is the source a folder? */
};

/* Takes hold of the sources, while the machine's files are there. */
ML_NODISCARD bool process_mounts_open(struct process_mounts *mounts,
                                      const struct ml_process_container *container,
                                      struct process_report *report);
/* Makes missing targets in folders of the machine: in their upper layers, which are in ./upper and
 * not part of an overlay yet. */
ML_NODISCARD bool process_mounts_prepare(const struct process_mounts *mounts,
                                         struct process_report *report);
/* Mounts all below `root`; other targets are made there. */
ML_NODISCARD bool process_mounts_attach(struct process_mounts *mounts, const char *root,
                                        struct process_report *report);
void process_mounts_fini(struct process_mounts *mounts);

/* A copy of what is mounted at `path`, with all that is mounted below it, or -1 and errno. */
int process_mount_clone(int base, const char *path, bool read_only);
bool process_mount_attach(int tree, int base, const char *target);
