/* L1 codec. The members of one JSON object as a table: in the text's order, found by key; of
 * duplicate keys the last value counts, in the place of the first. And spans: where each object and
 * array of a text ends, for work that goes down level by level. A reader that knows the spans skips
 * an object or array in one step. Without them the innermost value would be read once for each
 * level above it. */
#pragma once

#include "base/map.h"
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

/* The spans of a text that was checked, within ML_JSON_DEPTH_MAX and 4 GiB. Start with {0}; fini.
 */
void ml_json_spans_read(struct ml_json_spans *spans, struct ml_str json);
void ml_json_spans_fini(struct ml_json_spans *spans);

/* Gives the spans to a new reader of a part of that text: it then skips objects and arrays in one
 * step. If the part is an object or array, it is number `span`. */
void ml_json_reader_use(struct ml_json_reader *reader, const struct ml_json_spans *spans,
                        size_t span);

/* For a reader that knows the spans, with the first token of an object or array current. Its raw
 * text and its number: */
struct ml_str ml_json_opened(const struct ml_json_reader *reader, size_t *out_span);
/* Skips the rest of it in one step; the next token is the one behind its end. */
void ml_json_leave(struct ml_json_reader *reader);

struct ml_json_member {
    struct ml_str key;   /* unescaped */
    struct ml_str value; /* raw */
    size_t span;         /* of a value that is an object or array, when spans are known */
    char *key_owned;     /* private: the bytes of a key that had escapes, else NULL */
};

struct ml_json_members {
    struct ml_json_member *items;
    size_t len;

    /* Private. */
    size_t capacity;
    struct ml_map index; /* key to place + 1; only once there are more than a few */
};

/* Adds the members of the object `raw`, which must outlive them. False, with `err` filled, when
 * it is not an object or is broken. Start with {0}; fini either way. */
ML_NODISCARD bool ml_json_members_read(struct ml_json_members *members, struct ml_str raw,
                                       size_t depth_max, struct ml_err *err);
/* The same of object number `span` of a text whose spans are known (NULL: they are not). */
ML_NODISCARD bool ml_json_members_read_span(struct ml_json_members *members, struct ml_str raw,
                                            const struct ml_json_spans *spans, size_t span,
                                            struct ml_err *err);
void ml_json_members_fini(struct ml_json_members *members);

struct ml_json_member *ml_json_members_find(const struct ml_json_members *members,
                                            struct ml_str key); /* NULL when absent */

/* The values that another object has for the keys of these members, raw and in their order, into
 * `values`; empty: it has none. For an object with many members, when few are wanted.
 * False: it is no object, or it is broken. */
ML_NODISCARD bool ml_json_members_values(const struct ml_json_members *members,
                                         struct ml_str object, struct ml_str *values);
