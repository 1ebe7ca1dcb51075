/* cluster. A check whether somebody listens. */
#pragma once

#include "base/err.h"
#include "net/loop.h"

struct ml_tcp_check;

/* Connects with `fd`, an unbound socket that it takes over, or -1 for one of its own, to an address
 * ("127.0.0.1", "::1"; no names, so that nothing blocks), closes the connection at once, and calls
 * `done` once, from the loop: with NULL when it worked, else ML_ENETWORK, or ML_ETIMEOUT after
 * `timeout_ns`. ML_EINVALID: no address. The check is gone when done() returns. */
ML_NODISCARD int ml_tcp_check_start(struct ml_loop *loop, int fd, const char *address,
                                    uint16_t port, int64_t timeout_ns,
                                    void (*done)(void *context, const struct ml_err *err),
                                    void *context, struct ml_tcp_check **out, struct ml_err *err);
void ml_tcp_check_free(struct ml_tcp_check *check); /* done() does not come */
