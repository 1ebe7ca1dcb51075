/* Server-side apply without a schema, and the differences of two objects by field: both match the
 * items of lists by the same keys. */
#include "codec/json_apply.h"

#include "codec/json_diff.h"
#include "codec/json_members.h"

static bool is_object(struct ml_str raw)
{
    return raw.len > 0 && raw.ptr[0] == '{';
}

static bool is_array(struct ml_str raw)
{
    return raw.len > 0 && raw.ptr[0] == '[';
}

/* ---- lists ---- */

struct items {
    struct ml_str *raw;
    struct ml_str *values; /* of each, for the key that tells them apart; from items_read_key on */
    size_t len, capacity;
};

static void items_fini(struct items *items)
{
    free(items->raw);
    free(items->values);
}

/* Anything but a list has no items. */
static void items_read(struct items *items, struct ml_str list)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    if (!is_array(list))
        return;
    ml_json_reader_init(&reader, list, 0);
    ml_json_next(&reader);
    for (struct ml_str item; (item = ml_json_skip(&reader)).len > 0;) {
        if (items->len == items->capacity) {
            items->capacity = ML_MAX(2 * items->capacity, (size_t)8);
            items->raw = ml_realloc(items->raw, items->capacity * sizeof *items->raw);
        }
        items->raw[items->len++] = item;
    }
}

/* The item with this value for the key; empty: there is none. */
static struct ml_str items_find(const struct items *items, struct ml_str value)
{
    for (size_t i = 0; i < items->len; i++)
        if (ml_str_eq(items->values[i], value))
            return items->raw[i];
    return (struct ml_str){NULL, 0};
}

/* False: the key does not tell them apart, as one lacks it, or two have the same value, or a value
 * is an object or list. */
static bool items_read_key(struct items *items, const char *key)
{
    if (!items->values)
        items->values = ml_zalloc((items->len + 1) * sizeof *items->values);
    for (size_t i = 0; i < items->len; i++) {
        struct ml_str value = {NULL, 0};
        if (!is_object(items->raw[i]) || !ml_json_find(items->raw[i], &value, key, NULL) ||
            is_object(value) || is_array(value))
            return false;
        for (size_t before = 0; before < i; before++)
            if (ml_str_eq(items->values[before], value))
                return false;
        items->values[i] = value;
    }
    return true;
}

/* Longer lists are compared as a whole: a search for each item takes the square of their length. */
#define KEYED_ITEMS_MAX 256

/* Finds the key that tells the items of both lists apart, and reads its values; NULL: none does. */
static const char *find_key(struct items *a, struct items *b)
{
    /* As in the tags patchMergeKey and listMapKey of k8s.io/api. */
    static const char *const keys[] = {"name",          "key",  "type",      "uid",       "ip",
                                       "containerPort", "port", "mountPath", "devicePath"};
    if (a->len + b->len == 0 || a->len > KEYED_ITEMS_MAX || b->len > KEYED_ITEMS_MAX)
        return NULL;
    for (size_t i = 0; i < ML_COUNT(keys); i++)
        if (items_read_key(a, keys[i]) && items_read_key(b, keys[i]))
            return keys[i];
    return NULL;
}

static bool items_are_objects(const struct items *items)
{
    for (size_t i = 0; i < items->len; i++)
        if (!is_object(items->raw[i]))
            return false;
    return true;
}

/* ---- apply ---- */

static void apply_value(struct ml_str live, struct ml_str applied, struct ml_str before,
                        struct ml_buf *out);

/* Appends the rest of `live` without the fields that were applied before; false: there is none. */
static bool keep_others(struct ml_str live, struct ml_str before, struct ml_buf *out)
{
    bool object = is_object(live) && is_object(before);
    if (!object && !(is_array(live) && is_array(before)))
        return false;
    apply_value(live, object ? ML_STR("{}") : ML_STR("[]"), before, out);
    return !ml_str_is(ml_buf_str(out), "{}") && !ml_str_is(ml_buf_str(out), "[]");
}

struct merge {
    struct ml_json_writer writer;
    struct ml_buf *out;
};

