/* L6 operator. Computes the patch of an object's status from the result of a reconcile. */
#pragma once

#include "kube/object.h"
#include "script/script.h"

/* Merges result->status over the status of `object` (conditions by their type), and sets the
 * condition Valid: False for an INVALID outcome, back to True once the object is valid. Appends a
 * merge patch, with uid and resourceVersion as preconditions, to `out_patch`; appends nothing when
 * there is no difference. ML_ESCRIPT: the script's status is not an object, or a condition is
 * broken. */
ML_NODISCARD int ml_status_patch(struct ml_object *object, const struct ml_result *result,
                                 int64_t now_ns, struct ml_buf *out_patch, struct ml_err *err);

/* status.conditions, by the API conventions: a list keyed by `type`, in which lastTransitionTime
 * moves only when `status` flips.
 *
 * Appends the array `current` with `wanted` merged in by type; either may be empty. Fields
 * missing in `wanted` are filled: reason (the type), message (""), observedGeneration,
 * lastTransitionTime (the former one, unless status flips: then `now_ns`). The order does not
 * change; new types come last. ML_EINVALID: a condition without type or status, or more than
 * SCRIPT_CONDITIONS_MAX in `wanted`. */
ML_NODISCARD int ml_conditions_merge(struct ml_str current, struct ml_str wanted,
                                     int64_t generation, int64_t now_ns, struct ml_buf *out,
                                     struct ml_err *err);

/* The raw condition of this type in the array, or an empty slice. */
struct ml_str ml_conditions_find(struct ml_str array, struct ml_str type);
