/* L1 codec. JSON, the one form of values in the host: YAML becomes JSON, a cached object is JSON,
 * a Lua value is written as JSON. No tree is built: a reader scans the text, a writer appends to
 * it.
 *
 * Lossless: integers that fit int64 stay exact, other numbers keep their text, key order and
 * the difference between [] and {} are the text's own. Strict (RFC 8259): no trailing comma,
 * no comment, no NaN, well-formed UTF-8, one value and nothing after it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define ML_JSON_DEPTH_MAX 128 /* the limit for scripts; the API server's own limit is 10000 */

enum ml_json_token {
    ML_JSON_END,    /* the value is over and nothing follows it */
    ML_JSON_ERROR,  /* not JSON, or too deep; stays so; see ml_json_error */
    ML_JSON_OBJECT, /* { */
    ML_JSON_OBJECT_END,
    ML_JSON_ARRAY, /* [ */
    ML_JSON_ARRAY_END,
    ML_JSON_KEY,    /* text: the key, unescaped; its value comes next */
    ML_JSON_STRING, /* text: unescaped, any code point, U+0000 too */
    ML_JSON_INT,    /* integer; text: as written */
    ML_JSON_REAL,   /* real: nearest double, always finite; text: as written */
    ML_JSON_NUMBER, /* whole number beyond int64, or a real beyond double: only text */
    ML_JSON_TRUE,
    ML_JSON_FALSE,
    ML_JSON_NULL,
};

struct ml_json_reader {
    /* The current token, set by ml_json_next. `text` is valid until the next call. */
    enum ml_json_token token;
    struct ml_str text;
    int64_t integer;
    double real;
    size_t depth; /* of open objects and arrays */

    /* Private. */
    struct ml_str json;
    size_t at;
    size_t depth_max;
    uint8_t expect;
    uint64_t *in_object; /* one bit a level */
    uint64_t in_object_small[4];
    struct ml_buf unescaped;
    const char *problem;
    const struct ml_json_spans *spans; /* NULL: not known where things end (json_members.h) */
    size_t span;                       /* the next object or array */
};

/* `json` is borrowed until fini. depth_max 0 means ML_JSON_DEPTH_MAX. */
void ml_json_reader_init(struct ml_json_reader *reader, struct ml_str json, size_t depth_max);
void ml_json_reader_fini(struct ml_json_reader *reader);
enum ml_json_token ml_json_next(struct ml_json_reader *reader);

/* Passes over the value that comes next (after a KEY, inside an array, or at the start) and
 * returns its raw text, checked like everything else; `token` is then the value's first, any
 * number counting as NUMBER. An empty slice on error, and when no value comes next: at the end
 * of an array or of the text `token` says so, as after ml_json_next. Works at any depth up to
 * depth_max without recursion. */
struct ml_str ml_json_skip(struct ml_json_reader *reader);

/* Fills `err` with ML_EINVALID and "at byte N: what is wrong"; for a reader at ERROR. */
int ml_json_error(const struct ml_json_reader *reader, struct ml_err *err);

/* 0 when the whole slice is one JSON value within depth_max. */
ML_NODISCARD int ml_json_check(struct ml_str json, size_t depth_max, struct ml_err *err);

/* Finds a value by a path of keys and array indexes: ml_json_find(json, &raw, "metadata",
 * "ownerReferences", "0", "uid", NULL). False when it is not there or the text is broken
 * before it. The result points into `json`. Of duplicate keys the last counts. */
__attribute__((sentinel)) bool ml_json_find(struct ml_str json, struct ml_str *out_raw, ...);

/* Finds several members of an object in one pass, each as ml_json_find does; `raw` is empty when it
 * is not there. */
struct ml_json_wanted {
    const char *name;
    struct ml_str raw;
};
void ml_json_find_members(struct ml_str object, struct ml_json_wanted *wanted, size_t count);

/* Appends the string `raw`, unescaped, to `out`. False when it is not a string. */
bool ml_json_to_string(struct ml_str raw, struct ml_buf *out);

/* The same as a terminated copy that the caller frees; NULL when it is absent or not a string. */
__attribute__((sentinel)) char *ml_json_find_string(struct ml_str json, ...);

/* Appends JSON to a buffer, putting commas and colons itself. Check buf->failed at the end. */
struct ml_json_writer {
    struct ml_buf *out;
    bool comma; /* private */
};

void ml_json_writer_init(struct ml_json_writer *writer, struct ml_buf *out);
void ml_json_begin_object(struct ml_json_writer *writer);
void ml_json_end_object(struct ml_json_writer *writer);
void ml_json_begin_array(struct ml_json_writer *writer);
void ml_json_end_array(struct ml_json_writer *writer);
void ml_json_key(struct ml_json_writer *writer, struct ml_str key);
void ml_json_string(struct ml_json_writer *writer, struct ml_str text); /* ml_escape_json */
void ml_json_int(struct ml_json_writer *writer, int64_t value);
void ml_json_real(struct ml_json_writer *writer, double value); /* shortest that reads back
                                                                   the same; keeps ".0"; must be
                                                                   finite */
void ml_json_bool(struct ml_json_writer *writer, bool value);
void ml_json_null(struct ml_json_writer *writer);
void ml_json_raw(struct ml_json_writer *writer, struct ml_str json); /* a value's text, trusted */

/* Key and value at once, `key` a C string. */
void ml_json_put_string(struct ml_json_writer *writer, const char *key, struct ml_str text);
void ml_json_put_int(struct ml_json_writer *writer, const char *key, int64_t value);
void ml_json_put_bool(struct ml_json_writer *writer, const char *key, bool value);
void ml_json_put_raw(struct ml_json_writer *writer, const char *key, struct ml_str json);
