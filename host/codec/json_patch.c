/* Called by the operator's webhooks (webhook_review.c). Objects are compared member by member, down
 * to a depth at which a level's members, read again for each level, do not cost more than the rest.
 */
#include "codec/json_patch.h"

#include "codec/json_diff.h"
#include "codec/json_members.h"

struct patch {
    struct ml_json_writer writer;
    struct ml_buf path; /* of the objects that are compared: "/spec/template" */
    size_t depth;
};

static bool is_object(struct ml_str raw)
{
    return raw.len > 0 && raw.ptr[0] == '{';
}

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

static int diff_objects(struct patch *patch, struct ml_str from, struct ml_str to,
                        struct ml_err *err);

static int diff_member(struct patch *patch, const struct ml_json_member *old, struct ml_str new,
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
    int r = diff_objects(patch, old->value, new, err);
    patch->depth--;
    patch->path.len = before;
    return r;
}

static int diff_objects(struct patch *patch, struct ml_str from, struct ml_str to,
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
            r = diff_member(patch, was, new.items[i].value, err);
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
    int r = diff_objects(&patch, from, to, err);
    ml_json_end_array(&patch.writer);
    if (r == 0 && (out->failed || patch.path.failed))
        r = ml_err_set(err, ML_ELIMIT, "the patch is too large");
    ml_buf_fini(&patch.path);
    if (r < 0)
        out->len = len_before;
    return r;
}
