/* Any bytes as YAML, read to the end, and again until the watcher has had enough. The result is
 * JSON within its limits, one value a line. Read as YAML it is the same again (JSON is YAML, but
 * for the length libyaml grants a key); only the float -0 is an integer then. So is the YAML that
 * is written from it. */
#include "codec/json.h"
#include "codec/yaml.h"

#define JSON_MAX 16384

/* `json` is in the reader's own form. */
static void check_written(struct ml_str json, enum ml_yaml_style style)
{
    struct ml_err err;
    struct ml_buf yaml = ML_BUF_INIT, again = ML_BUF_INIT;
    int r = ml_yaml_write(json, style, NULL, &yaml, &err);
    ml_assert(r == 0 || (r == ML_EINVALID && style == ML_YAML_SENTENCES));
    if (r == 0 && !memmem(json.ptr, json.len, "-0", 2)) {
        ml_assert(ml_yaml_document(ml_buf_str(&yaml), JSON_MAX, &again, NULL, &err) == 0);
        ml_assert(again.len == json.len && memcmp(again.ptr, json.ptr, json.len) == 0);
    }
    ml_buf_fini(&yaml);
    ml_buf_fini(&again);
}

static void check_lines(struct ml_str text)
{
    struct ml_err err;
    while (text.len > 0) {
        struct ml_str line = ml_str_cut(&text, '\n');
        ml_assert(ml_json_check(line, 0, &err) == 0);
        struct ml_buf again = ML_BUF_INIT;
        bool has_minus_zero = line.len && memmem(line.ptr, line.len, "-0", 2);
        if (ml_yaml_to_json(line, JSON_MAX, &again, &err) == 0 && !has_minus_zero) {
            ml_assert(again.len == line.len + 1);
            ml_assert(memcmp(again.ptr, line.ptr, line.len) == 0);
        }
        ml_buf_clear(&again);
        if (ml_yaml_document(line, JSON_MAX, &again, NULL, &err) == 0) {
            check_written(ml_buf_str(&again), ML_YAML_SENTENCES);
            check_written(ml_buf_str(&again), ML_YAML_WORDS);
        }
        ml_buf_fini(&again);
    }
}

static bool goes_on(void *context, size_t held)
{
    size_t *left = context;
    ml_assert(held > 0);
    return (*left)-- > 0;
}

/* Ends somewhere, which the bytes decide. */
static void read_some(struct ml_str text)
{
    size_t left = text.len ? (unsigned char)text.ptr[text.len / 2] : 0;
    const struct ml_yaml_watch watch = {goes_on, &left};
    struct ml_yaml_stream stream;
    struct ml_buf out = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    ml_yaml_stream_init(&stream, text);
    stream.watch = &watch;
    int r = ml_yaml_stream_next(&stream, JSON_MAX, &out, &err);
    ml_assert(r > 0 ? out.len > 0 : out.len == 0);
    ml_assert(left != SIZE_MAX || r == ML_ELIMIT);
    ml_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ml_err err = ML_ERR_INIT;
    struct ml_buf out = ML_BUF_INIT;
    int r = ml_yaml_to_json((struct ml_str){(const char *)data, size}, JSON_MAX, &out, &err);
    ml_assert(out.len <= JSON_MAX);
    if (r == 0)
        check_lines(ml_buf_str(&out));
    else
        ml_assert(out.len == 0 && err.kind == r && strncmp(err.message, "line ", 5) == 0);
    ml_buf_fini(&out);
    read_some((struct ml_str){(const char *)data, size});
    return 0;
}
