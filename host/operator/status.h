/* L6 operator. Computes the patch of an object's status from the result of a reconcile. */
#pragma once

#include "kube/object.h"
#include "operator/reconciled.h"

/* Merges `status` (a JSON object, or empty) over the status of `object`, conditions by their type,
 * and then the condition of `reconciled` (NULL: none). Appends a merge patch, with uid and
 * resourceVersion as preconditions, to `out_patch`; appends nothing when there is no difference.
 * ML_ESCRIPT: the script's status is not an object, or a condition is broken. */
ML_NODISCARD int ml_status_patch(struct ml_object *object, struct ml_str status,
                                 const struct ml_reconciled *reconciled, int64_t now_ns,
                                 struct ml_buf *out_patch, struct ml_err *err);
