/* Comparing, merging and diffing JSON values; merge patches and JSON patches.
 *
 * Comparing and merging recurse once a level, within ML_JSON_DEPTH_MAX. A level's members are
 * skipped whole first and read when their turn comes. In a long text each skip is one step, as its
 * spans are known; a short one is read again at each level. */
#include "codec/json_diff.h"

#include "codec/json.h"
#include "codec/json_members.h"

#define SHORT_TEXT 4096 /* bytes */

/* A text, checked, without the white space around it. */
struct text {
    struct ml_str raw;
    struct ml_json_spans spans;
};

/* A part of it. */
struct value {
    struct ml_str raw;
    const struct ml_json_spans *spans; /* or NULL */
    size_t span;                       /* its number, of an object or array */
};

static void text_fini(struct text *text)
{
    ml_json_spans_fini(&text->spans);
}

static struct value whole_text(const struct text *text)
{
    return (struct value){text->raw, text->spans.len > 0 ? &text->spans : NULL, 0};
}

static struct value member_of(struct value object, const struct ml_json_member *member)
{
    return (struct value){member->value, object.spans, member->span};
}

static bool members_read(struct ml_json_members *members, struct value object, struct ml_err *err)
{
    return ml_json_members_read_span(members, object.raw, object.spans, object.span, err);
}

static void reader_init(struct ml_json_reader *reader, struct value value)
{
    ml_json_reader_init(reader, value.raw, 0);
    if (value.spans)
        ml_json_reader_use(reader, value.spans, value.span);
}

static bool is_object(struct ml_str raw)
{
    return raw.len > 0 && raw.ptr[0] == '{';
}

/* Raw slices from a checked text have no white space around them. */
static bool is_null(struct ml_str raw)
{
    return ml_str_eq(raw, ML_STR("null"));
}

/* `raw` is checked. */
static void text_set(struct text *text, struct ml_str raw)
{
    text->raw = raw;
    if (raw.len > SHORT_TEXT)
        ml_json_spans_read(&text->spans, raw);
}

static int text_read(struct text *text, struct ml_str json, struct ml_err *err)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    struct ml_str raw = ml_json_skip(&reader);
    if (ml_json_next(&reader) != ML_JSON_END || raw.len == 0)
        return ml_json_error(&reader, err);
    text_set(text, raw);
    return 0;
}

static bool equal_values(struct value a, struct value b);

static bool equal_objects(struct value a, struct value b)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members left = {0}, right = {0};
    struct ml_err err;
    if (!members_read(&left, a, &err) || !members_read(&right, b, &err) || left.len != right.len)
        return false;
    for (size_t i = 0; i < left.len; i++) {
        struct ml_json_member *other = ml_json_members_find(&right, left.items[i].key);
        if (!other || !equal_values(member_of(a, &left.items[i]), member_of(b, other)))
            return false;
    }
    return true;
}

