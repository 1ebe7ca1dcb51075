/* L3 kube. metadata.finalizers of an object: whether it has one, and the patch that adds or removes
 * one. The server ignores no finalizer, and keeps their order; so do these. */
#pragma once

#include "kube/object.h"

bool ml_finalizers_have(const struct ml_object *object, struct ml_str finalizer);

/* Appends a JSON merge patch of the whole list, which adds `finalizer` at its end or removes it;
 * what others put there stays. Preconditions: the object's uid, and `rv`, the resourceVersion of
 * this list. */
void ml_finalizers_patch(const struct ml_object *object, struct ml_str rv, struct ml_str finalizer,
                         bool add, struct ml_buf *out);
