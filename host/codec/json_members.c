#include "codec/json_members.h"

#include "codec/json_spans.h"

/* Up to here keys are compared one by one: quicker than hashing, and most objects are small. */
#define LINEAR_MAX 12

void ml_json_members_fini(struct ml_json_members *members)
{
    if (!members)
        return;
    for (size_t i = 0; i < members->len; i++)
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

static void index_from(struct ml_json_members *members, size_t first)
{
    for (size_t i = first; i < members->len; i++)
        ml_map_put(&members->index, members->items[i].key, (void *)(uintptr_t)(i + 1));
}

static struct ml_json_member *add(struct ml_json_members *members)
{
    if (members->len == members->capacity) {
        members->capacity = members->capacity ? members->capacity * 2 : 8;
        members->items = ml_realloc(members->items, members->capacity * sizeof members->items[0]);
    }
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
    member = add(members);
    member->key = reader->text;
    /* A key with escapes stands in the reader's own memory and goes with its next step. */
    if (reader->text.ptr == reader->unescaped.ptr)
        member->key.ptr = member->key_owned = ml_str_dup(reader->text);
    member->span = reader->span;
    member->value = ml_json_skip(reader);
    if (members->len > LINEAR_MAX)
        index_from(members, members->len == LINEAR_MAX + 1 ? 0 : members->len - 1);
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
