/* An object as the cache holds it. Reads the metadata from the server's JSON, leaves managedFields
 * out, and packs the rest with dict.c. Called by the stores of state/ when a list or a watch brings
 * an object, and by whoever reads one. */
#include "kube/object.h"

#include "codec/json.h"

#include <malloc.h>

#define TEXT_LEN_MAX 253 /* Kubernetes' longest name; struct ml_object keeps lengths in a byte */
#define KEY_LEN_MAX  24  /* longer than any key looked for */

/* What the block stands for: the object's JSON, except that strings the object keeps open
 * anyway (uid, name, …) are holes, a byte that JSON never holds raw and one that names the
 * string. So nothing is kept twice, and zstd does not have to pack what differs from object to
 * object. */
#define HOLE          '\x01'
#define HOLE_LEN      2
#define HOLE_TEXT_MIN 3 /* every hole is shorter than its text: see fill_holes() */

enum hole { HOLE_NAME = '0', HOLE_UID, HOLE_RV, HOLE_OWNER_NAME, HOLE_OWNER_UID };

struct ml_object {
    uint32_t refs;
    uint32_t json_len;
    uint32_t plain_len; /* of the JSON with holes */
    uint32_t packed_len;
    struct ml_dict_text *text;
    int64_t generation;
    uint8_t ns_len, name_len, uid_len, rv_len;
    uint8_t owner_group_len, owner_kind_len, owner_name_len, owner_uid_len;
    bool deleting, has_owner;
    /* key, uid, rv, owner group, kind, name, uid, and the block; nothing between them. */
    char bytes[];
};

_Static_assert(ML_OBJECT_SIZE_MAX < UINT32_MAX / 2, "lengths fit their fields");

static bool is_rv_number(struct ml_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len == 1 || (text.len > 1 && text.ptr[0] != '0');
}

uint64_t ml_rv_parse(struct ml_str text)
{
    uint64_t number = 0;
    return is_rv_number(text) && ml_str_to_u64(text, &number) ? number : ML_RV_OPAQUE;
}

bool ml_rv_older(struct ml_str a, struct ml_str b)
{
    if (!is_rv_number(a) || !is_rv_number(b))
        return false;
    return a.len != b.len ? a.len < b.len : memcmp(a.ptr, b.ptr, a.len) < 0;
}

/* Where the strings start in `bytes`, in their order there. */

static size_t key_len(const struct ml_object *object)
{
    return (size_t)object->name_len + (object->ns_len ? object->ns_len + 1u : 0);
}

static const char *uid_start(const struct ml_object *object)
{
    return object->bytes + key_len(object);
}

static const char *owner_start(const struct ml_object *object)
{
    return uid_start(object) + object->uid_len + object->rv_len;
}

static const char *block_start(const struct ml_object *object)
{
    return owner_start(object) + object->owner_group_len + object->owner_kind_len +
           object->owner_name_len + object->owner_uid_len;
}

struct ml_str ml_object_key(const struct ml_object *object)
{
    return (struct ml_str){object->bytes, key_len(object)};
}

struct ml_str ml_object_namespace(const struct ml_object *object)
{
    return (struct ml_str){object->bytes, object->ns_len};
}

struct ml_str ml_object_name(const struct ml_object *object)
{
    return (struct ml_str){uid_start(object) - object->name_len, object->name_len};
}

struct ml_str ml_object_uid(const struct ml_object *object)
{
    return (struct ml_str){uid_start(object), object->uid_len};
}

struct ml_str ml_object_rv(const struct ml_object *object)
{
    return (struct ml_str){uid_start(object) + object->uid_len, object->rv_len};
}

uint64_t ml_object_rv_number(const struct ml_object *object)
{
    return ml_rv_parse(ml_object_rv(object));
}

int64_t ml_object_generation(const struct ml_object *object)
{
    return object->generation;
}

bool ml_object_deleting(const struct ml_object *object)
{
    return object->deleting;
}

bool ml_object_controller(const struct ml_object *object, struct ml_owner *out)
{
    if (!object->has_owner)
        return false;
    const char *at = owner_start(object);
    out->group = (struct ml_str){at, object->owner_group_len};
    out->kind = (struct ml_str){at += object->owner_group_len, object->owner_kind_len};
    out->name = (struct ml_str){at += object->owner_kind_len, object->owner_name_len};
    out->uid = (struct ml_str){at + object->owner_name_len, object->owner_uid_len};
    return true;
}

size_t ml_object_bytes(const struct ml_object *object)
{
    return malloc_usable_size((void *)object) + sizeof(size_t); /* and malloc's own word */
}

/* ---- reading the metadata ---- */

/* A string of the object: its text, and `raw` where the same bytes stand in the JSON (between
 * the quotes); raw.ptr is NULL when they are written with escapes there, or not there. */
