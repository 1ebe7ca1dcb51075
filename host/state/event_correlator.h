/* L4 state, private to the recorder. Limits the number of Events, as client-go's EventCorrelator
 * does. */
#pragma once

#include "base/map.h"

/* What was seen lately. Bounded: the one that was quiet longest is forgotten first. */
struct ml_event_recent {
    struct ml_set by_key; /* in the order of their last use */
};

void ml_event_recent_init(struct ml_event_recent *recent);
void ml_event_recent_fini(struct ml_event_recent *recent);

/* Events that differ only in their notes: when an object has had ten different notes for one reason
 * within ten minutes, further new ones are combined into one (client-go's EventAggregator).
 * At most ML_EVENT_SIMILAR_MAX reasons of objects are remembered. */
#define ML_EVENT_SIMILAR_MAX    1024
#define ML_EVENT_COMBINED_NOTES 10
#define ML_EVENT_COMBINED       "(combined from similar events): "

/* `reason`: object, type and reason. True: this note is to be combined. */
bool ml_event_similar_combines(struct ml_event_recent *similar, struct ml_str reason,
                               struct ml_str note, int64_t now_ns);

/* Limits the Events of an object: a token bucket of 25, refilled by one each five
 * minutes (client-go's EventSourceObjectSpamFilter). At most ML_EVENT_SPAM_OBJECTS are remembered.
 */
#define ML_EVENT_SPAM_OBJECTS 1024

bool ml_event_spam_allows(struct ml_event_recent *spam, struct ml_str object, int64_t now_ns);
