/* cluster. A process that the host forks for itself: the supervisor of local processes
 * (process_supervisor.c), and the netns helper of the pods' network (pod_network.c). It first sheds
 * all that it has from the host; then the two pass descriptors to each other. */
#pragma once

#include <sys/types.h>

#include "base/base.h"

#define PROCESS_CHILD_FDS_MAX 7 /* descriptors of one message */

/* Closes all descriptors but standard error and `socket`, wipes the environment, which a container
 * could read, gives all signals their default, and leaves the terminal. `name` is its name in lists
 * of processes. */
void process_child_begin(int socket, const char *name);

/* Writes a file of the kernel. False and errno. */
bool process_child_write(const char *path, const char *text);
/* In a user namespace that the caller has just made: gives the one user who is in there, the
 * host's, these numbers. False and errno. */
bool process_child_map_ids(uint32_t user, uint32_t group, uid_t own_user, gid_t own_group);

/* Sends `len` bytes with `count` descriptors, which stay open here. False and errno: the other side
 * has gone. */
bool process_child_send(int socket, const void *bytes, size_t len, const int *fds, size_t count);
/* Receives up to `len` bytes, and up to PROCESS_CHILD_FDS_MAX descriptors that came with them; more
 * are closed. `flags` as of recvmsg. Returns as recv. */
ssize_t process_child_receive(int socket, void *bytes, size_t len, int fds[PROCESS_CHILD_FDS_MAX],
                              size_t *count, int flags);
