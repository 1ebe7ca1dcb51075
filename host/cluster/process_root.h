/* cluster. The root of a container: the machine's tools, to be read; its volumes; /proc, /sys and
 * /dev as containers have them; all else is empty, its own, and gone with it.
 *
 * The folders of the machine that hold programs are the lower layers of overlays. What a container
 * writes there stays in the upper layers, in memory, as does all that it writes outside of its
 * volumes. Homes, /var, /run, /tmp and unknown folders of the machine are not visible. */
#pragma once

#include "cluster/process_internal.h"

/* Makes it and enters it. The caller is in user, mount and pid namespaces of its own. What cannot
 * be done is in `report`. With `has_terminal` the first terminal that is opened in it is its
 * console as well. Linux 5.12. */
ML_NODISCARD bool process_root_enter(const struct ml_process_container *container,
                                     bool has_terminal, struct process_report *report);
