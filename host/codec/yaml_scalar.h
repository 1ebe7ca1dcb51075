/* codec, private. The values of YAML's scalars, and the place of a mistake in a document. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Where something is wrong. */
struct ml_yaml_fault {
    struct ml_err *err; /* the mistake, without a line */
    size_t line;        /* from 1 */
    size_t named_line;  /* the one that Kubernetes' reader names; 0: none */
    bool of_json;       /* seen when the values become JSON; its message does not say "yaml:" */
};

enum ml_yaml_kind { ML_YAML_SCALAR, ML_YAML_SEQUENCE, ML_YAML_MAPPING, ML_YAML_ALIAS };

enum ml_yaml_tag {
    ML_YAML_UNTAGGED,
    ML_YAML_STR,
    ML_YAML_BOOL,
    ML_YAML_INT,
    ML_YAML_FLOAT,
    ML_YAML_NULL,
    ML_YAML_TIMESTAMP,
    ML_YAML_BINARY,
    ML_YAML_MERGE,
    ML_YAML_OTHER, /* any that Kubernetes' reader does not know */
};

struct ml_yaml_node {
    struct ml_str text; /* of a scalar; of an alias its name */
    uint32_t first;     /* child; of an alias the node that it names */
    uint32_t next;      /* beside it; the children of a mapping are keys and values in turn */
    uint32_t line;      /* from 0 */
    uint8_t kind;       /* enum ml_yaml_kind */
    uint8_t tag;        /* enum ml_yaml_tag; those of collections say nothing */
    bool plain;         /* without quotes and tag */
    bool open;          /* it is being written */
};

/* The value of a scalar. */
struct ml_yaml_value {
    enum {
        ML_YAML_IS_NULL,
        ML_YAML_IS_BOOL,
        ML_YAML_IS_INT,
        ML_YAML_IS_NATURAL, /* beyond int64 */
        ML_YAML_IS_REAL,    /* infinities and NaN among them */
        ML_YAML_IS_TEXT,
    } type;
    bool truth;
    int64_t integer;
    uint64_t natural;
    double real;
    struct ml_str text; /* of the node, or of `binary` */
};

/* `binary` is emptied and gets the bytes of a !!binary. */
ML_NODISCARD int ml_yaml_resolve(const struct ml_yaml_node *node, struct ml_buf *binary,
                                 struct ml_yaml_value *out, struct ml_yaml_fault *fault);

/* A number as a key: in the fewest digits that a float32 is told by; .inf, -.inf, .nan. */
void ml_yaml_put_real_key(struct ml_buf *out, double value);

/* Fills the fault's error; `named_line` is left 0. Returns `kind`. */
int ml_yaml_fail(struct ml_yaml_fault *fault, int kind, const struct ml_yaml_node *node,
                 const char *format, ...) ML_PRINTF(4, 5);
