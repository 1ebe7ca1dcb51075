/* L1 codec, private to yaml.c. A scalar of YAML as JSON. */
#pragma once

#include "base/buf.h"

/* What a tag may ask for; SCALAR_ANY leaves it to the schema. */
enum scalar_kind {
    SCALAR_ANY,
    SCALAR_STRING,
    SCALAR_NULL,
    SCALAR_BOOL,
    SCALAR_INT,
    SCALAR_FLOAT,
};

/* Appends the scalar `text` as JSON. NULL, or what is wrong with it. A full buffer is left for
 * the caller to notice. */
const char *ml_yaml_scalar(struct ml_str text, enum scalar_kind type, struct ml_buf *out);
