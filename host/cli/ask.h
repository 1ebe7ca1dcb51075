/* L8 cli. Asks a running host the questions that operator/inspect.h answers, for the commands that
 * a person types. The host is one on this machine, or in this pod: its local socket is asked. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Finds the only host of this machine, unless `pid` is one. The caller frees `*out`, its process
 * id. ML_ENOT_FOUND: none runs here. ML_EINVALID: several do. */
ML_NODISCARD int ml_ask_find(const char *pid, char **out, struct ml_err *err);

/* Sends GET `path`, and appends the answer, which is a JSON object, to `out`; blocks for 10 s at
 * most. ML_ENOT_FOUND: no such host. ML_EFORBIDDEN: it is another user's. ML_EIO: no answer. */
ML_NODISCARD int ml_ask(const char *pid, struct ml_str path, struct ml_buf *out,
                        struct ml_err *err);
