/* L3 kube. Label and field selectors, in the grammar of the API server (apimachinery,
 * pkg/labels/selector.go, pkg/fields/selector.go): so that the script is refused, not the list
 * request later. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* "app=web,tier in (a, b),!old". ML_EINVALID with the wrong requirement and the problem. */
ML_NODISCARD int ml_label_selector_check(struct ml_str selector, struct ml_err *err);

/* "spec.nodeName=n1,status.phase!=Failed". Only the server knows which fields a kind has. */
ML_NODISCARD int ml_field_selector_check(struct ml_str selector, struct ml_err *err);

/* Can an object have this label? (The value may be empty.) */
bool ml_label_valid(struct ml_str key, struct ml_str value);

/* Does it select an object with these labels (a JSON object, or empty)? `selector` passed the
 * check. The empty one selects all. If not, `out_missed` is the first requirement that is not met,
 * a slice of it. */
bool ml_label_selector_matches(struct ml_str selector, struct ml_str labels,
                               struct ml_str *out_missed);