struct meta_string {
    struct ml_str text;
    struct ml_str raw;
};

struct meta {
    struct meta_string name, ns, uid, rv;
    int64_t generation;
    bool deleting;
    bool has_api_version, has_kind;

    bool has_owner; /* one with controller: true */
    struct meta_string owner_name, owner_uid;
    struct ml_str owner_api_version, owner_kind;

    struct ml_str managed_fields; /* the whole member, with one comma; or ptr NULL */
    struct ml_buf unescaped;      /* backs texts that were written with escapes */
};

static void meta_fini(struct meta *meta)
{
    ml_buf_fini(&meta->unescaped);
}

struct member {
    struct ml_str key;
    struct ml_str value; /* raw */
    char name[KEY_LEN_MAX];
};

/* The next member of the object the reader is in. False at its end, or on an error. */
static bool read_object_member(struct ml_json_reader *reader, struct member *out)
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
static void read_meta_string(struct meta *meta, struct ml_str raw, struct meta_string *out)
{
    if (raw.ptr[0] != '"')
        return;
    struct ml_str inner = {raw.ptr + 1, raw.len - 2};
    if (!memchr(inner.ptr, '\\', inner.len)) {
        *out = (struct meta_string){inner, inner};
        return;
    }
    /* The room was reserved at once (read_metadata), so earlier texts do not move. */
    size_t start = meta->unescaped.len;
    ml_json_to_string(raw, &meta->unescaped);
    struct ml_str text = {meta->unescaped.ptr + start, meta->unescaped.len - start};
    *out = (struct meta_string){text, {NULL, 0}};
}

struct owner {
    struct meta_string api_version, kind, name, uid;
    bool controller;
};

static void read_owner(struct meta *meta, struct ml_json_reader *reader)
{
    struct owner owner = {0};
    struct member member;
    while (read_object_member(reader, &member)) {
        if (ml_str_is(member.key, "apiVersion"))
            read_meta_string(meta, member.value, &owner.api_version);
        else if (ml_str_is(member.key, "kind"))
            read_meta_string(meta, member.value, &owner.kind);
        else if (ml_str_is(member.key, "name"))
            read_meta_string(meta, member.value, &owner.name);
        else if (ml_str_is(member.key, "uid"))
            read_meta_string(meta, member.value, &owner.uid);
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

/* Anything but an array of objects, null for example, has no owner. */
static void read_owners(struct meta *meta, struct ml_str raw)
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

static void read_metadata_member(struct meta *meta, const struct member *member)
{
    if (ml_str_is(member->key, "name"))
        read_meta_string(meta, member->value, &meta->name);
    else if (ml_str_is(member->key, "namespace"))
        read_meta_string(meta, member->value, &meta->ns);
    else if (ml_str_is(member->key, "uid"))
        read_meta_string(meta, member->value, &meta->uid);
    else if (ml_str_is(member->key, "resourceVersion"))
        read_meta_string(meta, member->value, &meta->rv);
    else if (ml_str_is(member->key, "generation"))
        (void)!ml_str_to_i64(member->value, &meta->generation);
    else if (ml_str_is(member->key, "deletionTimestamp"))
        meta->deleting = !ml_str_is(member->value, "null");
    else if (ml_str_is(member->key, "ownerReferences"))
        read_owners(meta, member->value);
}

static void read_metadata(struct meta *meta, struct ml_str raw)
{
    if (memchr(raw.ptr, '\\', raw.len))
        ml_buf_reserve(&meta->unescaped, raw.len);
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, raw, 0);
    if (ml_json_next(&reader) != ML_JSON_OBJECT)
        return;
    struct member member;
    for (const char *before = raw.ptr; read_object_member(&reader, &member);) {
        if (ml_str_is(member.key, "managedFields"))
            meta->managed_fields = whole_member(before, member.value);
        else
            read_metadata_member(meta, &member);
        before = member.value.ptr + member.value.len;
    }
}

static int check_meta_text(struct ml_str text, const char *what, struct ml_err *err)
{
    if (text.len == 0)
        return ml_err_set(err, ML_EINVALID, "no %s", what);
    if (text.len > TEXT_LEN_MAX)
        return ml_err_set(err, ML_EINVALID, "%s is longer than %d bytes", what, TEXT_LEN_MAX);
    return 0;
}

static int check_metadata(const struct meta *meta, struct ml_err *err)
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
        if (here && check_meta_text(texts[i].text, texts[i].what, err) < 0)
            return err->kind;
    }
    /* A key "ns/name" must split into the same two parts again. */
    if (memchr(meta->name.text.ptr, '/', meta->name.text.len))
        return ml_err_set(err, ML_EINVALID, "metadata.name has a '/'");
    if (meta->ns.text.len > 0 && memchr(meta->ns.text.ptr, '/', meta->ns.text.len))
        return ml_err_set(err, ML_EINVALID, "metadata.namespace has a '/'");
    return 0;
}

