/* L1 codec. YAML (libyaml) to the same values as JSON. Plain scalars by the YAML 1.2 core
 * schema: `yes`, `on`, `0o7` as text says there, `1_000` is a string; quoted scalars are
 * strings; a tag !!str, !!int, !!float, !!bool, !!null is honoured, any other refused. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends the documents of `text`, each as JSON and each followed by '\n'; empty documents are
 * left out. Anchors and aliases are resolved; aliases may add 1 MiB plus the length of the text (no
 * "billion laughs"), a document may have 10,000 anchors. Merge keys "<<" are
 * plain keys, duplicate keys, non-string keys of collections and depth beyond ML_JSON_DEPTH_MAX are
 * refused. Numbers as keys become their text. ML_EINVALID with "line N: what"; ML_ELIMIT for too
 * many aliases and for more than `json_max` bytes of output. */
ML_NODISCARD int ml_yaml_to_json(struct ml_str text, size_t json_max, struct ml_buf *out,
                                 struct ml_err *err);
