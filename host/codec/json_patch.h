/* L1 codec. JSON Patch (RFC 6902): what a mutating webhook answers with. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define ML_JSON_PATCH_DEPTH_MAX 8 /* levels of objects that are compared; below: as a whole */

/* Appends the operations that turn `from` into `to`, both objects that were checked: remove,
 * replace and add, of members; arrays as a whole. "[]" when they are equal. */
ML_NODISCARD int ml_json_patch_diff(struct ml_str from, struct ml_str to, struct ml_buf *out,
                                    struct ml_err *err);
