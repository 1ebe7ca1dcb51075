/* L6 operator. What a person has to know about an object, told where they look: an Event of type
 * Warning on it. */
#pragma once

#include "state/cluster.h"

/* `reason` in CamelCase; `note` is cut as ml_event says. */
void ml_object_warning(struct ml_cluster *cluster, const struct ml_kind *kind,
                       const struct ml_object *object, const char *reason, const char *note);