static bool equal_arrays(struct value a, struct value b)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader left, right;
    reader_init(&left, a);
    reader_init(&right, b);
    ml_json_next(&left);
    ml_json_next(&right);
    for (;;) {
        struct value x = {.spans = a.spans, .span = left.span};
        struct value y = {.spans = b.spans, .span = right.span};
        x.raw = ml_json_skip(&left);
        y.raw = ml_json_skip(&right);
        if (x.raw.len == 0 || y.raw.len == 0)
            return x.raw.len == y.raw.len;
        if (!equal_values(x, y))
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
static bool equal_values(struct value a, struct value b)
{
    if (ml_str_eq(a.raw, b.raw))
        return true;
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader left, right;
    reader_init(&left, a);
    reader_init(&right, b);
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
    ML_AUTO(text_fini) struct text left = {.raw = {NULL, 0}}, right = {.raw = {NULL, 0}};
    struct ml_err err;
    return text_read(&left, a, &err) == 0 && text_read(&right, b, &err) == 0 &&
           equal_values(whole_text(&left), whole_text(&right));
}

static int merge_values(struct value target, struct value patch, struct ml_json_writer *writer,
                        struct ml_err *err);

/* RFC 7386, section 2; `patch` is an object, `target` one or empty. */
static int merge_members(struct value target, struct value patch, struct ml_json_writer *writer,
                         struct ml_err *err)
{
    static const struct value none = {.raw = {NULL, 0}};
    ML_AUTO(ml_json_members_fini) struct ml_json_members old = {0}, changes = {0};
    if (!members_read(&changes, patch, err) ||
        (target.raw.len > 0 && !members_read(&old, target, err)))
        return err->kind;
    int r = 0;
    for (size_t i = 0; i < old.len && r == 0; i++) {
        const struct ml_json_member *member = &old.items[i];
        const struct ml_json_member *change = ml_json_members_find(&changes, member->key);
        if (change && is_null(change->value))
            continue;
        ml_json_key(writer, member->key);
        if (change)
            r = merge_values(member_of(target, member), member_of(patch, change), writer, err);
        else
            ml_json_raw(writer, member->value);
    }
    for (size_t i = 0; i < changes.len && r == 0; i++) {
        const struct ml_json_member *change = &changes.items[i];
        if (is_null(change->value) || ml_json_members_find(&old, change->key))
            continue;
        ml_json_key(writer, change->key);
        r = merge_values(none, member_of(patch, change), writer, err);
    }
    return r;
}

static int merge_values(struct value target, struct value patch, struct ml_json_writer *writer,
                        struct ml_err *err)
{
    if (!is_object(patch.raw)) {
        ml_json_raw(writer, patch.raw);
        return 0;
    }
    if (!is_object(target.raw))
        target.raw.len = 0;
    ml_json_begin_object(writer);
    int r = merge_members(target, patch, writer, err);
    ml_json_end_object(writer);
    return r;
}

/* Ends a public function: on failure `out` is as it was. */
static int end_output(struct ml_buf *out, size_t len_before, int r, struct ml_err *err)
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
    ML_AUTO(text_fini) struct text old = {.raw = {NULL, 0}}, change = {.raw = {NULL, 0}};
    if (text_read(&old, target.len ? target : ML_STR("{}"), err) < 0)
        return ml_err_wrap(err, "target");
    if (text_read(&change, patch, err) < 0)
        return ml_err_wrap(err, "patch");
    size_t len_before = out->len;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    return end_output(out, len_before,
                      merge_values(whole_text(&old), whole_text(&change), &writer, err), err);
}

static int diff_objects(struct value from, struct value to, struct ml_json_writer *writer,
                        struct ml_err *err);

/* One member that stands in both and in the result is no null. */
static int diff_member(struct ml_str key, struct value old, struct value new,
                       struct ml_json_writer *writer, struct ml_err *err)
{
    if (ml_str_eq(old.raw, new.raw))
        return 0;
    if (!is_object(old.raw) || !is_object(new.raw)) {
        if (!equal_values(old, new)) {
            ml_json_key(writer, key);
            ml_json_raw(writer, new.raw);
        }
        return 0;
    }
    /* When the objects do not differ after all, remove the key and its comma again. */
    struct ml_json_writer before = *writer;
    size_t len_before = writer->out->len;
    ml_json_key(writer, key);
    size_t value_at = writer->out->len;
    int r = diff_objects(old, new, writer, err);
    if (r == 0 && writer->out->len == value_at + strlen("{}")) {
        writer->out->len = len_before;
        *writer = before;
    }
    return r;
}

static int diff_objects(struct value from, struct value to, struct ml_json_writer *writer,
                        struct ml_err *err)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members old = {0}, new = {0};
    if (!members_read(&old, from, err) || !members_read(&new, to, err))
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
            r = diff_member(was->key, member_of(from, was), member_of(to, &new.items[i]), writer,
                            err);
        } else {
            ml_json_key(writer, new.items[i].key);
            ml_json_raw(writer, new.items[i].value);
        }
    }
    ml_json_end_object(writer);
    return r;
}

static int diff_texts(const struct text *old, const struct text *new, struct ml_buf *out,
                      struct ml_err *err)
{
    if (!is_object(old->raw) || !is_object(new->raw))
        return ml_err_set(err, ML_EINVALID, "only objects have a merge patch");
    size_t len_before = out->len;
    struct ml_json_writer writer;
    ml_json_writer_init(&writer, out);
    return end_output(out, len_before, diff_objects(whole_text(old), whole_text(new), &writer, err),
                      err);
}

