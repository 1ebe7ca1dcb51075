/* Lookups in a text: single values by their path (called all over the host), and an object's
 * members where they are looked up more than once (json_diff.c, selectors, the objects that scripts
 * see). */
#include "codec/json_members.h"

#include "codec/json_scan.h"

#include <stdarg.h>

/* ---- an object's members ---- */

/* Up to here keys are compared one by one: quicker than hashing, and most objects are small. */
#define LINEAR_MAX 12

void ml_json_members_fini(struct ml_json_members *members)
{
    if (!members)
        return;
    for (size_t i = 0; i < members->len; i++)
        if (ML_UNLIKELY(members->items[i].key_owned != NULL))
            free(members->items[i].key_owned);
    free(members->items);
    ml_map_fini(&members->index);
    *members = (struct ml_json_members){0};
}

struct ml_json_member *ml_json_members_find(const struct ml_json_members *members,
                                            struct ml_str key)
{
    if (members->len > LINEAR_MAX) {
        uintptr_t place = (uintptr_t)ml_map_get(&members->index, key);
        return place ? &members->items[place - 1] : NULL;
    }
    for (size_t i = 0; i < members->len; i++)
        if (ml_str_eq(members->items[i].key, key))
            return &members->items[i];
    return NULL;
}

static void members_index_from(struct ml_json_members *members, size_t first)
{
    for (size_t i = first; i < members->len; i++)
        ml_map_put(&members->index, members->items[i].key, (void *)(uintptr_t)(i + 1));
}

static struct ml_json_member *members_append(struct ml_json_members *members)
{
    members->items = ml_grow(members->items, &members->capacity, members->len,
                             sizeof members->items[0]);
    struct ml_json_member *member = &members->items[members->len++];
    *member = (struct ml_json_member){0};
    return member;
}

/* The reader's token is a KEY. */
static void read_member(struct ml_json_members *members, struct ml_json_reader *reader)
{
    struct ml_json_member *member = ml_json_members_find(members, reader->text);
    if (member) {
        member->span = reader->span;
        member->value = ml_json_skip(reader);
        return;
    }
    member = members_append(members);
    member->key = reader->text;
    /* A key with escapes stands in the reader's own memory and goes with its next step. */
    if (reader->text.ptr == reader->unescaped.ptr)
        member->key.ptr = member->key_owned = ml_str_dup(reader->text);
    member->span = reader->span;
    member->value = ml_json_skip(reader);
    if (members->len > LINEAR_MAX)
        members_index_from(members, members->len == LINEAR_MAX + 1 ? 0 : members->len - 1);
}

static bool read_members(struct ml_json_members *members, struct ml_json_reader *reader,
                         struct ml_err *err)
{
    if (ml_json_next(reader) != ML_JSON_OBJECT) {
        if (reader->token == ML_JSON_ERROR)
            ml_json_error(reader, err);
        else
            ml_err_set(err, ML_EINVALID, "not an object");
        return false;
    }
    while (ml_json_next(reader) == ML_JSON_KEY)
        read_member(members, reader);
    if (reader->token == ML_JSON_OBJECT_END && ml_json_next(reader) == ML_JSON_END)
        return true;
    ml_json_error(reader, err);
    return false;
}

bool ml_json_members_read(struct ml_json_members *members, struct ml_str raw, size_t depth_max,
                          struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, depth_max);
    return read_members(members, &reader, err);
}

bool ml_json_members_read_span(struct ml_json_members *members, struct ml_str raw,
                               const struct ml_json_spans *spans, size_t span, struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (spans)
        ml_json_reader_use(&reader, spans, span);
    return read_members(members, &reader, err);
}

bool ml_json_members_values(const struct ml_json_members *members, struct ml_str object,
                            struct ml_str *values)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    for (size_t i = 0; i < members->len; i++)
        values[i] = (struct ml_str){"", 0};
    ml_json_reader_init(&reader, object, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return false;
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        const struct ml_json_member *member = ml_json_members_find(members, reader.text);
        struct ml_str value = ml_json_skip(&reader);
        if (member)
            values[member - members->items] = value;
    }
    return reader.token == ML_JSON_OBJECT_END && ml_json_next(&reader) == ML_JSON_END;
}

/* ---- spans ---- */

void ml_json_spans_fini(struct ml_json_spans *spans)
{
    if (!spans)
        return;
    free(spans->items);
    *spans = (struct ml_json_spans){.items = NULL};
}

static void spans_append(struct ml_json_spans *spans)
{
    if (spans->len == spans->capacity) {
        spans->capacity = spans->capacity ? spans->capacity * 2 : 64;
        spans->items = ml_realloc(spans->items, spans->capacity * sizeof spans->items[0]);
    }
    spans->len++;
}

