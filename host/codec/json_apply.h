/* L1 codec. Server-side apply without the schema of the object: a plan must say its result before
 * the API server does. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends the object `live` with `applied` merged over it, as far as that can be known. `before`:
 * what the same manager applied last (empty: nothing that is known); fields that were in it and are
 * not in `applied` go, all others stay.
 *
 * Lists of objects are merged by the first of the keys that Kubernetes' own kinds have ("name",
 * "key", "type", …) which each of their items has, and no two alike; else item by item, when both
 * have equally many; all other lists are replaced. A list that its schema calls atomic is merged,
 * too: items that nobody applied, which a server would drop, stay. (structured-merge-diff/v6,
 * merge/update.go.)
 *
 * ML_EINVALID: one of them is no JSON object within ML_JSON_DEPTH_MAX. */
ML_NODISCARD int ml_json_apply(struct ml_str live, struct ml_str applied, struct ml_str before,
                               struct ml_buf *out, struct ml_err *err);

/* Called for each field that differs, in the order of `from`, then of `to`. `field`:
 * "spec.replicas", "spec.containers[web].image", "metadata.labels[example.com/at]", "spec.args[1]".
 * Raw values; one that is missing is empty. Valid during the call. */
typedef void ml_json_differs(void *context, struct ml_str field, struct ml_str from,
                             struct ml_str to);

/* Compares two objects that were checked; items of lists are matched as in ml_json_apply. Lists
 * that cannot be matched differ as a whole. */
void ml_json_differences(struct ml_str from, struct ml_str to, ml_json_differs *differs,
                         void *context);
