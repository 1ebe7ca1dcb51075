/* L8 cli. Reads the answers of a host (operator/inspect.h), and makes text of them for a person:
 * for why.c, and for top.c, which shows what `why` prints. An answer may be anything: a member that
 * is not there, or is of another type, is empty. */
#pragma once

#include "base/buf.h"
#include "codec/json.h"

/* Steps through the values of a list. Zeros: before the first. */
struct ml_answer_items {
    struct ml_json_reader reader; /* initialized at the first call */
    bool begun;
};

/* `list`: the same at each call; `out` is a part of it. False at the end, and for what is no list.
 */
bool ml_answer_items_next(struct ml_answer_items *items, struct ml_str list, struct ml_str *out);
void ml_answer_items_fini(struct ml_answer_items *items);

/* A member that is a list, as JSON; "[]" when there is none. */
struct ml_str ml_answer_list(struct ml_str answer, const char *key);

/* A member as text, a number too; else `otherwise`. The caller frees it. Not escaped. */
char *ml_answer_text(struct ml_str object, const char *key, const char *otherwise);

/* Appends the controllers of an answer to /status or /top as a table, with a line of headings. */
void ml_status_append_controllers(struct ml_str answer, struct ml_buf *out);

/* May it stand in the path of a question, as the name of a kind, an object or a controller? */
bool ml_answer_is_name(const char *text);

/* The path of the question why; NULL: these are no names. The caller frees it. `name`: "a", or
 * "default/a". */
char *ml_why_path(const char *kind, const char *name);

/* Appends the answer to that question as lines for a person (ml_append_line). */
void ml_why_append(struct ml_str answer, struct ml_buf *out);
