/* L6 operator. Computes the patch of an object's status from the result of a reconcile.
 *
 * status.conditions follow the API conventions: a list keyed by `type`, in which lastTransitionTime
 * moves only when `status` flips (apimachinery, pkg/api/meta/conditions.go).
 *
 * The host shows by the condition `Reconciled` on an object that its last reconcile failed. It is
 * False after ctx.invalid, ctx.terminal and errors, and while finalize is not done, with the reason
 * that the Event has, and True again once a reconcile was good. An object whose reconciles were
 * all good does not have it, and costs no write. Its message begins with "CONTROLLER: ": of two
 * controllers of one kind each takes back only its own message, and is silent about the other's. */
#pragma once

#include "kube/object.h"

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

#define ML_CONDITION_RECONCILED "Reconciled"

/* How a reconcile ended. */
struct ml_reconciled {
    const char *controller;
    const char *const
        *formerly;       /* names that it had, up to NULL: what these said is its own, too */
    const char *failure; /* the reason, in CamelCase; NULL: it was good */
    const char *message; /* of the failure; one line */
};

/* Does status.conditions say that a reconcile of this controller failed, or of one of `formerly`?
 */
bool ml_reconciled_failed(struct ml_str conditions, const char *controller,
                          const char *const *formerly);
/* Does the object say so? */
bool ml_object_says_failed(const struct ml_object *object, const char *controller,
                           const char *const *formerly);

/* Merges `status` (a JSON object, or empty) over the status of `object`, conditions by their type,
 * and then the condition of `reconciled` (NULL: none). Appends a merge patch, with uid and
 * resourceVersion as preconditions, to `out_patch`; appends nothing when there is no difference.
 * ML_ESCRIPT: the script's status is not an object, or a condition is broken. */
ML_NODISCARD int ml_status_patch(struct ml_object *object, struct ml_str status,
                                 const struct ml_reconciled *reconciled, int64_t now_ns,
                                 struct ml_buf *out_patch, struct ml_err *err);

/* Writes the patch of the object's status to `out`, with that version as its precondition instead
 * of the one that it was made with, and returns that. */
struct ml_str ml_status_patch_renew(const struct ml_object *object, const char *version,
                                    struct ml_str patch, struct ml_buf *out);
