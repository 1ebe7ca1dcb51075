/* L6 operator. A change of an object, as a watch brings it. */
#pragma once

#include "state/informer.h"

/* Objects as in ml_listener, borrowed. */
struct ml_change {
    const struct ml_informer *informer;
    struct ml_object *old, *new;
    bool reconciled;    /* it is the key's own object, not a related one */
    bool child_deleted; /* a child of the key was deleted */
    uint64_t number;    /* ml_informer_changes when it came */
};

static inline const struct ml_object *ml_change_object(const struct ml_change *change)
{
    return change->new ? change->new : change->old;
}

/* A copy that holds the objects, until ml_change_unref. */
static inline struct ml_change ml_change_ref(const struct ml_change *change)
{
    if (change->old)
        ml_object_ref(change->old);
    if (change->new)
        ml_object_ref(change->new);
    return *change;
}

static inline void ml_change_unref(const struct ml_change *copy)
{
    ml_object_unref(copy->old);
    ml_object_unref(copy->new);
}
