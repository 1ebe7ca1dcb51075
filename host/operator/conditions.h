/* L6 operator. status.conditions, by the API conventions: a list keyed by `type`, in which
 * lastTransitionTime moves only when `status` flips (apimachinery, pkg/api/meta/conditions.go). */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends the array `current` with `wanted` merged in by type; either may be empty. Fields
 * missing in `wanted` are filled: reason (the type), message (""), observedGeneration,
 * lastTransitionTime (the former one, unless status flips: then `now_ns`). The order does not
 * change; new types come last. A condition whose status is null is removed. ML_EINVALID: a
 * condition without type or status, or more than SCRIPT_CONDITIONS_MAX in `wanted`. */
ML_NODISCARD int ml_conditions_merge(struct ml_str current, struct ml_str wanted,
                                     int64_t generation, int64_t now_ns, struct ml_buf *out,
                                     struct ml_err *err);

/* The raw condition of this type in the array, or an empty slice. */
struct ml_str ml_conditions_find(struct ml_str array, struct ml_str type);
