/* L5 script, private. What ctx.list is asked for: its options, checked, and which cached objects
 * they select. ctx_read.c asks; what is not cached the server selects. */
#pragma once

#include "script/ctx.h"
#include "script/index.h"

/* A label, or a field by its path: "spec.nodeName". */
struct list_term {
    struct ml_str key, value;
};

struct list_filter {
    struct ml_str ns; /* empty: all namespaces */
    bool owned;
    const struct list_term *labels,
        *fields; /* userdata on the stack, with what holds the strings */
    size_t label_count, field_count;
    const struct script_index *index; /* NULL: none */
    struct ml_str key;                /* of the index */
};

/* [-0, +several] Checks the options at stack index 2. What the filter points to is on the stack. */
ML_RAISES struct list_filter list_filter_check(lua_State *L, const struct ctx_kind *kind);

/* Does the object have all labels and fields? */
bool list_filter_matches(const struct list_filter *filter, struct ml_str json);

/* A lookup reads the set of objects, and of each what decides whether it matches. Returns the node
 * of the members. */
read_node list_filter_note_reads(struct script_reads *reads, const struct ctx_kind *kind,
                                 const struct list_filter *filter);

/* The URL of the request, in script->overlay. Raises when it is too long. */
ML_RAISES const char *list_filter_path(lua_State *L, const struct ctx_kind *kind,
                                       const struct list_filter *filter);
