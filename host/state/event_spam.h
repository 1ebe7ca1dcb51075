/* L4 state. How many Events an object may cause: a bucket of 25 that gets one back each five
 * minutes (client-go's EventSourceObjectSpamFilter). Bounded: at most ML_EVENT_SPAM_OBJECTS
 * are remembered; the one that was quiet longest is forgotten first. */
#pragma once

#include "base/list.h"
#include "base/map.h"

#define ML_EVENT_SPAM_OBJECTS 1024

struct ml_event_spam {
    struct ml_map by_object;
    struct ml_list recent; /* oldest first */
};

void ml_event_spam_init(struct ml_event_spam *spam);
void ml_event_spam_fini(struct ml_event_spam *spam);
bool ml_event_spam_allows(struct ml_event_spam *spam, struct ml_str object, int64_t now_ns);