/* Checks the whole text and fills `meta`, whose slices point into `json` and into itself. To be
 * ended with meta_fini in either case. */
static int meta_read(struct ml_str json, struct meta *meta, struct ml_err *err)
{
    *meta = (struct meta){0};
    ML_AUTO(ml_json_reader_fini) struct ml_json_reader reader;
    ml_json_reader_init(&reader, json, 0);
    if (ml_json_next(&reader) == ML_JSON_ERROR)
        return ml_json_error(&reader, err);
    if (reader.token != ML_JSON_OBJECT)
        return ml_err_set(err, ML_EINVALID, "not an object");
    struct member member;
    struct ml_str metadata = {NULL, 0};
    while (read_object_member(&reader, &member)) {
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

/* ---- packing it ---- */

/* A stretch of the JSON as it came, and what stands there in the JSON with holes. */
struct edit {
    struct ml_str old;
    struct ml_str new;
    bool is_hole;
    char hole[HOLE_LEN];
};

struct edits {
    struct edit list[8];
    size_t count;
};

/* Keeps them in the order of the text. */
static struct edit *edits_add(struct edits *edits, struct ml_str old)
{
    ml_assert(edits->count < ML_COUNT(edits->list));
    size_t at = edits->count++;
    for (; at > 0 && edits->list[at - 1].old.ptr > old.ptr; at--)
        edits->list[at] = edits->list[at - 1];
    edits->list[at] = (struct edit){.old = old};
    return &edits->list[at];
}

static void edits_add_hole(struct edits *edits, enum hole hole, const struct meta_string *string)
{
    if (string->raw.len < HOLE_TEXT_MIN)
        return;
    struct edit *edit = edits_add(edits, string->raw);
    edit->is_hole = true;
    edit->hole[0] = HOLE;
    edit->hole[1] = (char)hole;
}

static void edits_make(struct edits *edits, struct ml_str json, const struct meta *meta,
                       struct ml_str head)
{
    const char *body = (const char *)memchr(json.ptr, '{', json.len) + 1;
    edits_add(edits, (struct ml_str){body, 0})->new = head;
    if (meta->managed_fields.ptr)
        edits_add(edits, meta->managed_fields);
    edits_add_hole(edits, HOLE_NAME, &meta->name);
    edits_add_hole(edits, HOLE_UID, &meta->uid);
    edits_add_hole(edits, HOLE_RV, &meta->rv);
    if (!meta->has_owner)
        return;
    edits_add_hole(edits, HOLE_OWNER_NAME, &meta->owner_name);
    edits_add_hole(edits, HOLE_OWNER_UID, &meta->owner_uid);
}

/* Appends the JSON with holes; returns how long it is with the holes filled. */
static size_t edits_apply(const struct edits *edits, struct ml_str json, struct ml_buf *out)
{
    const char *at = json.ptr;
    size_t filled_len = 0;
    for (size_t i = 0; i < edits->count; i++) {
        const struct edit *edit = &edits->list[i];
        ml_buf_append(out, at, (size_t)(edit->old.ptr - at));
        at = edit->old.ptr + edit->old.len;
        if (edit->is_hole) {
            ml_buf_append(out, edit->hole, HOLE_LEN);
            filled_len += edit->old.len - HOLE_LEN;
        } else {
            ml_buf_append_str(out, edit->new);
        }
    }
    ml_buf_append(out, at, (size_t)(json.ptr + json.len - at));
    return out->len + filled_len;
}

/* The members that an item of a list lacks, each with its comma. */
static int make_missing_members(const struct meta *meta, const char *api_version, const char *kind,
                                struct ml_buf *out, struct ml_err *err)
{
    const struct {
        const char *key;
        const char *value;
        bool there;
    } members[] = {{"apiVersion", api_version, meta->has_api_version},
                   {"kind", kind, meta->has_kind}};
    for (size_t i = 0; i < ML_COUNT(members); i++) {
        if (members[i].there)
            continue;
        if (!members[i].value || !*members[i].value)
            return ml_err_set(err, ML_EINVALID, "no %s", members[i].key);
        ml_buf_printf(out, "\"%s\":\"%s\",", members[i].key, members[i].value);
    }
    return 0;
}

static struct ml_str group_of_api_version(struct ml_str api_version)
{
    struct ml_str rest = api_version;
    struct ml_str group = ml_str_cut(&rest, '/');
    return rest.ptr ? group : ML_STR("");
}

static char *copy_text_to(char *at, struct ml_str text)
{
    if (text.len > 0)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

static struct ml_object *object_of_parts(const struct meta *meta, struct ml_str block)
{
    struct ml_str group = group_of_api_version(meta->owner_api_version);
    struct ml_str ns = meta->ns.text;
    const struct ml_str strings[] = {
        ns,
        ns.len ? ML_STR("/") : ML_STR(""),
        meta->name.text,
        meta->uid.text,
        meta->rv.text,
        group,
        meta->owner_kind,
        meta->owner_name.text,
        meta->owner_uid.text,
        block,
    };
    size_t len = 0;
    for (size_t i = 0; i < ML_COUNT(strings); i++)
        len += strings[i].len;
    struct ml_object *object = ml_alloc(
        ML_MAX(sizeof *object, offsetof(struct ml_object, bytes) + len));
    *object = (struct ml_object){
        .refs = 1,
        .packed_len = (uint32_t)block.len,
        .generation = meta->generation,
        .ns_len = (uint8_t)ns.len,
        .name_len = (uint8_t)meta->name.text.len,
        .uid_len = (uint8_t)meta->uid.text.len,
        .rv_len = (uint8_t)meta->rv.text.len,
        .owner_group_len = (uint8_t)group.len,
        .owner_kind_len = (uint8_t)meta->owner_kind.len,
        .owner_name_len = (uint8_t)meta->owner_name.text.len,
        .owner_uid_len = (uint8_t)meta->owner_uid.text.len,
        .deleting = meta->deleting,
        .has_owner = meta->has_owner,
    };
    char *at = object->bytes;
    for (size_t i = 0; i < ML_COUNT(strings); i++)
        at = copy_text_to(at, strings[i]);
    return object;
}

int ml_object_new(struct ml_dict *dict, const char *api_version, const char *kind,
                  struct ml_str json, struct ml_object **out, struct ml_err *err)
{
    if (json.len > ML_OBJECT_SIZE_MAX)
        return ml_err_set(err, ML_EINVALID, "larger than %zu bytes", ML_OBJECT_SIZE_MAX);
    ML_AUTO(meta_fini) struct meta meta;
    if (meta_read(json, &meta, err) < 0)
        return err->kind;
    ML_AUTO(ml_buf_fini) struct ml_buf head = ML_BUF_INIT;
    if (make_missing_members(&meta, api_version, kind, &head, err) < 0)
        return err->kind;
    struct edits edits = {.count = 0};
    edits_make(&edits, json, &meta, ml_buf_str(&head));
    ML_AUTO(ml_buf_fini) struct ml_buf plain = ML_BUF_INIT;
    ml_buf_reserve(&plain, json.len + head.len);
    size_t json_len = edits_apply(&edits, json, &plain);
    ml_assert(!plain.failed);

    struct ml_dict_text *text;
    struct ml_str block = ml_dict_pack(dict, ml_buf_str(&plain), &text);
    struct ml_object *object = object_of_parts(&meta, block);
    object->json_len = (uint32_t)json_len;
    object->plain_len = (uint32_t)plain.len;
    object->text = text;
    *out = object;
    return 0;
}

struct ml_object *ml_object_ref(struct ml_object *object)
{
    object->refs++;
    return object;
}

void ml_object_unref(struct ml_object *object)
{
    if (!object || --object->refs > 0)
        return;
    ml_dict_text_unref(object->text);
    free(object);
}

static struct ml_str hole_text(const struct ml_object *object, char hole)
{
    struct ml_owner owner = {0};
    ml_object_controller(object, &owner);
    switch ((enum hole)hole) {
    case HOLE_NAME:
        return ml_object_name(object);
    case HOLE_UID:
        return ml_object_uid(object);
    case HOLE_RV:
        return ml_object_rv(object);
    case HOLE_OWNER_NAME:
        return owner.name;
    case HOLE_OWNER_UID:
        return owner.uid;
    }
    ML_UNREACHABLE();
}

/* Moves the text from `from` down to `to`, filling its holes. What the holes add is exactly the
 * gap between the two, and each adds something: so the end of what is written never passes the
 * start of what is still to be read. */
static void fill_holes(const struct ml_object *object, char *to, const char *from, const char *end)
{
    const char *hole;
    while ((hole = memchr(from, HOLE, (size_t)(end - from)))) {
        size_t len = (size_t)(hole - from);
        memmove(to, from, len);
        to = copy_text_to(to + len, hole_text(object, hole[1]));
        from = hole + HOLE_LEN;
    }
    ml_assert(to == from);
}

void ml_object_json(const struct ml_object *object, struct ml_buf *out)
{
    char *room = ml_buf_reserve(out, object->json_len);
    if (!room)
        return;
    char *plain = room + (object->json_len - object->plain_len);
    struct ml_str block = {block_start(object), object->packed_len};
    ml_dict_unpack(object->text, block, plain, object->plain_len);
    fill_holes(object, room, plain, room + object->json_len);
    out->len += object->json_len;
}
