/* cluster. Containers: processes in user, mount, pid, ipc and uts namespaces of their own, with the
 * root of process_root.h. No rights of the machine's are needed, and none are had there: the user
 * that they see is the host's user, under another number.
 *
 * The first process of a container is an init: it starts the command, passes signals on, reaps
 * orphans, and ends with the command. The kernel then kills all that is left in the container. */
#pragma once

#include "cluster/process_internal.h"
#include "cluster/process_request.h"

/* Starts a container from its keeper, whose child it becomes. Its init reports over the pipe
 * `reports` whether it has started or failed, and then how the command has ended. -1 and errno. */
pid_t process_container_start(const struct process_request *request,
                              const struct process_stdio *stdio, const int reports[2]);
/* Starts a command in the container of the process `request->beside`; the caller's child as well.
 * A failure goes to `reports`, which a successful start closes. -1: it failed. */
pid_t process_container_join(const struct process_request *request,
                             const struct process_stdio *stdio, const int reports[2]);
