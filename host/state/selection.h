/* L4 state. What of a kind is watched: all of it, or less. The server does the selecting. */
#pragma once

#include "kube/kind.h"
#include "kube/object.h"

struct ml_selection {
    struct ml_str labels; /* a label selector; empty: all */
    struct ml_str fields; /* a field selector; empty: all */
    bool metadata_only;   /* of each object no more than its metadata */
};

bool ml_selection_eq(const struct ml_selection *a, const struct ml_selection *b);

/* Are there objects of the kind that it leaves out? */
bool ml_selection_is_part(const struct ml_selection *selection);

/* Makes an object of what the server sent, in whole or, when no more is selected, of its metadata
 * alone (a server that knows no PartialObjectMetadata sends whole ones). As ml_object_new. */
ML_NODISCARD int ml_selection_object(const struct ml_selection *selection, struct ml_dict *dict,
                                     const struct ml_kind *kind, struct ml_str json,
                                     struct ml_object **out, struct ml_err *err);
