/* Single values picked out of a text by their path, each found by walking the levels above. */
#include "codec/json.h"

#include <stdarg.h>

/* The value of the last member called `name`; the reader stands behind the '{'. */
static struct ml_str find_member(struct ml_json_reader *reader, struct ml_str name)
{
    struct ml_str found = {NULL, 0};
    while (ml_json_next(reader) == ML_JSON_KEY) {
        bool wanted = ml_str_eq(reader->text, name);
        struct ml_str value = ml_json_skip(reader);
        if (wanted)
            found = value;
    }
    return found;
}

/* The reader stands behind the '['. */
static struct ml_str find_element(struct ml_json_reader *reader, struct ml_str name)
{
    uint64_t index;
    if (!ml_str_to_u64(name, &index))
        return (struct ml_str){NULL, 0};
    struct ml_str element = ml_json_skip(reader);
    while (index-- > 0 && element.len)
        element = ml_json_skip(reader);
    return element;
}

static struct ml_str find_step(struct ml_str json, struct ml_str name)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    enum ml_json_token token = ml_json_next(&reader);
    if (token == ML_JSON_OBJECT)
        return find_member(&reader, name);
    if (token == ML_JSON_ARRAY)
        return find_element(&reader, name);
    return (struct ml_str){NULL, 0};
}

static bool find(struct ml_str json, struct ml_str *out_raw, va_list path)
{
    const char *name = va_arg(path, const char *);
    if (!name) {
        ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
        ml_json_reader_init(&reader, json, 0);
        json = ml_json_skip(&reader);
    }
    for (; name && json.len; name = va_arg(path, const char *))
        json = find_step(json, ml_str_of(name));
    if (json.len == 0)
        return false;
    *out_raw = json;
    return true;
}

bool ml_json_find(struct ml_str json, struct ml_str *out_raw, ...)
{
    va_list path;
    va_start(path, out_raw);
    bool found = find(json, out_raw, path);
    va_end(path);
    return found;
}

bool ml_json_to_string(struct ml_str raw, struct ml_buf *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_STRING)
        return false;
    /* The text may live in the reader, so the rest is judged only after it was copied. */
    size_t len = out->len;
    bool fits = ml_buf_append_str(out, reader.text);
    if (fits && ml_json_next(&reader) == ML_JSON_END)
        return true;
    out->len = len;
    return false;
}

char *ml_json_find_string(struct ml_str json, ...)
{
    struct ml_str raw;
    va_list path;
    va_start(path, json);
    bool found = find(json, &raw, path);
    va_end(path);
    if (!found)
        return NULL;
    ML_AUTO(ml_buf_fini) struct ml_buf text;
    ml_buf_init(&text, raw.len);
    return ml_json_to_string(raw, &text) ? ml_buf_take(&text) : NULL;
}
