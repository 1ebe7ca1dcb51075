/* L4 state. Events that differ in their words only: when an object has had ten different notes for
 * one reason within ten minutes, further new ones are told as one (client-go's EventAggregator).
 * Bounded: at most ML_EVENT_SIMILAR_MAX reasons of objects are remembered; the one that was quiet
 * longest is forgotten first. */
#pragma once

#include "base/list.h"
#include "base/map.h"

#define ML_EVENT_SIMILAR_MAX    1024
#define ML_EVENT_COMBINED_NOTES 10
#define ML_EVENT_COMBINED       "(combined from similar events): "

struct ml_event_similar {
    struct ml_map by_reason;
    struct ml_list recent; /* oldest first */
};

void ml_event_similar_init(struct ml_event_similar *similar);
void ml_event_similar_fini(struct ml_event_similar *similar);
/* `reason`: object, type and reason. True: this note is one of too many. */
bool ml_event_similar_combines(struct ml_event_similar *similar, struct ml_str reason,
                               struct ml_str note, int64_t now_ns);
