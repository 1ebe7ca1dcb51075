/* L1 codec. Compares two JSON values, merges them (JSON Merge Patch, RFC 7386), and writes what
 * turns one into the other as a patch (RFC 7386, or JSON Patch, RFC 6902). */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Equal as values: key order does not matter; 1 equals neither 1.0 nor "1". Broken text equals
 * nothing. */
bool ml_json_equal(struct ml_str a, struct ml_str b);

/* Appends to `out` the object `target` with `patch` merged over it: a null in the patch
 * removes, objects merge, all else replaces. An empty `target` counts as {}. Keys keep the
 * target's order, new ones follow in the patch's. */
ML_NODISCARD int ml_json_merge(struct ml_str target, struct ml_str patch, struct ml_buf *out,
                               struct ml_err *err);

/* Appends the smallest merge patch that turns `from` into `to` (both objects); "{}" when they
 * are equal. A key missing in `to` becomes null; a null in `to` counts as missing, since a
 * merge patch has no other way to say it. */
ML_NODISCARD int ml_json_merge_diff(struct ml_str from, struct ml_str to, struct ml_buf *out,
                                    struct ml_err *err);

/* The same for texts that were checked before, within ML_JSON_DEPTH_MAX. */
ML_NODISCARD int ml_json_merge_diff_checked(struct ml_str from, struct ml_str to,
                                            struct ml_buf *out, struct ml_err *err);

#define ML_JSON_PATCH_DEPTH_MAX 8 /* levels of objects that are compared; below: as a whole */

/* JSON Patch, what a mutating webhook answers with. Appends the operations that turn `from` into
 * `to`, both objects that were checked: remove, replace and add, of members; arrays as a whole.
 * "[]" when they are equal. */
ML_NODISCARD int ml_json_patch_diff(struct ml_str from, struct ml_str to, struct ml_buf *out,
                                    struct ml_err *err);