/* One member of an object, or item of a list (`key` NULL), that is in `live`. */
static void merge_live(struct merge *merge, const struct ml_str *key, struct ml_str live,
                       struct ml_str applied, struct ml_str before)
{
    ML_AUTO(ml_buf_fini) struct ml_buf value = ML_BUF_INIT;
    if (applied.len > 0)
        apply_value(live, applied, before, &value);
    else if (before.len == 0)
        ml_buf_append_str(&value, live);
    else if (!keep_others(live, before, &value))
        return;
    if (key)
        ml_json_key(&merge->writer, *key);
    ml_json_raw(&merge->writer, ml_buf_str(&value));
}

static void apply_object(struct ml_str live, struct ml_str applied, struct ml_str before,
                         struct ml_buf *out)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members is = {0}, want = {0}, was = {0};
    struct ml_err err = ML_ERR_INIT;
    struct merge merge = {.out = out};
    if (!ml_json_members_read(&is, live, 0, &err) || !ml_json_members_read(&want, applied, 0, &err))
        return;
    if (is_object(before) && !ml_json_members_read(&was, before, 0, &err))
        return;
    ml_json_writer_init(&merge.writer, out);
    ml_json_begin_object(&merge.writer);
    for (size_t i = 0; i < is.len; i++) {
        const struct ml_json_member *member = &is.items[i];
        const struct ml_json_member *wanted = ml_json_members_find(&want, member->key);
        const struct ml_json_member *had = ml_json_members_find(&was, member->key);
        merge_live(&merge, &member->key, member->value, wanted ? wanted->value : ML_STR(""),
                   had ? had->value : ML_STR(""));
    }
    for (size_t i = 0; i < want.len; i++) {
        if (ml_json_members_find(&is, want.items[i].key))
            continue;
        ml_json_key(&merge.writer, want.items[i].key);
        ml_json_raw(&merge.writer, want.items[i].value);
    }
    ml_json_end_object(&merge.writer);
}

static void apply_by_key(const struct items *is, const struct items *want, const struct items *was,
                         struct merge *merge)
{
    for (size_t i = 0; i < is->len; i++) {
        struct ml_str wanted = items_find(want, is->values[i]);
        struct ml_str had = items_find(was, is->values[i]);
        if (wanted.len > 0 || had.len == 0) /* an item goes as a whole */
            merge_live(merge, NULL, is->raw[i], wanted, had);
    }
    for (size_t i = 0; i < want->len; i++)
        if (items_find(is, want->values[i]).len == 0)
            ml_json_raw(&merge->writer, want->raw[i]);
}

static void apply_array(struct ml_str live, struct ml_str applied, struct ml_str before,
                        struct ml_buf *out)
{
    ML_AUTO(items_fini) struct items is = {0}, want = {0}, was = {0};
    struct merge merge = {.out = out};
    items_read(&is, live);
    items_read(&want, applied);
    items_read(&was, before);
    const char *key = find_key(&is, &want);
    bool pairs = is.len == want.len && items_are_objects(&is) && items_are_objects(&want);
    if (!key && !pairs) {
        ml_buf_append_str(out, applied);
        return;
    }
    ml_json_writer_init(&merge.writer, out);
    ml_json_begin_array(&merge.writer);
    if (key) {
        if (!items_read_key(&was, key))
            was.len = 0;
        apply_by_key(&is, &want, &was, &merge);
    } else {
        for (size_t i = 0; i < is.len; i++)
            merge_live(&merge, NULL, is.raw[i], want.raw[i],
                       was.len == is.len ? was.raw[i] : ML_STR(""));
    }
    ml_json_end_array(&merge.writer);
}

/* All are checked. */
static void apply_value(struct ml_str live, struct ml_str applied, struct ml_str before,
                        struct ml_buf *out)
{
    if (is_object(live) && is_object(applied))
        apply_object(live, applied, before, out);
    else if (is_array(live) && is_array(applied))
        apply_array(live, applied, before, out);
    else
        ml_buf_append_str(out, applied);
}

static int check_object(struct ml_str json, struct ml_err *err)
{
    if (ml_json_check(json, 0, err) < 0)
        return err->kind;
    return is_object(ml_str_trim(json)) ? 0 : ml_err_set(err, ML_EINVALID, "not a JSON object");
}

