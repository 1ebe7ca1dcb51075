/* L2 net. Sockets between processes of one user on one machine: in the kernel's abstract namespace,
 * so that no file is needed and none is left. */
#pragma once

#include "base/err.h"

#define ML_LOCAL_NAME_MAX 100 /* bytes */

/* Listens under this name. The socket is non-blocking and close-on-exec; the caller closes it.
 * ML_EIO: the name is taken, or has more bytes than ML_LOCAL_NAME_MAX. */
ML_NODISCARD int ml_local_listen(const char *name, int *out_fd, struct ml_err *err);
/* Connects to it; the socket blocks, for 10 s at most each time. ML_ENOT_FOUND: nobody listens.
 * ML_EFORBIDDEN: the listener is a process of another user. */
ML_NODISCARD int ml_local_connect(const char *name, int *out_fd, struct ml_err *err);

/* Is the other side a process of this user, or of root? False for a socket of another kind. */
bool ml_local_is_trusted(int fd);
