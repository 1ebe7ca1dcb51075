/* L6 operator. The first request to the API server: is it there, and does it accept our
 * credentials? Transient errors are retried for a while; all others are final at once. */
#pragma once

#include "kube/client.h"

struct ml_connect;

/* `version` is the server's ("v1.36.3"), or NULL with the final error. */
typedef void ml_connect_done(void *context, const char *version, const struct ml_err *err);

/* `patience_ns`: for how long transient errors are retried. `done` comes later from the loop, never
 * inside this call. */
struct ml_connect *ml_connect_start(struct ml_client *client, struct ml_loop *loop,
                                    struct ml_log *log, int64_t patience_ns, ml_connect_done *done,
                                    void *context);
/* What a person can do about the final error, to be appended to its message: "; …", or "". */
const char *ml_connect_advice(const struct ml_err *err);
void ml_connect_free(struct ml_connect *connect); /* also cancels; NULL is fine */
