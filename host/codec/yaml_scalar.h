/* L1 codec, private. YAML scalars to JSON: the core schema of YAML 1.2 (section 10.3.2). */
#pragma once

#include "base/buf.h"

/* What a tag may ask for; YAML_ANY leaves it to the schema. */
enum ml_yaml_type {
    ML_YAML_ANY,
    ML_YAML_STRING,
    ML_YAML_NULL,
    ML_YAML_BOOL,
    ML_YAML_INT,
    ML_YAML_FLOAT,
};

/* Appends the scalar `text` as JSON. NULL, or what is wrong with it. A full buffer is left for
 * the caller to notice. */
ML_NODISCARD const char *ml_yaml_scalar(struct ml_str text, enum ml_yaml_type type,
                                        struct ml_buf *out);
