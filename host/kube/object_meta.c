#include "kube/object_meta.h"

#include "codec/json.h"

#define TEXT_LEN_MAX 253 /* Kubernetes' longest name; object.c keeps lengths in a byte */
#define KEY_LEN_MAX  24  /* longer than any key looked for */

struct member {
    struct ml_str key;
    struct ml_str value; /* raw */
    char name[KEY_LEN_MAX];
};

/* The next member of the object the reader is in. False at its end, or on an error. */
static bool next_member(struct ml_json_reader *reader, struct member *out)
{
    if (ml_json_next(reader) != ML_JSON_KEY)
        return false;
    /* A copy, cut where it can no longer be a key of ours: the reader's text does not outlive
     * its next step. */
    size_t len = ML_MIN(reader->text.len, sizeof out->name);
    if (len > 0)
        memcpy(out->name, reader->text.ptr, len);
    out->key = (struct ml_str){out->name, len};
    out->value = ml_json_skip(reader);
    return reader->token != ML_JSON_ERROR;
}

/* `raw` is a checked value; anything but a string leaves `out` as it is. */
static void read_string(struct ml_object_meta *meta, struct ml_str raw,
                        struct ml_object_string *out)
{
    if (raw.ptr[0] != '"')
        return;
    struct ml_str inner = {raw.ptr + 1, raw.len - 2};
    if (!memchr(inner.ptr, '\\', inner.len)) {
        *out = (struct ml_object_string){inner, inner};
        return;
    }
    /* The room was reserved at once (read_metadata), so earlier texts do not move. */
    size_t start = meta->unescaped.len;
    ml_json_to_string(raw, &meta->unescaped);
    struct ml_str text = {meta->unescaped.ptr + start, meta->unescaped.len - start};
    *out = (struct ml_object_string){text, {NULL, 0}};
}

struct owner {
    struct ml_object_string api_version, kind, name, uid;
    bool controller;
};

static void read_owner(struct ml_object_meta *meta, struct ml_json_reader *reader)
{
    struct owner owner = {0};
    struct member member;
    while (next_member(reader, &member)) {
        if (ml_str_is(member.key, "apiVersion"))
            read_string(meta, member.value, &owner.api_version);
        else if (ml_str_is(member.key, "kind"))
            read_string(meta, member.value, &owner.kind);
        else if (ml_str_is(member.key, "name"))
            read_string(meta, member.value, &owner.name);
        else if (ml_str_is(member.key, "uid"))
            read_string(meta, member.value, &owner.uid);
        else if (ml_str_is(member.key, "controller"))
            owner.controller = ml_str_is(member.value, "true");
    }
    if (!owner.controller)
        return;
    meta->has_owner = true;
    meta->owner_api_version = owner.api_version.text;
    meta->owner_kind = owner.kind.text;
    meta->owner_name = owner.name;
    meta->owner_uid = owner.uid;
}

/* Anything but an array of objects, null for one, holds no owner. */
static void read_owners(struct ml_object_meta *meta, struct ml_str raw)
{
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_ARRAY)
        return;
    while (ml_json_next(&reader) == ML_JSON_OBJECT)
        read_owner(meta, &reader);
}

/* The member whose value is `value`, with the comma before it or, when it is the first, the
 * one behind it. `before` is where the former member ends, or the object's '{'. */
static struct ml_str whole_member(const char *before, struct ml_str value)
{
    const char *end = value.ptr + value.len;
    if (*before == '{') {
        before++;
        const char *next = end + strspn(end, " \t\r\n");
        end = *next == ',' ? next + 1 : end;
    }
    return (struct ml_str){before, (size_t)(end - before)};
}

