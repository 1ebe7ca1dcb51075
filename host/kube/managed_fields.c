/* The entries of metadata.managedFields that belong together, made one. */
#include "kube/managed_fields.h"

#include "codec/json_members.h"
#include "kube/object_diff.h"

#define SUBSETS_MAX 64 /* levels of paths in a set; an API type has less than 30 */

/* One entry; slices of the list's text, empty for what it does not have. */
struct entry {
    struct ml_str raw, manager, operation, api_version, time, fields, subresource;
};

static struct ml_str find_text(struct ml_str object, const char *field)
{
    struct ml_str raw = {"", 0};
    if (!ml_json_find(object, &raw, field, NULL) || raw.len < 2 || raw.ptr[0] != '"')
        return (struct ml_str){"", 0};
    return (struct ml_str){raw.ptr + 1, raw.len - 2};
}

/* The next entry of the list. False: there is none. */
static bool next_entry(struct ml_json_reader *reader, struct entry *out)
{
    struct ml_str raw = ml_json_skip(reader);
    *out = (struct entry){.raw = raw, .fields = {"", 0}};
    if (raw.len == 0)
        return false;
    out->manager = find_text(raw, "manager");
    out->operation = find_text(raw, "operation");
    out->api_version = find_text(raw, "apiVersion");
    out->time = find_text(raw, "time");
    out->subresource = find_text(raw, "subresource");
    ml_json_find(raw, &out->fields, "fieldsV1", NULL);
    return true;
}

static void begin_entries(struct ml_json_reader *reader, struct ml_str metadata)
{
    struct ml_str list = {"", 0};
    ml_json_find(metadata, &list, "managedFields", NULL);
    ml_json_reader_init(reader, list.len > 0 ? list : ML_STR("[]"), 0);
    ml_json_next(reader);
}

static bool is_among(const char *const *names, struct ml_str name)
{
    for (; names && *names; names++)
        if (ml_str_is(name, *names))
            return true;
    return false;
}

static bool is_target(const struct ml_managers *managers, const struct entry *entry)
{
    return entry->subresource.len == 0 && ml_str_is(entry->manager, managers->name) &&
           ml_str_is(entry->operation, "Apply");
}

static bool is_to_join(const struct ml_managers *managers, const struct entry *entry)
{
    return entry->subresource.len == 0 &&
           is_among(ml_str_is(entry->operation, "Apply") ? managers->applies : managers->updates,
                    entry->manager);
}

bool ml_managers_have(const struct ml_managers *managers, struct ml_str metadata)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct entry entry;
    begin_entries(&reader, metadata);
    while (next_entry(&reader, &entry))
        if (entry.subresource.len == 0 && (ml_str_is(entry.manager, managers->name) ||
                                           is_among(managers->applies, entry.manager)))
            return true;
    return false;
}

/* ---- sets of paths ----
 *
 * A JSON object by path element. In it {} is a path of the set without paths below it, and the
 * member "." says that a path with others below it is itself in the set
 * (structured-merge-diff, fieldpath/serialize.go). */

static bool is_path_of_set(const struct ml_json_members *set)
{
    return set->len == 0 || ml_json_members_find(set, ML_STR("."));
}

static bool join_sets(struct ml_str a, struct ml_str b, size_t level, struct ml_buf *out);

/* The members of `a`, joined with those of `b` that have the same key. */
static bool join_members(const struct ml_json_members *a, const struct ml_json_members *b,
                         size_t level, struct ml_json_writer *writer)
{
    for (size_t i = 0; i < a->len; i++) {
        const struct ml_json_member *other = ml_json_members_find(b, a->items[i].key);
        ML_AUTO(ml_buf_fini) struct ml_buf joined = ML_BUF_INIT;
        ml_json_key(writer, a->items[i].key);
        if (!other) {
            ml_json_raw(writer, a->items[i].value);
            continue;
        }
        if (!join_sets(a->items[i].value, other->value, level + 1, &joined))
            return false;
        ml_json_raw(writer, ml_buf_str(&joined));
    }
    for (size_t i = 0; i < b->len; i++)
        if (!ml_json_members_find(a, b->items[i].key)) {
            ml_json_key(writer, b->items[i].key);
            ml_json_raw(writer, b->items[i].value);
        }
    return true;
}