int ml_json_apply(struct ml_str live, struct ml_str applied, struct ml_str before,
                  struct ml_buf *out, struct ml_err *err)
{
    if (check_object(live, err) < 0 || check_object(applied, err) < 0 ||
        (before.len > 0 && check_object(before, err) < 0))
        return err->kind;
    apply_value(ml_str_trim(live), ml_str_trim(applied), ml_str_trim(before), out);
    return out->failed ? ml_err_set(err, ML_ELIMIT, "the object is too large") : 0;
}

/* ---- differences ---- */

struct comparison {
    ml_json_differs *differs;
    void *context;
    struct ml_buf field;
};

static void compare(struct comparison *self, struct ml_str from, struct ml_str to);

/* `part`: what stands behind the field's name; it is taken off again. */
static void compare_part(struct comparison *self, const char *part, struct ml_str from,
                         struct ml_str to)
{
    size_t len = self->field.len;
    ml_buf_puts(&self->field, len == 0 && *part == '.' ? part + 1 : part);
    compare(self, from, to);
    self->field.len = len;
}

static void compare_member(struct comparison *self, struct ml_str key, struct ml_str from,
                           struct ml_str to)
{
    bool plain = key.len > 0 && !memchr(key.ptr, '.', key.len);
    ML_AUTO_FREE char *part = ml_asprintf(plain ? "." ML_STR_FMT : "[" ML_STR_FMT "]",
                                          ML_STR_ARG(key));
    compare_part(self, part, from, to);
}

static void compare_objects(struct comparison *self, struct ml_str from, struct ml_str to)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members was = {0}, is = {0};
    struct ml_err err = ML_ERR_INIT;
    if (!ml_json_members_read(&was, from, 0, &err) || !ml_json_members_read(&is, to, 0, &err))
        return;
    for (size_t i = 0; i < was.len; i++) {
        const struct ml_json_member *now = ml_json_members_find(&is, was.items[i].key);
        compare_member(self, was.items[i].key, was.items[i].value, now ? now->value : ML_STR(""));
    }
    for (size_t i = 0; i < is.len; i++)
        if (!ml_json_members_find(&was, is.items[i].key))
            compare_member(self, is.items[i].key, ML_STR(""), is.items[i].value);
}

static void compare_item(struct comparison *self, struct ml_str value, struct ml_str from,
                         struct ml_str to)
{
    ML_AUTO(ml_buf_fini) struct ml_buf text = ML_BUF_INIT;
    if (!ml_json_to_string(value, &text))
        ml_buf_append_str(&text, value);
    ML_AUTO_FREE char *part = ml_asprintf("[" ML_STR_FMT "]", ML_STR_ARG(ml_buf_str(&text)));
    compare_part(self, part, from, to);
}

/* False: their items cannot be matched. */
static bool compare_arrays(struct comparison *self, struct ml_str from, struct ml_str to)
{
    ML_AUTO(items_fini) struct items was = {0}, is = {0};
    items_read(&was, from);
    items_read(&is, to);
    const char *key = find_key(&was, &is);
    if (!key && was.len != is.len)
        return false;
    for (size_t i = 0; i < was.len; i++) {
        if (key) {
            compare_item(self, was.values[i], was.raw[i], items_find(&is, was.values[i]));
            continue;
        }
        ML_AUTO_FREE char *part = ml_asprintf("[%zu]", i);
        compare_part(self, part, was.raw[i], is.raw[i]);
    }
    for (size_t i = 0; key && i < is.len; i++)
        if (items_find(&was, is.values[i]).len == 0)
            compare_item(self, is.values[i], ML_STR(""), is.raw[i]);
    return true;
}

static void compare(struct comparison *self, struct ml_str from, struct ml_str to)
{
    if (from.len > 0 && to.len > 0 && ml_json_equal(from, to))
        return;
    if (is_object(from) && is_object(to))
        compare_objects(self, from, to);
    else if (!is_array(from) || !is_array(to) || !compare_arrays(self, from, to))
        self->differs(self->context, ml_buf_str(&self->field), from, to);
}

void ml_json_differences(struct ml_str from, struct ml_str to, ml_json_differs *differs,
                         void *context)
{
    struct comparison self = {differs, context, ML_BUF_INIT};
    compare(&self, ml_str_trim(from), ml_str_trim(to));
    ml_buf_fini(&self.field);
}