static void read_metadata_member(struct ml_object_meta *meta, const struct member *member)
{
    if (ml_str_is(member->key, "name"))
        read_string(meta, member->value, &meta->name);
    else if (ml_str_is(member->key, "namespace"))
        read_string(meta, member->value, &meta->ns);
    else if (ml_str_is(member->key, "uid"))
        read_string(meta, member->value, &meta->uid);
    else if (ml_str_is(member->key, "resourceVersion"))
        read_string(meta, member->value, &meta->rv);
    else if (ml_str_is(member->key, "generation"))
        (void)!ml_str_to_i64(member->value, &meta->generation);
    else if (ml_str_is(member->key, "deletionTimestamp"))
        meta->deleting = !ml_str_is(member->value, "null");
    else if (ml_str_is(member->key, "ownerReferences"))
        read_owners(meta, member->value);
}

static void read_metadata(struct ml_object_meta *meta, struct ml_str raw)
{
    if (memchr(raw.ptr, '\\', raw.len))
        ml_buf_reserve(&meta->unescaped, raw.len);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return;
    struct member member;
    for (const char *before = raw.ptr; next_member(&reader, &member);) {
        if (ml_str_is(member.key, "managedFields"))
            meta->managed_fields = whole_member(before, member.value);
        else
            read_metadata_member(meta, &member);
        before = member.value.ptr + member.value.len;
    }
}

static int check_text(struct ml_str text, const char *what, struct ml_err *err)
{
    if (text.len == 0)
        return ml_err_set(err, ML_EINVALID, "no %s", what);
    if (text.len > TEXT_LEN_MAX)
        return ml_err_set(err, ML_EINVALID, "%s is longer than %d bytes", what, TEXT_LEN_MAX);
    return 0;
}

static int check_metadata(const struct ml_object_meta *meta, struct ml_err *err)
{
    const struct {
        struct ml_str text;
        const char *what;
        bool required;
    } texts[] = {
        {meta->name.text, "metadata.name", true},
        {meta->uid.text, "metadata.uid", true},
        {meta->rv.text, "metadata.resourceVersion", true},
        {meta->ns.text, "metadata.namespace", false},
        {meta->owner_api_version, "apiVersion of the owner", meta->has_owner},
        {meta->owner_kind, "kind of the owner", meta->has_owner},
        {meta->owner_name.text, "name of the owner", meta->has_owner},
        {meta->owner_uid.text, "uid of the owner", meta->has_owner},
    };
    for (size_t i = 0; i < ML_COUNT(texts); i++) {
        bool here = texts[i].required || texts[i].text.len > 0;
        if (here && check_text(texts[i].text, texts[i].what, err) < 0)
            return err->kind;
    }
    /* A key "ns/name" must come apart again as it was put together. */
    if (memchr(meta->name.text.ptr, '/', meta->name.text.len))
        return ml_err_set(err, ML_EINVALID, "metadata.name has a '/'");
    if (meta->ns.text.len > 0 && memchr(meta->ns.text.ptr, '/', meta->ns.text.len))
        return ml_err_set(err, ML_EINVALID, "metadata.namespace has a '/'");
    return 0;
}

int ml_object_meta_read(struct ml_str json, struct ml_object_meta *meta, struct ml_err *err)
{
    *meta = (struct ml_object_meta){0};
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    if (ml_json_next(&reader) == ML_JSON_ERROR)
        return ml_json_error(&reader, err);
    if (reader.token != ML_JSON_OBJECT)
        return ml_err_set(err, ML_EINVALID, "not an object");
    struct member member;
    struct ml_str metadata = {NULL, 0};
    while (next_member(&reader, &member)) {
        if (ml_str_is(member.key, "metadata"))
            metadata = member.value;
        meta->has_api_version = meta->has_api_version || ml_str_is(member.key, "apiVersion");
        meta->has_kind = meta->has_kind || ml_str_is(member.key, "kind");
    }
    if (reader.token != ML_JSON_ERROR)
        ml_json_next(&reader);
    if (reader.token == ML_JSON_ERROR)
        return ml_json_error(&reader, err);
    if (metadata.len > 0)
        read_metadata(meta, metadata);
    return check_metadata(meta, err);
}

void ml_object_meta_fini(struct ml_object_meta *meta)
{
    ml_buf_fini(&meta->unescaped);
}
