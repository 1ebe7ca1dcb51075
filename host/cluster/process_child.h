/* cluster. What a process that the host forks for itself (the warden, the node of pods' network)
 * sheds of the host's. */
#pragma once

/* Closes all descriptors but standard error and `socket`, wipes the environment, which a container
 * could read, gives all signals their default, and leaves the terminal. `name` is its name in lists
 * of processes. */
void process_child_begin(int socket, const char *name);
