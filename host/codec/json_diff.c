/* Comparing and merging recurse once a level, within ML_JSON_DEPTH_MAX. A level's members are
 * passed over whole first and read when their turn comes. */
#include "codec/json_diff.h"

#include "codec/json.h"
#include "codec/json_members.h"

static bool is_object(struct ml_str raw)
{
    return raw.len > 0 && raw.ptr[0] == '{';
}

/* Raw slices from a checked text have no white space around them. */
static bool is_null(struct ml_str raw)
{
    return ml_str_eq(raw, ML_STR("null"));
}

/* The value without the white space around it, checked. */
static int read_whole(struct ml_str json, struct ml_str *out_raw, struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    struct ml_str raw = ml_json_skip(&reader);
    if (ml_json_next(&reader) != ML_JSON_END || raw.len == 0)
        return ml_json_error(&reader, err);
    *out_raw = raw;
    return 0;
}

static bool equal(struct ml_str a, struct ml_str b);

static bool equal_objects(struct ml_str a, struct ml_str b)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members left = {0}, right = {0};
    struct ml_err err;
    if (!ml_json_members_read(&left, a, 0, &err) || !ml_json_members_read(&right, b, 0, &err) ||
        left.len != right.len)
        return false;
    for (size_t i = 0; i < left.len; i++) {
        struct ml_json_member *other = ml_json_members_find(&right, left.items[i].key);
        if (!other || !equal(left.items[i].value, other->value))
            return false;
    }
    return true;
}

static bool equal_arrays(struct ml_str a, struct ml_str b)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader left, right;
    ml_json_reader_init(&left, a, 0);
    ml_json_reader_init(&right, b, 0);
    ml_json_next(&left);
    ml_json_next(&right);
    for (;;) {
        struct ml_str x = ml_json_skip(&left), y = ml_json_skip(&right);
        if (x.len == 0 || y.len == 0)
            return x.len == y.len;
        if (!equal(x, y))
            return false;
    }
}

static bool equal_scalars(const struct ml_json_reader *a, const struct ml_json_reader *b)
{
    if (a->token == ML_JSON_INT)
        return a->integer == b->integer;
    if (a->token == ML_JSON_REAL)
        return a->real == b->real;
    if (a->token == ML_JSON_STRING || a->token == ML_JSON_NUMBER)
        return ml_str_eq(a->text, b->text);
    return true; /* true, false and null have only their token */
}

/* Both are checked. */
static bool equal(struct ml_str a, struct ml_str b)
{
    if (ml_str_eq(a, b))
        return true;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader left, right;
    ml_json_reader_init(&left, a, 0);
    ml_json_reader_init(&right, b, 0);
    if (ml_json_next(&left) != ml_json_next(&right))
        return false;
    if (left.token == ML_JSON_OBJECT)
        return equal_objects(a, b);
    if (left.token == ML_JSON_ARRAY)
        return equal_arrays(a, b);
    return equal_scalars(&left, &right);
}

bool ml_json_equal(struct ml_str a, struct ml_str b)
{
    struct ml_err err;
    struct ml_str left, right;
    return read_whole(a, &left, &err) == 0 && read_whole(b, &right, &err) == 0 &&
           equal(left, right);
}

static int merge(struct ml_str target, struct ml_str patch, struct ml_json_writer *writer,
                 struct ml_err *err);

/* RFC 7386, section 2; both are objects. */
static int merge_members(const struct ml_json_members *target, const struct ml_json_members *patch,
                         struct ml_json_writer *writer, struct ml_err *err)
{
    int r = 0;
    for (size_t i = 0; i < target->len && r == 0; i++) {
        const struct ml_json_member *old = &target->items[i];
        const struct ml_json_member *change = ml_json_members_find(patch, old->key);
        if (change && is_null(change->value))
            continue;
        ml_json_key(writer, old->key);
        if (change)
            r = merge(old->value, change->value, writer, err);
        else
            ml_json_raw(writer, old->value);
    }
    for (size_t i = 0; i < patch->len && r == 0; i++) {
        const struct ml_json_member *change = &patch->items[i];
        if (is_null(change->value) || ml_json_members_find(target, change->key))
            continue;
        ml_json_key(writer, change->key);
        r = merge(ML_STR("{}"), change->value, writer, err);
    }
    return r;
}

