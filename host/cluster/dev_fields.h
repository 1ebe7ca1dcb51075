/* cluster. Fields that scripts read and that their kinds do not have, in the log of `moonloop dev`.
 */
#pragma once

#include "cluster/trusted.h"

/* Logs what the scripts at these paths (NULL ends them) read wrongly by the kinds that the embedded
 * API server serves now, each once for a text. `trusted` is the server's. ML_ESCRIPT. */
ML_NODISCARD int ml_dev_fields_log(struct ml_trusted *trusted, const char *const *paths,
                                   struct ml_log *log, struct ml_err *err);
