/* L6 operator. The first question to the API server: is it there, and does it take our credentials?
 * What cannot get better by itself is told at once; what can is asked again for a while. */
#pragma once

#include "kube/client.h"

struct ml_connect;

/* `version` is the server's ("v1.36.3"), or NULL with the error that stays. */
typedef void ml_connect_done(void *context, const char *version, const struct ml_err *err);

/* `patience_ns`: how long refused connections and overload are tried again. */
struct ml_connect *ml_connect_start(struct ml_client *client, struct ml_loop *loop,
                                    struct ml_log *log, int64_t patience_ns, ml_connect_done *done,
                                    void *context);
/* What a person can do about the error that stayed, to stand behind its message: "; …", or "" when
 * the message says so itself. */
const char *ml_connect_advice(const struct ml_err *err);
void ml_connect_free(struct ml_connect *connect); /* also cancels; NULL is fine */