static int merge(struct ml_str target, struct ml_str patch, struct ml_json_writer *writer,
                 struct ml_err *err)
{
    if (!is_object(patch)) {
        ml_json_raw(writer, patch);
        return 0;
    }
    ML_AUTO(ml_json_members_fini) struct ml_json_members old = {0}, changes = {0};
    if (!ml_json_members_read(&changes, patch, 0, err) ||
        (is_object(target) && !ml_json_members_read(&old, target, 0, err)))
        return err->kind;
    ml_json_begin_object(writer);
    int r = merge_members(&old, &changes, writer, err);
    ml_json_end_object(writer);
    return r;
}

/* What both public functions end with: on failure `out` is as it was. */
static int finish(struct ml_buf *out, size_t len_before, int r, struct ml_err *err)
{
    if (r == 0 && out->failed)
        r = ml_err_set(err, ML_ELIMIT, "the result is larger than %zu bytes",
                       out->len_max ? out->len_max : ML_BUF_MAX_DEFAULT);
    if (r < 0)
        out->len = len_before;
    return r;
}

int ml_json_merge(struct ml_str target, struct ml_str patch, struct ml_buf *out, struct ml_err *err)
{
    if (read_whole(target.len ? target : ML_STR("{}"), &target, err) < 0)
        return ml_err_wrap(err, "target");
    if (read_whole(patch, &patch, err) < 0)
        return ml_err_wrap(err, "patch");
    size_t len_before = out->len;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    return finish(out, len_before, merge(target, patch, &writer, err), err);
}

static int diff(struct ml_str from, struct ml_str to, struct ml_json_writer *writer,
                struct ml_err *err);

/* One member that stands in both and in the result is no null. */
static int diff_member(const struct ml_json_member *old, const struct ml_json_member *new,
                       struct ml_json_writer *writer, struct ml_err *err)
{
    if (!is_object(old->value) || !is_object(new->value)) {
        if (!equal(old->value, new->value)) {
            ml_json_key(writer, new->key);
            ml_json_raw(writer, new->value);
        }
        return 0;
    }
    /* An object that turns out not to differ is taken back, key and comma included. */
    struct ml_json_writer before = *writer;
    size_t len_before = writer->out->len;
    ml_json_key(writer, new->key);
    size_t value_at = writer->out->len;
    int r = diff(old->value, new->value, writer, err);
    if (r == 0 && writer->out->len == value_at + strlen("{}")) {
        writer->out->len = len_before;
        *writer = before;
    }
    return r;
}

static int diff(struct ml_str from, struct ml_str to, struct ml_json_writer *writer,
                struct ml_err *err)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members old = {0}, new = {0};
    if (!ml_json_members_read(&old, from, 0, err) || !ml_json_members_read(&new, to, 0, err))
        return err->kind;
    int r = 0;
    ml_json_begin_object(writer);
    for (size_t i = 0; i < old.len; i++) {
        const struct ml_json_member *kept = ml_json_members_find(&new, old.items[i].key);
        /* A merge patch cannot say "null": there it means gone, so in `to` it does as well. */
        bool gone = !kept || (is_null(kept->value) && !is_null(old.items[i].value));
        if (gone) {
            ml_json_key(writer, old.items[i].key);
            ml_json_null(writer);
        }
    }
    for (size_t i = 0; i < new.len &&r == 0; i++) {
        if (is_null(new.items[i].value))
            continue;
        const struct ml_json_member *was = ml_json_members_find(&old, new.items[i].key);
        if (was) {
            r = diff_member(was, &new.items[i], writer, err);
        } else {
            ml_json_key(writer, new.items[i].key);
            ml_json_raw(writer, new.items[i].value);
        }
    }
    ml_json_end_object(writer);
    return r;
}

int ml_json_merge_diff(struct ml_str from, struct ml_str to, struct ml_buf *out, struct ml_err *err)
{
    if (read_whole(from, &from, err) < 0)
        return ml_err_wrap(err, "from");
    if (read_whole(to, &to, err) < 0)
        return ml_err_wrap(err, "to");
    if (!is_object(from) || !is_object(to))
        return ml_err_set(err, ML_EINVALID, "only objects have a merge patch");
    size_t len_before = out->len;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    return finish(out, len_before, diff(from, to, &writer, err), err);
}
