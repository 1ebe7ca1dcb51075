/* L1 codec. JSON to YAML, and YAML (libyaml) to JSON, as kubectl and kube-apiserver read it:
 * scalars, merge keys, tags and keys have the meaning that sigs.k8s.io/yaml gives them
 * (docs/decisions/0011-yaml.md), so that a manifest means the same here and there. `0644` is 420,
 * `1_000` is 1000, `yes`, `on` and `y` are true, `<<` merges, `!!binary` is decoded, an unknown tag
 * says nothing. Times stay text.
 *
 * Limits, of one document: ML_JSON_DEPTH_MAX levels, 10,000 anchors, 100 directives; what aliases
 * add has at most 1 MiB and the length of the text, and at most the share of the whole that
 * Kubernetes' reader allows (no "billion laughs"). */
#pragma once

#include "base/buf.h"
#include "base/err.h"

/* Appends the first document of `text` as JSON, "null" when there is none; the keys of a mapping
 * are sorted, as Go's encoder does. It ignores the text behind that document.
 *
 * A key that a mapping has twice counts where it stands last. When `duplicates` is not NULL, a line
 * "line 3: key \"a\" already set in map" is appended to it for each key that is there already,
 * 1,000 at most, as Kubernetes' strict reader words it.
 *
 * ML_EINVALID in the words of kube-apiserver, "yaml: line 2: did not find expected …", whose line
 * is at times the one before. ML_ELIMIT for too many aliases, and for more than `json_max` bytes.
 * `out` is as it was then. */
ML_NODISCARD int ml_yaml_document(struct ml_str text, size_t json_max, struct ml_buf *out,
                                  struct ml_buf *duplicates, struct ml_err *err);

/* Charges somebody for the reading or writing of a text: its author and the caller may take no more
 * than their share. `go_on` is asked for each document and node, with the bytes of memory that the
 * work holds beside its result; false ends it with ML_ELIMIT. */
struct ml_yaml_watch {
    bool (*go_on)(void *context, size_t held);
    void *context;
};

/* The documents of a file, as kubectl finds them: a line that begins with "---" ends one, and only
 * a comment may follow on it; JSON objects may follow each other without. */
struct ml_yaml_stream {
    size_t line;                       /* where the document given last begins, from 1 */
    const struct ml_yaml_watch *watch; /* to be set after init; NULL: nobody */

    /* Private. */
    struct ml_str rest;
    size_t rest_line;
    size_t trailing_line; /* of what follows that document without "---"; 0: nothing does */
    bool is_json;         /* so far */
};

/* `text` is borrowed as long as the stream is used. Nothing needs to be freed. */
void ml_yaml_stream_init(struct ml_yaml_stream *stream, struct ml_str text);

/* Appends the next document as JSON, without a line end in it. Documents that are empty or null are
 * passed over. Returns 1, or 0 when there are no more, or ML_EINVALID or ML_ELIMIT with "line N:
 * what", N counted from the stream's first line, and `out` as it was: go on, the documents behind
 * are not affected. Text behind a document without a line "---" is refused, because kubectl drops
 * it silently. */
ML_NODISCARD int ml_yaml_stream_next(struct ml_yaml_stream *stream, size_t json_max,
                                     struct ml_buf *out, struct ml_err *err);

/* Appends all documents of a stream, each followed by '\n'. The first that is refused refuses all.
 * Errors as those of ml_yaml_stream_next; `json_max` holds for all together. */
ML_NODISCARD int ml_yaml_to_json(struct ml_str text, size_t json_max, struct ml_buf *out,
                                 struct ml_err *err);

enum ml_yaml_style {
    ML_YAML_SENTENCES, /* "bin/app -v" stands without quotes, and a text of several lines is a block
                        */
    ML_YAML_WORDS,     /* all texts but single words are quoted, and numbers keep their text */
};

/* Appends a JSON value as YAML in block style, with a line end; the keys of an object keep their
 * order. `watch` NULL: nobody. ML_EINVALID: it is no JSON, or, in the style of sentences, has a
 * number that is none of int64 or double. ML_ELIMIT: `out` is full. On failure a part of the text
 * has been appended. */
ML_NODISCARD int ml_yaml_write(struct ml_str json, enum ml_yaml_style style,
                               const struct ml_yaml_watch *watch, struct ml_buf *out,
                               struct ml_err *err);
