/* L1 codec. JSON that arrives in pieces: the items of a list response and the lines of a
 * watch, each passed on as soon as it is complete, so that a page or a stream is never held as a
 * whole. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* A list response, {"kind":…,"apiVersion":…,"metadata":{…},"items":[…]}, keys in any order. */
struct ml_json_list;

struct ml_json_list_handler {
    /* One element of "items", raw, only valid during the call. It is balanced and within the
     * size limit, but not otherwise checked: a bad one must not spoil its neighbours.
     * A non-zero result stops the feed, which returns it. */
    int (*item)(void *context, struct ml_str raw, struct ml_err *err);
    void *context;
};

/* `item_max`: bytes of one item, and of all that is not items together. */
struct ml_json_list *ml_json_list_new(const struct ml_json_list_handler *handler, size_t item_max);
void ml_json_list_free(struct ml_json_list *list);

/* Reads the next piece, cut anywhere. ML_EINVALID: not JSON. ML_ELIMIT: an item too large. */
ML_NODISCARD int ml_json_list_feed(struct ml_json_list *list, struct ml_str piece,
                                   struct ml_err *err);

/* To be called at the end. ML_EINVALID when the document is not complete. `out_envelope` is
 * the document without its items ({"kind":…,"metadata":{…},"items":[]}), valid until free. */
ML_NODISCARD int ml_json_list_finish(struct ml_json_list *list, struct ml_str *out_envelope,
                                     struct ml_err *err);

/* Lines: splits at '\n' (a JSON string never holds a raw one), skips empty lines. */
struct ml_json_lines { /* private */
    struct ml_buf pending;
    bool taken; /* `pending` is the line that was taken last */
};

void ml_json_lines_init(struct ml_json_lines *lines, size_t line_max);
void ml_json_lines_fini(struct ml_json_lines *lines);

/* Takes the next whole line off the piece: 1, and `out_line` is valid as long as the piece and
 * until the next call. 0: the piece is used up, and its rest waits for the next one; at the end of
 * the stream it is an incomplete event, and fini drops it. ML_ELIMIT: line too long. */
ML_NODISCARD int ml_json_lines_next(struct ml_json_lines *lines, struct ml_str *piece,
                                    struct ml_str *out_line, struct ml_err *err);
