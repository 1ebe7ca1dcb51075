/* L3 kube. metadata.finalizers of an object: whether it has one, and the patch that adds or removes
 * one. The server ignores no finalizer, and keeps their order; so do these. */
#pragma once

#include "kube/object.h"

bool ml_finalizers_have(const struct ml_object *object, struct ml_str finalizer);
/* Has it one of these? The list ends with NULL. */
bool ml_finalizers_have_any(const struct ml_object *object, const char *const *finalizers);

/* Appends a JSON merge patch of the whole list, which adds `finalizer` at its end or removes it;
 * entries of others stay. Entries of `former`, a list that ends with NULL, or NULL, go in any
 * case. Preconditions: the object's uid, and `rv`, the resourceVersion of this list. */
void ml_finalizers_patch(const struct ml_object *object, struct ml_str rv, struct ml_str finalizer,
                         const char *const *former, bool add, struct ml_buf *out);
