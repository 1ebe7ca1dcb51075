/* L4 state, private to the recorder. The text of an Event (events.k8s.io/v1). */
#pragma once

#include "state/recorder.h"

/* What an Event has beside what it tells. */
struct ml_event_frame {
    const char *ns, *name; /* of the Event itself */
    const char *controller, *instance;
    int64_t wall_ns;
    bool combined; /* stands for similar ones */
};

char *ml_event_json(const struct ml_event *event, const struct ml_event_frame *frame);

/* What an Event's name begins with: the object's name, where that is a DNS subdomain, which an
 * Event's has to be; RBAC's names need not be. */
struct ml_str ml_event_name_prefix(struct ml_str name);
