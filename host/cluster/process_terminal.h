/* cluster. The terminal of a started process: opened by itself, so that in a container it is one of
 * the container's own. */
#pragma once

#include "cluster/process_internal.h"
#include "cluster/process_request.h"

/* Makes a new terminal the controlling one of this session and its standard input, output and
 * error, and sends its upper end over `socket` to the host. The caller leads the session. False and
 * errno: it has none. */
bool process_terminal_open(const struct process_request *request, int socket);
