/* Which parts of an object changed. */
#include "kube/object_diff.h"

#include "base/map.h"
#include "codec/json.h"
#include "codec/json_diff.h"

#define FIELDS_MAX 3

/* A member of the difference, on the way down. */
struct place {
    const struct place *parent; /* NULL: of the object itself */
    struct ml_str key;
};

/* The first walk over a difference finds its parts, a second one reports the fields. */
struct walk {
    ml_field_change_fn *each; /* NULL: the first one */
    void *context;
    unsigned parts;
};

/* The fields in words, for ml_object_diff. */
struct names {
    struct ml_buf *out;
    size_t count;
};

static bool is_metadata(const struct place *place, const char *key)
{
    return place->parent && !place->parent->parent && ml_str_is(place->parent->key, "metadata") &&
           ml_str_is(place->key, key);
}

static enum ml_object_part part_of_place(const struct place *place)
{
    if (is_metadata(place, "generation"))
        return ML_PART_GENERATION;
    const struct place *top = place, *second = place;
    while (top->parent) {
        second = top;
        top = top->parent;
    }
    if (ml_str_is(top->key, "status"))
        return ML_PART_STATUS;
    if (!ml_str_is(top->key, "metadata"))
        return ML_PART_SPEC;
    if (is_metadata(second, "labels"))
        return ML_PART_LABELS;
    return is_metadata(second, "annotations") ? ML_PART_ANNOTATIONS : ML_PART_METADATA;
}

static void append_field_name(const struct place *place, struct ml_buf *out)
{
    if (place->parent)
        append_field_name(place->parent, out);
    bool plain = !memchr(place->key.ptr, '.', place->key.len);
    if (!plain || place->parent)
        ml_buf_putc(out, plain ? '.' : '[');
    ml_buf_append_str(out, place->key);
    if (!plain)
        ml_buf_putc(out, ']');
}

static void note_changed_field(struct walk *walk, const struct place *place, uint64_t value,
                               bool is_list)
{
    if (is_metadata(place, "resourceVersion"))
        return;
    enum ml_object_part part = part_of_place(place);
    walk->parts |= part;
    if (!walk->each || part == ML_PART_GENERATION)
        return;
    ML_AUTO(ml_buf_fini) struct ml_buf name = ML_BUF_INIT;
    append_field_name(place, &name);
    const struct ml_field_change change = {part, ml_buf_str(&name), value, is_list, walk->parts};
    walk->each(walk->context, &change);
}

/* Only reported fields have a value. */
static uint64_t hash_value(const struct walk *walk, struct ml_str text)
{
    return walk->each ? ml_hash(text) : 0;
}

/* The reader stands behind the '[' of a list. Passes over the rest, and returns its hash. */
static uint64_t hash_list(const struct walk *walk, struct ml_json_reader *reader)
{
    uint64_t hash = 1;
    for (struct ml_str element; (element = ml_json_skip(reader)).len > 0;)
        hash = hash * 31 + hash_value(walk, element);
    return hash;
}

/* The reader stands behind the '{' of a merge patch. An object in it holds further changes, or was
 * added whole. One reader for all levels: depth does not multiply the work. False: no members. */
static bool walk_changes(struct walk *walk, const struct place *parent,
                         struct ml_json_reader *reader)
{
    bool has_members = false;
    while (ml_json_next(reader) == ML_JSON_KEY) {
        ML_AUTO_FREE char *key = ml_str_dup(reader->text);
        const struct place place = {parent, ml_str_of(key)};
        has_members = true;
        enum ml_json_token token = ml_json_next(reader);
        if (token == ML_JSON_ARRAY)
            note_changed_field(walk, &place, hash_list(walk, reader), true);
        else if (token != ML_JSON_OBJECT)
            note_changed_field(walk, &place, hash_value(walk, reader->text) + (uint64_t)token,
                               false);
        else if (!walk_changes(walk, &place, reader))
            note_changed_field(walk, &place, 0, false);
    }
    return has_members;
}

static void walk_difference(struct walk *walk, struct ml_str difference)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, difference, 0);
    if (ml_json_next(&reader) == ML_JSON_OBJECT)
        walk_changes(walk, NULL, &reader);
}

unsigned ml_object_diff_each(const struct ml_object *old, const struct ml_object *new,
                             ml_field_change_fn *each, void *context)
{
    ML_AUTO(ml_buf_fini) struct ml_buf before = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf after = ML_BUF_INIT;
    ML_AUTO(ml_buf_fini) struct ml_buf difference = ML_BUF_INIT;
    struct ml_err err = ML_ERR_INIT;
    struct walk walk = {.context = context};
    bool has_number = ml_object_rv_number(old) != ML_RV_OPAQUE;
    ml_object_json(old, &before);
    ml_object_json_as(new, ml_object_rv(has_number ? old : new), &after);
    if (ml_json_merge_diff_checked(ml_buf_str(&before), ml_buf_str(&after), &difference, &err) < 0)
        return ML_PART_ALL;
    walk_difference(&walk, ml_buf_str(&difference));
    walk.each = each;
    if (each)
        walk_difference(&walk, ml_buf_str(&difference));
    return walk.parts;
}

static void append_change(void *context, const struct ml_field_change *change)
{
    struct names *names = context;
    if (names->count > FIELDS_MAX)
        return;
    if (names->count++ == FIELDS_MAX) {
        ml_buf_puts(names->out, ", …");
        return;
    }
    ml_buf_puts(names->out, names->count > 1 ? ", " : "");
    ml_buf_append_str(names->out, change->name);
}

unsigned ml_object_diff(const struct ml_object *old, const struct ml_object *new,
                        struct ml_buf *out_fields)
{
    struct names names = {.out = out_fields};
    return ml_object_diff_each(old, new, out_fields ? append_change : NULL, &names);
}

struct ml_str ml_field_take_key(struct ml_str *name, bool *in_brackets)
{
    bool bracket = name->len > 0 && name->ptr[0] == '[';
    struct ml_str rest = {name->ptr + bracket, name->len - bracket}, key = rest;
    if (in_brackets)
        *in_brackets = bracket;
    if (bracket) {
        key = ml_str_cut(&rest, ']');
    } else {
        key.len = 0;
        while (key.len < rest.len && rest.ptr[key.len] != '.' && rest.ptr[key.len] != '[')
            key.len++;
        rest = (struct ml_str){rest.ptr + key.len, rest.len - key.len};
    }
    if (rest.len > 0 && rest.ptr[0] == '.')
        rest = (struct ml_str){rest.ptr + 1, rest.len - 1};
    *name = rest;
    return key;
}
