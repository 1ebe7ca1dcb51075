/* codec, private. Shared by the files yaml*.c: a document as a tree, the meaning of its scalars,
 * and the place of a mistake in it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "codec/json.h"
#include "codec/yaml.h"

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
    bool open;          /* for yaml_json.c: it is being written */
};

/* A document. Nodes are named by their place; 0 names none. */
struct ml_yaml_tree {
    struct ml_yaml_node *nodes;
    size_t len, capacity;
    uint32_t root;                     /* 0: no document */
    struct ml_buf texts;               /* of the nodes; it never moves, and is wiped */
    const struct ml_yaml_watch *watch; /* NULL: nobody */
};

/* yaml_tree.c. Asks who watches whether to go on; `more`: bytes that are held beside the tree. */
ML_NODISCARD int ml_yaml_go_on(const struct ml_yaml_tree *tree, size_t more,
                               struct ml_yaml_fault *fault);

/* yaml_tree.c. Reads the first document; of the tree only `watch` is set. When `out_trailing` is
 * not NULL it gets the line, from 1, of what follows that document, or 0. End the tree in any case.
 */
ML_NODISCARD int ml_yaml_tree_read(struct ml_yaml_tree *tree, struct ml_str text,
                                   size_t *out_trailing, struct ml_yaml_fault *fault);
void ml_yaml_tree_fini(struct ml_yaml_tree *tree);

/* yaml_json.c. Appends the tree as JSON, within `out_max` bytes of `out`; `aliased_max`: what
 * aliases may add. `out_duplicates` is set when a mapping has a key twice. */
ML_NODISCARD int ml_yaml_tree_write(struct ml_yaml_tree *tree, size_t out_max, size_t aliased_max,
                                    struct ml_buf *out, bool *out_duplicates,
                                    struct ml_yaml_fault *fault);

/* yaml_json.c. Appends a line for each key that its mapping has already, in the order in which
 * Kubernetes' reader sees them. For a tree that could be written. */
void ml_yaml_tree_duplicates(const struct ml_yaml_tree *tree, struct ml_buf *out);

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

/* yaml_scalar.c. `binary` is emptied and gets the bytes of a !!binary. */
ML_NODISCARD int ml_yaml_resolve(const struct ml_yaml_node *node, struct ml_buf *binary,
                                 struct ml_yaml_value *out, struct ml_yaml_fault *fault);

/* yaml_scalar.c. A finite number as Go's encoding/json writes it: 1, 0.5, 1e+21. */
void ml_yaml_put_real(struct ml_buf *out, double value);
/* One as a key: in the fewest digits that a float32 is told by; .inf, -.inf, .nan. */
void ml_yaml_put_real_key(struct ml_buf *out, double value);

/* yaml_scalar.c. Appends a node as Go prints it with %#v: for messages. Ends after some hundred
 * bytes. */
void ml_yaml_put_go(struct ml_buf *out, const struct ml_yaml_tree *tree, uint32_t node);

/* yaml_scalar.c. Fills the fault's error; `named_line` is left 0. Returns `kind`. */
int ml_yaml_fail(struct ml_yaml_fault *fault, int kind, const struct ml_yaml_node *node,
                 const char *format, ...) ML_PRINTF(4, 5);

/* The node itself, or what an alias names. */
static inline const struct ml_yaml_node *ml_yaml_named(const struct ml_yaml_tree *tree,
                                                       const struct ml_yaml_node *node)
{
    return node->kind == ML_YAML_ALIAS ? &tree->nodes[node->first] : node;
}

/* Is this key "<<", which merges? */
static inline bool ml_yaml_is_merge(const struct ml_yaml_node *key)
{
    return key->kind == ML_YAML_SCALAR && (key->plain || key->tag == ML_YAML_MERGE) &&
           ml_str_is(key->text, "<<");
}