int ml_json_merge_diff(struct ml_str from, struct ml_str to, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(text_fini) struct text old = {.raw = {NULL, 0}}, new = {.raw = {NULL, 0}};
    if (text_read(&old, from, err) < 0)
        return ml_err_wrap(err, "from");
    if (text_read(&new, to, err) < 0)
        return ml_err_wrap(err, "to");
    return diff_texts(&old, &new, out, err);
}

int ml_json_merge_diff_checked(struct ml_str from, struct ml_str to, struct ml_buf *out,
                               struct ml_err *err)
{
    ML_AUTO(text_fini) struct text old = {.raw = {NULL, 0}}, new = {.raw = {NULL, 0}};
    text_set(&old, ml_str_trim(from));
    text_set(&new, ml_str_trim(to));
    return diff_texts(&old, &new, out, err);
}

/* ---- JSON Patch ---- */

/* Objects are compared member by member, down to a depth at which a level's members, read again for
 * each level, do not cost more than the rest. */
struct patch {
    struct ml_json_writer writer;
    struct ml_buf path; /* of the objects that are compared: "/spec/template" */
    size_t depth;
};

/* RFC 6901, section 3. Returns the length of the path before it. */
static size_t enter_member(struct ml_buf *path, struct ml_str key)
{
    size_t before = path->len;
    ml_buf_putc(path, '/');
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] == '~')
            ml_buf_puts(path, "~0");
        else if (key.ptr[i] == '/')
            ml_buf_puts(path, "~1");
        else
            ml_buf_putc(path, key.ptr[i]);
    }
    return before;
}

static void put_operation(struct patch *patch, const char *name, struct ml_str key,
                          struct ml_str value)
{
    struct ml_json_writer *writer = &patch->writer;
    size_t before = enter_member(&patch->path, key);
    ml_json_begin_object(writer);
    ml_json_put_string(writer, "op", ml_str_of(name));
    ml_json_put_string(writer, "path", ml_buf_str(&patch->path));
    if (value.len > 0)
        ml_json_put_raw(writer, "value", value);
    ml_json_end_object(writer);
    patch->path.len = before;
}

static int patch_objects(struct patch *patch, struct ml_str from, struct ml_str to,
                         struct ml_err *err);

static int patch_member(struct patch *patch, const struct ml_json_member *old, struct ml_str new,
                        struct ml_err *err)
{
    if (ml_json_equal(old->value, new))
        return 0;
    if (!is_object(old->value) || !is_object(new) || patch->depth == ML_JSON_PATCH_DEPTH_MAX) {
        put_operation(patch, "replace", old->key, new);
        return 0;
    }
    size_t before = enter_member(&patch->path, old->key);
    patch->depth++;
    int r = patch_objects(patch, old->value, new, err);
    patch->depth--;
    patch->path.len = before;
    return r;
}

static int patch_objects(struct patch *patch, struct ml_str from, struct ml_str to,
                         struct ml_err *err)
{
    ML_AUTO(ml_json_members_fini) struct ml_json_members old = {0}, new = {0};
    if (!ml_json_members_read(&old, from, 0, err) || !ml_json_members_read(&new, to, 0, err))
        return err->kind;
    int r = 0;
    for (size_t i = 0; i < old.len; i++)
        if (!ml_json_members_find(&new, old.items[i].key))
            put_operation(patch, "remove", old.items[i].key, ML_STR(""));
    for (size_t i = 0; i < new.len &&r == 0; i++) {
        const struct ml_json_member *was = ml_json_members_find(&old, new.items[i].key);
        if (was)
            r = patch_member(patch, was, new.items[i].value, err);
        else
            put_operation(patch, "add", new.items[i].key, new.items[i].value);
    }
    return r;
}

int ml_json_patch_diff(struct ml_str from, struct ml_str to, struct ml_buf *out, struct ml_err *err)
{
    struct patch patch = {.path = ML_BUF_INIT};
    size_t len_before = out->len;
    ml_json_writer_init(&patch.writer, out);
    ml_json_begin_array(&patch.writer);
    int r = patch_objects(&patch, from, to, err);
    ml_json_end_array(&patch.writer);
    if (r == 0 && (out->failed || patch.path.failed))
        r = ml_err_set(err, ML_ELIMIT, "the patch is too large");
    ml_buf_fini(&patch.path);
    if (r < 0)
        out->len = len_before;
    return r;
}
