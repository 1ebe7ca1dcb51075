/* YAML to JSON: one document, or those of a file.
 *
 * Rules: apimachinery/pkg/util/yaml/decoder.go (what kubectl takes for a document). */
#include "codec/yaml.h"

#include "codec/yaml_internal.h"

#define SEPARATOR "---"

/* The bytes that aliases may add, beyond the length of the text itself. Honest documents stay far
 * below; a few aliases that each double the one before would fill any memory. */
#define ALIASED_BYTES_MAX ((size_t)1024 * 1024)

/* `watch`, `out_trailing` and `duplicates` may be NULL. */
static int convert(struct ml_str text, size_t json_max, const struct ml_yaml_watch *watch,
                   struct ml_buf *out, size_t *out_trailing, struct ml_buf *duplicates,
                   struct ml_yaml_fault *fault)
{
    struct ml_yaml_tree tree = {.watch = watch};
    size_t len_before = out->len;
    size_t out_max = len_before + ML_MIN(json_max, SIZE_MAX / 2);
    bool twice = false;
    int r = ml_yaml_tree_read(&tree, text, out_trailing, fault);
    if (r == 0)
        r = ml_yaml_tree_write(&tree, out_max, text.len + ALIASED_BYTES_MAX, out, &twice, fault);
    if (r == 0 && twice && duplicates)
        ml_yaml_tree_duplicates(&tree, duplicates);
    ml_yaml_tree_fini(&tree);
    if (r < 0) {
        out->len = len_before;
        out->failed = false;
    }
    return r;
}

int ml_yaml_document(struct ml_str text, size_t json_max, struct ml_buf *out,
                     struct ml_buf *duplicates, struct ml_err *err)
{
    struct ml_yaml_fault fault = {.err = err};
    int r = convert(text, json_max, NULL, out, NULL, duplicates, &fault);
    if (r == 0 || fault.of_json)
        return r;
    if (fault.named_line)
        return ml_err_wrap(err, "yaml: line %zu", fault.named_line);
    return ml_err_wrap(err, "yaml");
}

/* ---- the documents of a file ---- */

/* Moves on by `len` bytes. */
static void advance(struct ml_yaml_stream *stream, size_t len)
{
    const char *end = stream->rest.ptr + len;
    for (const char *at = stream->rest.ptr; (at = memchr(at, '\n', (size_t)(end - at)));) {
        stream->rest_line++;
        if (++at == end)
            break;
    }
    stream->rest = (struct ml_str){end, stream->rest.len - len};
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void ml_yaml_stream_init(struct ml_yaml_stream *stream, struct ml_str text)
{
    *stream = (struct ml_yaml_stream){.line = 1, .rest = text, .rest_line = 1};
    if (!text.ptr)
        stream->rest = ML_STR("");
    size_t at = 0;
    while (at < text.len && is_space(text.ptr[at]))
        at++;
    stream->is_json = at < text.len && text.ptr[at] == '{';
}

static size_t line_len(struct ml_str text)
{
    const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
    return end ? (size_t)(end - text.ptr) + 1 : text.len;
}

/* The length of what stands before the next separator but on the first line. */
static size_t chunk_len(struct ml_str text)
{
    size_t len = line_len(text);
    while (len < text.len) {
        struct ml_str rest = {text.ptr + len, text.len - len};
        if (ml_str_starts(rest, SEPARATOR))
            break;
        len += line_len(rest);
    }
    return len;
}

/* Only a comment may stand behind a separator. */
static bool is_wrong_separator(struct ml_str line)
{
    if (!ml_str_starts(line, SEPARATOR))
        return false;
    struct ml_str behind = ml_str_trim((struct ml_str){line.ptr + 3, line.len - 3});
    return behind.len > 0 && behind.ptr[0] != '#';
}

static int refuse_separator(struct ml_yaml_stream *stream, struct ml_str line, struct ml_err *err)
{
    struct ml_str behind = ml_str_trim((struct ml_str){line.ptr + 3, line.len - 3});
    return ml_err_set(err, ML_EINVALID, "line %zu: invalid Yaml document separator: " ML_STR_FMT,
                      stream->line, ML_STR_ARG(ml_str_head(behind, 100)));
}

/* Takes what JSON there is at once. Returns 1, or 0 when there is none. */
static int next_json(struct ml_yaml_stream *stream, size_t json_max, struct ml_buf *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, stream->rest, 0);
    struct ml_str raw = ml_json_skip(&reader);
    size_t start = out->len;
    if (raw.len == 0 || raw.ptr[0] != '{' || raw.len > json_max || !ml_buf_append_str(out, raw))
        return 0;
    for (char *at = out->ptr + start; at < out->ptr + out->len; at++)
        if (*at == '\n' || *at == '\r') /* never inside a string */
            *at = ' ';
    advance(stream, (size_t)(raw.ptr - stream->rest.ptr));
    stream->line = stream->rest_line;
    advance(stream, raw.len);
    return 1;
}

