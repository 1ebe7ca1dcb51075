/* L1 codec, private. Where each object and array of a text ends. A reader that knows goes past one
 * in a step; without it, work that goes down level by level reads the innermost as often as it is
 * deep. */
#pragma once

#include "codec/json.h"

struct ml_json_span {
    uint32_t end;  /* behind its last bracket, from the start of the text */
    uint32_t next; /* the first that begins behind it */
};

struct ml_json_spans {
    const char *text;
    struct ml_json_span *items; /* in the order in which they begin */
    size_t len;

    /* Private. */
    size_t capacity;
};

/* Of a text that was checked, within ML_JSON_DEPTH_MAX and 4 GiB. Start with {0}; fini. */
void ml_json_spans_read(struct ml_json_spans *spans, struct ml_str json);
void ml_json_spans_fini(struct ml_json_spans *spans);

/* The reader, just made, is for a part of that text; what it skips it passes over in a step. When
 * the part is an object or array it is number `span`. */
void ml_json_reader_use(struct ml_json_reader *reader, const struct ml_json_spans *spans,
                        size_t span);
