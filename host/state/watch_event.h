/* L4 state. One line of a watch: {"type":"MODIFIED","object":{…}}. Only strings and brackets are
 * parsed: an object with invalid JSON inside (not UTF-8, a broken escape) or too deep nesting still
 * has a type, a name and a version, and does not affect other events. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum watch_event_type {
    WATCH_ADDED,
    WATCH_MODIFIED,
    WATCH_DELETED,
    WATCH_BOOKMARK,
    WATCH_ERROR,
    WATCH_UNKNOWN, /* a type of a newer server: skipped, its version still counts */
};

struct watch_event {
    enum watch_event_type type;
    struct ml_str object; /* raw and balanced, not otherwise checked */
};

/* ML_EINVALID when the line is not such an event. Slices point into `line`. */
ML_NODISCARD int watch_event_parse(struct ml_str line, struct watch_event *out, struct ml_err *err);

/* Is the line a Status instead of an event? The server sends one when it fails after the headers.
 */
bool watch_event_is_status(struct ml_str line);

/* Is this the bookmark after the last initial event (KEP-3157)? */
bool watch_event_ends_initial(struct ml_str object);

/* metadata.resourceVersion of a raw object, as text that the caller frees; NULL without one. */
char *watch_event_version(struct ml_str object);

/* "namespace/name" of a raw object as far as it can be read; the caller frees it. Never NULL,
 * maybe empty. For objects that cannot be parsed as a whole. */
char *watch_event_key(struct ml_str object);
