/* L6 operator. From what a reconcile returned to what has to be written to the object's status:
 * the difference, or nothing. */
#pragma once

#include "kube/object.h"
#include "script/script.h"

/* Merges result->status over the status of `object` (conditions by their type), and sets the
 * condition Valid: False for an INVALID outcome, back to True once that is mended. Appends a
 * merge patch, guarded by uid and resourceVersion, to `out_patch`; appends nothing when there
 * is no difference. ML_ESCRIPT: the script's status is no object, or a condition is broken. */
ML_NODISCARD int ml_status_patch(struct ml_object *object, const struct ml_result *result,
                                 int64_t now_ns, struct ml_buf *out_patch, struct ml_err *err);