/* Behind the string whose first byte is at p. */
static const char *skip_string(const char *p, const char *end)
{
    for (;;) {
        p = ml_json_quote_end(p, end);
        if (p >= end || *p == '"')
            return p + 1;
        p += 2;
    }
}

void ml_json_spans_read(struct ml_json_spans *spans, struct ml_str json)
{
    ml_assert(json.len <= UINT32_MAX);
    size_t open[ML_JSON_DEPTH_MAX], depth = 0;
    const char *end = json.ptr + json.len, *p = json.ptr;
    spans->text = json.ptr;
    while ((p = ml_json_structure_end(p, end, false)) < end) {
        if (*p == '"') {
            p = skip_string(p + 1, end);
            continue;
        }
        if (*p == '{' || *p == '[') {
            ml_assert(depth < ML_JSON_DEPTH_MAX);
            open[depth++] = spans->len;
            spans_append(spans);
        } else {
            ml_assert(depth > 0);
            struct ml_json_span *span = &spans->items[open[--depth]];
            span->end = (uint32_t)(p + 1 - json.ptr);
            span->next = (uint32_t)spans->len;
        }
        p++;
    }
    ml_assert(depth == 0);
}

void ml_json_reader_use(struct ml_json_reader *reader, const struct ml_json_spans *spans,
                        size_t span)
{
    reader->spans = spans;
    reader->span = span;
}

/* ---- values by path ---- */

#define NAMES_MAX 8 /* of a path */

static struct ml_str find_below(struct ml_json_reader *reader, const char *const *path);

/* Of a value that is broken nothing is found, even what stands before the place. */
static struct ml_str find_in_whole(struct ml_json_reader *reader, const char *const *path)
{
    struct ml_str found = find_below(reader, path);
    return reader->token == ML_JSON_ERROR ? (struct ml_str){NULL, 0} : found;
}

/* In the last member called `path[0]`; the reader stands behind the '{'. */
static struct ml_str find_in_member(struct ml_json_reader *reader, const char *const *path)
{
    struct ml_str found = {NULL, 0};
    while (ml_json_next(reader) == ML_JSON_KEY) {
        if (ml_str_is(reader->text, path[0]))
            found = find_in_whole(reader, path + 1);
        else
            ml_json_skip(reader);
    }
    return found;
}

/* In the element number `path[0]`; the reader stands behind the '['. */
static struct ml_str find_in_element(struct ml_json_reader *reader, const char *const *path)
{
    struct ml_str found = {NULL, 0};
    uint64_t index;
    bool is_index = ml_str_to_u64(ml_str_of(path[0]), &index);
    const size_t depth = reader->depth;
    for (uint64_t i = 0; reader->depth == depth && reader->token != ML_JSON_ERROR; i++) {
        if (is_index && i == index)
            found = find_in_whole(reader, path + 1);
        else
            ml_json_skip(reader);
    }
    return found;
}

/* Reads all of the value that comes next. Returns the part of it at the end of the path. */
static struct ml_str find_below(struct ml_json_reader *reader, const char *const *path)
{
    if (!path[0])
        return ml_json_skip(reader);
    enum ml_json_token token = ml_json_next(reader);
    if (token == ML_JSON_OBJECT)
        return find_in_member(reader, path);
    if (token == ML_JSON_ARRAY)
        return find_in_element(reader, path);
    return (struct ml_str){NULL, 0};
}

static bool find_by_path(struct ml_str json, struct ml_str *out_raw, va_list names)
{
    const char *path[NAMES_MAX + 1];
    size_t len = 0;
    for (; (path[len] = va_arg(names, const char *)); len++)
        ml_assert(len < NAMES_MAX);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    struct ml_str found = find_below(&reader, path);
    if (found.len == 0)
        return false;
    *out_raw = found;
    return true;
}

void ml_json_find_members(struct ml_str object, struct ml_json_wanted *wanted, size_t count)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, object, 0);
    for (size_t i = 0; i < count; i++)
        wanted[i].raw = (struct ml_str){"", 0};
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return;
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        size_t i = 0;
        while (i < count && !ml_str_is(reader.text, wanted[i].name))
            i++;
        struct ml_str raw = ml_json_skip(&reader);
        if (i < count)
            wanted[i].raw = raw;
    }
}

bool ml_json_find(struct ml_str json, struct ml_str *out_raw, ...)
{
    va_list path;
    va_start(path, out_raw);
    bool found = find_by_path(json, out_raw, path);
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
    bool found = find_by_path(json, &raw, path);
    va_end(path);
    if (!found)
        return NULL;
    ML_AUTO(ml_buf_fini) struct ml_buf text;
    ml_buf_init(&text, raw.len);
    return ml_json_to_string(raw, &text) ? ml_buf_take(&text) : NULL;
}
