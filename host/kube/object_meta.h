/* L3 kube. What the host reads off an object's JSON: the metadata, and where in the text it
 * stands. Private to object.c. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* A string of the object: its text, and `raw` where the same bytes stand in the JSON (between
 * the quotes); raw.ptr is NULL when they are written with escapes there, or not there. */
struct ml_object_string {
    struct ml_str text;
    struct ml_str raw;
};

struct ml_object_meta {
    struct ml_object_string name, ns, uid, rv;
    int64_t generation;
    bool deleting;
    bool has_api_version, has_kind;

    bool has_owner; /* one with controller: true */
    struct ml_object_string owner_name, owner_uid;
    struct ml_str owner_api_version, owner_kind;

    struct ml_str managed_fields; /* the whole member, with one comma; or ptr NULL */
    struct ml_buf unescaped;      /* backs texts that were written with escapes */
};

/* Checks the whole text and fills `meta`, whose slices point into `json` and into itself.
 * ML_EINVALID as ml_object_new says. To be ended with fini in either case. */
ML_NODISCARD int ml_object_meta_read(struct ml_str json, struct ml_object_meta *meta,
                                     struct ml_err *err);
void ml_object_meta_fini(struct ml_object_meta *meta);
