/* L4 state. Which objects of a kind are watched: all, or those that selectors match. The server
 * selects. */
#pragma once

#include "kube/kind.h"
#include "kube/object.h"

struct ml_selection {
    struct ml_str labels; /* a label selector; empty: all */
    struct ml_str fields; /* a field selector; empty: all */
    bool metadata_only;   /* only the metadata of each object */
};

bool ml_selection_eq(const struct ml_selection *a, const struct ml_selection *b);

/* Are there objects of the kind that it leaves out? */
bool ml_selection_is_part(const struct ml_selection *selection);

/* Makes an object of what the server sent; of its metadata alone when only that is selected (a
 * server without PartialObjectMetadata sends whole objects). As ml_object_new. */
ML_NODISCARD int ml_selection_object(const struct ml_selection *selection, struct ml_dict *dict,
                                     const struct ml_kind *kind, struct ml_str json,
                                     struct ml_object **out, struct ml_err *err);
