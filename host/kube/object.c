#include "kube/object.h"

#include "kube/dict.h"
#include "kube/object_meta.h"

#include <malloc.h>

/* What the block stands for: the object's JSON, except that strings the object keeps open
 * anyway (uid, name, …) are holes, a byte that JSON never holds raw and one that names the
 * string. Nothing is kept twice, and what differs from object to object is not zstd's to pack. */
#define HOLE          '\x01'
#define HOLE_LEN      2
#define HOLE_TEXT_MIN 3 /* every hole is shorter than its text: see expand() */

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

uint64_t ml_rv_parse(struct ml_str text)
{
    uint64_t number = 0;
    bool canonical = text.len == 1 || (text.len > 1 && text.ptr[0] != '0');
    return canonical && ml_str_to_u64(text, &number) ? number : ML_RV_OPAQUE;
}

static bool is_rv_number(struct ml_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len == 1 || (text.len > 1 && text.ptr[0] != '0');
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
static struct edit *edit_add(struct edits *edits, struct ml_str old)
{
    ml_assert(edits->count < ML_COUNT(edits->list));
    size_t at = edits->count++;
    for (; at > 0 && edits->list[at - 1].old.ptr > old.ptr; at--)
        edits->list[at] = edits->list[at - 1];
    edits->list[at] = (struct edit){.old = old};
    return &edits->list[at];
}

static void edit_hole(struct edits *edits, enum hole hole, const struct ml_object_string *string)
{
    if (string->raw.len < HOLE_TEXT_MIN)
        return;
    struct edit *edit = edit_add(edits, string->raw);
    edit->is_hole = true;
    edit->hole[0] = HOLE;
    edit->hole[1] = (char)hole;
}

static void edits_make(struct edits *edits, struct ml_str json, const struct ml_object_meta *meta,
                       struct ml_str head)
{
    const char *body = (const char *)memchr(json.ptr, '{', json.len) + 1;
    edit_add(edits, (struct ml_str){body, 0})->new = head;
    if (meta->managed_fields.ptr)
        edit_add(edits, meta->managed_fields);
    edit_hole(edits, HOLE_NAME, &meta->name);
    edit_hole(edits, HOLE_UID, &meta->uid);
    edit_hole(edits, HOLE_RV, &meta->rv);
    if (!meta->has_owner)
        return;
    edit_hole(edits, HOLE_OWNER_NAME, &meta->owner_name);
    edit_hole(edits, HOLE_OWNER_UID, &meta->owner_uid);
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
static int make_head(const struct ml_object_meta *meta, const char *api_version, const char *kind,
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

static struct ml_str group_of(struct ml_str api_version)
{
    struct ml_str rest = api_version;
    struct ml_str group = ml_str_cut(&rest, '/');
    return rest.ptr ? group : ML_STR("");
}

static char *put(char *at, struct ml_str text)
{
    if (text.len > 0)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

static struct ml_object *object_build(const struct ml_object_meta *meta, struct ml_str block)
{
    struct ml_str group = group_of(meta->owner_api_version);
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
        at = put(at, strings[i]);
    return object;
}

int ml_object_new(struct ml_dict *dict, const char *api_version, const char *kind,
                  struct ml_str json, struct ml_object **out, struct ml_err *err)
{
    if (json.len > ML_OBJECT_SIZE_MAX)
        return ml_err_set(err, ML_EINVALID, "larger than %zu bytes", ML_OBJECT_SIZE_MAX);
    ML_AUTO(ml_object_meta_fini) struct ml_object_meta meta;
    if (ml_object_meta_read(json, &meta, err) < 0)
        return err->kind;
    ML_AUTO(ml_buf_fini) struct ml_buf head = ML_BUF_INIT;
    if (make_head(&meta, api_version, kind, &head, err) < 0)
        return err->kind;
    struct edits edits = {.count = 0};
    edits_make(&edits, json, &meta, ml_buf_str(&head));
    ML_AUTO(ml_buf_fini) struct ml_buf plain = ML_BUF_INIT;
    ml_buf_reserve(&plain, json.len + head.len);
    size_t json_len = edits_apply(&edits, json, &plain);
    ml_assert(!plain.failed);

    struct ml_dict_text *text;
    struct ml_str block = ml_dict_pack(dict, ml_buf_str(&plain), &text);
    struct ml_object *object = object_build(&meta, block);
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
static void expand(const struct ml_object *object, char *to, const char *from, const char *end)
{
    const char *hole;
    while ((hole = memchr(from, HOLE, (size_t)(end - from)))) {
        size_t len = (size_t)(hole - from);
        memmove(to, from, len);
        to = put(to + len, hole_text(object, hole[1]));
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
    expand(object, room, plain, room + object->json_len);
    out->len += object->json_len;
}