/* Skips white space, up to a line end. */
static void skip_space(struct ml_yaml_stream *stream)
{
    size_t len = 0;
    while (len < stream->rest.len && is_space(stream->rest.ptr[len]) &&
           stream->rest.ptr[len] != '\n')
        len++;
    if (len < stream->rest.len && stream->rest.ptr[len] == '\n')
        advance(stream, len + 1);
}

static int next_yaml(struct ml_yaml_stream *stream, size_t json_max, struct ml_buf *out,
                     struct ml_err *err)
{
    struct ml_yaml_fault fault = {.err = err};
    struct ml_str chunk = {stream->rest.ptr, chunk_len(stream->rest)};
    struct ml_str first = {chunk.ptr, line_len(chunk)};
    size_t start = out->len, trailing = 0;
    stream->line = stream->rest_line;
    advance(stream, chunk.len);
    if (stream->rest.len > 0 &&
        !is_wrong_separator((struct ml_str){stream->rest.ptr, line_len(stream->rest)}))
        advance(stream, line_len(stream->rest));
    if (is_wrong_separator(first))
        return refuse_separator(stream, first, err);
    int r = convert(chunk, json_max, stream->watch, out, &trailing, NULL, &fault);
    if (r < 0)
        return ml_err_wrap(err, "line %zu", stream->line - 1 + ML_MAX(fault.line, (size_t)1));
    if (trailing)
        stream->trailing_line = stream->line - 1 + trailing;
    if (ml_str_is((struct ml_str){out->ptr + start, out->len - start}, "null")) {
        out->len = start;
        return 0;
    }
    return 1;
}

int ml_yaml_stream_next(struct ml_yaml_stream *stream, size_t json_max, struct ml_buf *out,
                        struct ml_err *err)
{
    int r = 0;
    if (stream->trailing_line) {
        stream->line = stream->trailing_line;
        stream->trailing_line = 0;
        return ml_err_set(err, ML_EINVALID,
                          "line %zu: kubectl does not read what follows a document without a line "
                          "\"---\"; add one",
                          stream->line);
    }
    if (stream->is_json && next_json(stream, json_max, out))
        return 1;
    if (stream->is_json)
        skip_space(stream);
    stream->is_json = false;
    while (r == 0 && stream->rest.len > 0 && !stream->trailing_line)
        r = next_yaml(stream, json_max, out, err);
    return r == 0 && stream->trailing_line ? ml_yaml_stream_next(stream, json_max, out, err) : r;
}

int ml_yaml_to_json(struct ml_str text, size_t json_max, struct ml_buf *out, struct ml_err *err)
{
    struct ml_yaml_stream stream;
    size_t start = out->len;
    int r;
    ml_yaml_stream_init(&stream, text);
    while ((r = ml_yaml_stream_next(&stream, json_max - (out->len - start), out, err)) > 0)
        if (out->len - start >= json_max || !ml_buf_putc(out, '\n')) {
            r = ml_err_set(err, ML_ELIMIT, "line %zu: as JSON the text becomes too large",
                           stream.line);
            break;
        }
    if (r < 0)
        out->len = start;
    return r;
}