/* Appends the set of all paths that are in one of them. The root, level 0, is no path. */
static bool join_sets(struct ml_str a, struct ml_str b, size_t level, struct ml_buf *out)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members in_a = {0}, in_b = {0};
    struct ml_json_writer writer;
    struct ml_err err = ML_ERR_INIT;
    if (level > SUBSETS_MAX || !ml_json_members_read(&in_a, a, 0, &err) ||
        !ml_json_members_read(&in_b, b, 0, &err))
        return false;
    bool is_path = level > 0 && (is_path_of_set(&in_a) || is_path_of_set(&in_b));
    ml_json_writer_init(&writer, out);
    ml_json_begin_object(&writer);
    if (is_path && in_a.len + in_b.len > 0 && !ml_json_members_find(&in_a, ML_STR(".")) &&
        !ml_json_members_find(&in_b, ML_STR(".")))
        ml_json_put_raw(&writer, ".", ML_STR("{}"));
    if (!join_members(&in_a, &in_b, level, &writer))
        return false;
    ml_json_end_object(&writer);
    return true;
}

/* ---- the list ---- */

/* The joined entry is made of the first of these entries, or the one that applies, and of the
 * fields of all. False: the list is broken. */
static bool join_entries(const struct ml_managers *managers, struct ml_str metadata,
                         struct entry *out_like, size_t *out_count, struct ml_buf *fields)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct entry entry;
    *out_count = 0;
    ml_buf_puts(fields, "{}");
    begin_entries(&reader, metadata);
    while (next_entry(&reader, &entry)) {
        ML_AUTO(ml_buf_fini) struct ml_buf joined = ML_BUF_INIT;
        bool joins = is_to_join(managers, &entry);
        if (!joins && !is_target(managers, &entry))
            continue;
        if (*out_count == 0 || !joins)
            *out_like = entry;
        *out_count += joins;
        if (!join_sets(ml_buf_str(fields), entry.fields.len > 0 ? entry.fields : ML_STR("{}"), 0,
                       &joined))
            return false;
        ml_buf_clear(fields);
        ml_buf_append_str(fields, ml_buf_str(&joined));
    }
    return true;
}

static void write_joined(const struct ml_managers *managers, const struct entry *like,
                         struct ml_str fields, struct ml_json_writer *writer)
{
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "manager", ml_str_of(managers->name));
    ml_json_put_string(writer, "operation", ML_STR("Apply"));
    ml_json_put_string(writer, "apiVersion", like->api_version);
    if (like->time.len > 0)
        ml_json_put_string(writer, "time", like->time);
    ml_json_put_string(writer, "fieldsType", ML_STR("FieldsV1"));
    ml_json_put_raw(writer, "fieldsV1", fields);
    ml_json_end_object(writer);
}

static void write_others(const struct ml_managers *managers, struct ml_str metadata,
                         struct ml_json_writer *writer)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    struct entry entry;
    begin_entries(&reader, metadata);
    while (next_entry(&reader, &entry))
        if (!is_to_join(managers, &entry) && !is_target(managers, &entry))
            ml_json_raw(writer, entry.raw);
}

bool ml_managers_join(const struct ml_managers *managers, struct ml_str metadata,
                      struct ml_buf *out)
{
    ML_AUTO(ml_buf_fini) struct ml_buf fields = ML_BUF_INIT;
    struct ml_json_writer writer;
    struct entry like = {.fields = {"", 0}};
    size_t count;
    if (!join_entries(managers, metadata, &like, &count, &fields) || count == 0)
        return false;
    ml_json_writer_init(&writer, out);
    ml_json_begin_array(&writer);
    write_joined(managers, &like, ml_buf_str(&fields), &writer);
    write_others(managers, metadata, &writer);
    ml_json_end_array(&writer);
    return true;
}

/* ---- one field ---- */

/* The element of a list with this text among its keys, or as its value: the member
 * `k:{"name":"main"}` or `v:"x"`. */
static bool find_element(struct ml_str fields, struct ml_str text, struct ml_str *out)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ML_AUTO(ml_buf_fini) struct ml_buf wanted = ML_BUF_INIT;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, &wanted);
    ml_json_string(&writer, text);
    ml_json_reader_init(&reader, fields, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return false;
    while (ml_json_next(&reader) == ML_JSON_KEY) {
        ML_AUTO_FREE char *name = ml_str_dup(reader.text);
        *out = ml_json_skip(&reader);
        bool is_element = strncmp(name, "k:", 2) == 0 || strncmp(name, "v:", 2) == 0;
        if (is_element && strstr(name + 2, ml_buf_cstr(&wanted)))
            return true;
    }
    return false;
}

bool ml_managed_entry_has(struct ml_str entry, struct ml_str field)
{
    struct ml_str fields;
    if (!ml_json_find(entry, &fields, "fieldsV1", NULL))
        return false;
    while (field.len > 0) {
        bool in_brackets;
        struct ml_str key = ml_field_take_key(&field, &in_brackets), inner;
        ML_AUTO_FREE char *name = ml_asprintf("f:" ML_STR_FMT, ML_STR_ARG(key));
        if (!ml_json_find(fields, &inner, name, NULL) &&
            !(in_brackets && find_element(fields, key, &inner)))
            return false;
        fields = inner;
    }
    return true;
}
