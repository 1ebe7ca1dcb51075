/* L3 kube. The differences between two states of an object, apart from its resourceVersion. */
#pragma once

#include "kube/object.h"

enum ml_object_part {
    ML_PART_SPEC = 1,        /* anything outside of metadata and status */
    ML_PART_GENERATION = 2,  /* metadata.generation; many kinds have none */
    ML_PART_LABELS = 4,      /* metadata.labels */
    ML_PART_ANNOTATIONS = 8, /* metadata.annotations */
    ML_PART_METADATA = 16,   /* the rest of it: finalizers, owners, deletion */
    ML_PART_STATUS = 32,
    ML_PART_ALL = 63,
};

/* One field that differs. */
struct ml_field_change {
    enum ml_object_part part;
    struct ml_str name; /* "metadata.annotations[example.com/at]"; valid during the call */
    uint64_t value;     /* a hash of the new value, ml_hash */
    bool is_list;
    unsigned parts; /* of all fields that differ, as ml_object_diff returns them */
};

/* Takes the next key off the front of such a name: "metadata", "annotations", "example.com/at".
 * `in_brackets` (NULL is fine) says how it was written. */
struct ml_str ml_field_take_key(struct ml_str *name, bool *in_brackets);

typedef void ml_field_change_fn(void *context, const struct ml_field_change *change);

/* Calls `each` for every field that differs, except for metadata.generation. Returns the parts, as
 * ml_object_diff does. A list counts as one field. */
unsigned ml_object_diff_each(const struct ml_object *old, const struct ml_object *new,
                             ml_field_change_fn *each, void *context);

/* The parts that differ, as a sum of enum ml_object_part; all of them when they cannot be
 * compared. `out_fields`, unless NULL, gets the fields by name, at most three: "spec.size,
 * metadata.annotations[example.com/at]". A list counts as one field. */
unsigned ml_object_diff(const struct ml_object *old, const struct ml_object *new,
                        struct ml_buf *out_fields);
