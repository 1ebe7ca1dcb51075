/* L3 kube. Fields that the server does not keep as they are sent: the schema does not have them, or
 * fills in a default, or quantities and numbers have one form there. A patch that differs from the
 * object in nothing else would be sent at each run, and change nothing.
 *
 * A field is known for ten minutes, as the schema may change. At most 1,000 are, with paths of up
 * to 512 bytes. */
#pragma once

#include "base/budget.h"
#include "base/buf.h"
#include "base/map.h"

struct ml_unkept {
    struct ml_budget *budget; /* what is known is charged to it; NULL: to nobody */
    struct ml_map fields;     /* private; owns them */
    size_t told;              /* private */
};

void ml_unkept_fini(struct ml_unkept *unkept); /* zeros and a budget are an empty one */

/* A merge patch, and the object that it is for. */
struct ml_unkept_patch {
    const char *root;   /* begins the paths: "status" */
    struct ml_str kept; /* JSON of the object, or of the part, as the server has it; may be empty */
    struct ml_str sent; /* the patch of it */
    bool built_in;      /* a type of Kubernetes' own: it leaves out fields for their values alone */
    int64_t now_ns;     /* monotonic */
};

/* Would the server keep nothing of the patch? As far as it is known. */
bool ml_unkept_covers(const struct ml_unkept *unkept, const struct ml_unkept_patch *patch);

/* Where fields are named. */
struct ml_unkept_names {
    const char *except;     /* a field that is not named, or NULL */
    struct ml_buf left_out; /* "status.phse, status.items[].sise": the schema does not have them */
    struct ml_buf changed;  /* they have another value */
};

/* The answer to the patch has come, with `kept`. Names the fields that were not named before, at
 * most five of each sort, and a hundred in all. `names` may be NULL; the caller frees its buffers.
 */
void ml_unkept_learn(struct ml_unkept *unkept, const struct ml_unkept_patch *patch,
                     struct ml_unkept_names *names);
