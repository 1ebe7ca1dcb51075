/* L6 operator. status.conditions, after the API conventions: a list keyed by `type`, in which
 * lastTransitionTime moves only when `status` flips. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* What the host itself sets when a script returns ctx.invalid: Valid=False. */
#define ML_CONDITION_VALID "Valid"

struct ml_condition {
    const char *type;
    const char *status; /* "True", "False", "Unknown" */
    const char *reason;
    struct ml_str message;
};

/* Appends one condition as JSON, without times: ml_conditions_merge puts those in. */
void ml_condition_write(const struct ml_condition *condition, struct ml_buf *out);

/* Appends the array `current` with `wanted` merged in by type; either may be empty. What
 * `wanted` leaves out is filled: reason (the type), message (""), observedGeneration,
 * lastTransitionTime (that of before, unless status flips: then `now_ns`). Order: as it
 * stands, new types behind. ML_EINVALID: a condition without type or status, or more than
 * SCRIPT_CONDITIONS_MAX in `wanted`. */
ML_NODISCARD int ml_conditions_merge(struct ml_str current, struct ml_str wanted, int64_t revision,
                                     int64_t now_ns, struct ml_buf *out, struct ml_err *err);

/* The raw condition of this type in the array, or an empty slice. */
struct ml_str ml_conditions_find(struct ml_str array, struct ml_str type);
