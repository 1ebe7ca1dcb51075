/* Called by webhook_review.c with what a script returned. */
#include "operator/webhook_object.h"

#include "codec/json_diff.h"
#include "codec/json_members.h"

#define SHOWN_MAX 64 /* bytes of a value in a message */

static const char *const identity[] = {"name", "generateName", "namespace", "uid"};

/* An object and its metadata. */
struct parts {
    struct ml_json_members object;
    struct ml_json_members metadata;
};

static void parts_fini(struct parts *parts)
{
    ml_json_members_fini(&parts->metadata);
    ml_json_members_fini(&parts->object);
}

/* Raw; empty when it is absent or null. */
static struct ml_str member_value(const struct ml_json_members *members, const char *name)
{
    const struct ml_json_member *member = ml_json_members_find(members, ml_str_of(name));
    return !member || ml_str_is(member->value, "null") ? ML_STR("") : member->value;
}

static int read_parts(struct parts *parts, const char *what, struct ml_str json, struct ml_err *err)
{
    if (!ml_json_members_read(&parts->object, json, 0, err))
        return ml_err_wrap(err, "%s", what);
    struct ml_str metadata = member_value(&parts->object, "metadata");
    if (metadata.len == 0 || !ml_json_members_read(&parts->metadata, metadata, 0, err))
        return ml_err_set(err, ML_ESCRIPT, "%s returned an object without metadata", what);
    return 0;
}

static int check_same(const char *what, const char *field, struct ml_str old, struct ml_str new,
                      struct ml_err *err)
{
    bool is_same = old.len == 0 || new.len == 0 ? old.len == new.len : ml_json_equal(old, new);
    if (is_same)
        return 0;
    old = old.len > 0 ? ml_str_head(old, SHOWN_MAX) : ML_STR("nothing");
    new = new.len > 0 ? ml_str_head(new, SHOWN_MAX) : ML_STR("nothing");
    return ml_err_set(err, ML_ESCRIPT,
                      "%s returned an object with another %s: " ML_STR_FMT
                      " instead of " ML_STR_FMT,
                      what, field, ML_STR_ARG(new), ML_STR_ARG(old));
}

static int check_identity(const char *what, const struct parts *old, const struct parts *new,
                          struct ml_err *err)
{
    int r = check_same(what, "kind", member_value(&old->object, "kind"),
                       member_value(&new->object, "kind"), err);
    for (size_t i = 0; i < ML_COUNT(identity) && r == 0; i++) {
        ML_AUTO_FREE char *field = ml_asprintf("metadata.%s", identity[i]);
        r = check_same(what, field, member_value(&old->metadata, identity[i]),
                       member_value(&new->metadata, identity[i]), err);
    }
    return r;
}

/* As Kubernetes writes it, which leaves out an empty map. */
static bool is_nothing(struct ml_str value)
{
    return ml_str_is(value, "null") || ml_str_is(value, "{}");
}

static bool is_free(struct ml_str name)
{
    return ml_str_is(name, "labels") || ml_str_is(name, "annotations");
}

/* Of an object that was defaulted: all that the function says, and what it cannot see. */
static void put_defaulted_metadata(struct ml_json_writer *writer, const struct parts *old,
                                   const struct parts *new)
{
    struct ml_str managed = member_value(&old->metadata, "managedFields");
    ml_json_begin_object(writer);
    for (size_t i = 0; i < new->metadata.len; i++) {
        const struct ml_json_member *member = &new->metadata.items[i];
        if (ml_str_is(member->key, "managedFields"))
            continue;
        ml_json_key(writer, member->key);
        ml_json_raw(writer, member->value);
    }
    if (managed.len > 0)
        ml_json_put_raw(writer, "managedFields", managed);
    ml_json_end_object(writer);
}

static void put_converted_metadata(struct ml_json_writer *writer, const struct parts *old,
                                   const struct parts *new)
{
    ml_json_begin_object(writer);
    for (size_t i = 0; i < old->metadata.len; i++) {
        const struct ml_json_member *member = &old->metadata.items[i];
        if (is_free(member->key))
            continue;
        ml_json_key(writer, member->key);
        ml_json_raw(writer, member->value);
    }
    for (size_t i = 0; i < new->metadata.len; i++) {
        const struct ml_json_member *member = &new->metadata.items[i];
        if (!is_free(member->key) || is_nothing(member->value))
            continue;
        ml_json_key(writer, member->key);
        ml_json_raw(writer, member->value);
    }
    ml_json_end_object(writer);
}

/* Writes `new` with this apiVersion (empty: its own) and the metadata that `put_metadata` makes. */
static void put_object(struct ml_json_writer *writer, const struct parts *old,
                       const struct parts *new, struct ml_str api_version,
                       void (*put_metadata)(struct ml_json_writer *writer, const struct parts *old,
                                            const struct parts *new))
{
    ml_json_begin_object(writer);
    if (api_version.len > 0)
        ml_json_put_string(writer, "apiVersion", api_version);
    for (size_t i = 0; i < new->object.len; i++) {
        const struct ml_json_member *member = &new->object.items[i];
        if (api_version.len > 0 && ml_str_is(member->key, "apiVersion"))
            continue;
        ml_json_key(writer, member->key);
        if (ml_str_is(member->key, "metadata"))
            put_metadata(writer, old, new);
        else
            ml_json_raw(writer, member->value);
    }
    ml_json_end_object(writer);
}

int ml_webhook_defaulted(const char *what, struct ml_str original, struct ml_str changed,
                         struct ml_buf *patch, struct ml_err *err)
{
    ML_AUTO(parts_fini) struct parts old = {{0}, {0}}, new = {{0}, {0}};
    ML_AUTO(ml_buf_fini) struct ml_buf whole = ML_BUF_INIT;
    struct ml_json_writer writer;
    if (read_parts(&old, what, original, err) < 0 || read_parts(&new, what, changed, err) < 0 ||
        check_identity(what, &old, &new, err) < 0 ||
        check_same(what, "apiVersion", member_value(&old.object, "apiVersion"),
                   member_value(&new.object, "apiVersion"), err) < 0)
        return err->kind;
    ml_json_writer_init(&writer, &whole);
    put_object(&writer, &old, &new, ML_STR(""), put_defaulted_metadata);
    return ml_json_patch_diff(original, ml_buf_str(&whole), patch, err);
}

int ml_webhook_converted(const char *what, struct ml_str original, struct ml_str converted,
                         struct ml_str api_version, struct ml_buf *out, struct ml_err *err)
{
    ML_AUTO(parts_fini) struct parts old = {{0}, {0}}, new = {{0}, {0}};
    struct ml_json_writer writer;
    if (read_parts(&old, what, original, err) < 0 || read_parts(&new, what, converted, err) < 0 ||
        check_identity(what, &old, &new, err) < 0)
        return err->kind;
    ml_json_writer_init(&writer, out);
    put_object(&writer, &old, &new, api_version, put_converted_metadata);
    return out->failed ? ml_err_set(err, ML_ELIMIT, "%s: the answer is too large", what) : 0;
}
